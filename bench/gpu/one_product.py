"""one_product.py LIBRARY SIZE: runs only the product of G1.nn, a few times, for ncu."""

import sys

from library import Library

if __name__ == "__main__":
    library, size = Library(sys.argv[1]), int(sys.argv[2])
    work = library.work("nn", [library.normal(size, size), library.normal(size, size)])
    print(f"{size} x {size} x {size}: {work.events(4):.1f} us under the profiler")
