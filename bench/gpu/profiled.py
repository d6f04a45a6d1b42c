"""profiled.py LIBRARY [--tiny]: runs the kernels that limit the rows of the table, each once, for
ncu."""

import sys

from library import Library

BF16 = "bfloat16"


def works(library, tiny):
    """Returns pairs of a name and its work."""

    def made(kind, *shapes, dtype="float32"):
        return library.work(kind, [library.normal(*s, dtype=dtype) for s in shapes], dtype=dtype)

    n, heads, rows = (24, (1, 2, 20, 64), (6, 40)) if tiny else (
        4096, (4, 16, 4096, 128), (1 << 17, 1024))
    images, filters = ((2, 8, 5, 5), (8, 8, 3, 3)) if tiny else ((64, 128, 28, 28),
                                                                 (128, 128, 3, 3))
    square = (n, n)
    yield "product of float32", made("nn", square, square)
    for layout in ("nn", "nt", "tn"):
        yield f"product {layout} of bfloat16", made(layout, square, square, dtype=BF16)
    yield "attention", made("attention", heads, heads, heads, dtype=BF16)
    yield "attention backward", made("attention_backward", heads, heads, heads, heads, dtype=BF16)
    yield "layer norm backward", made("layer_norm_gradient", rows, rows[1:], rows[1:], rows,
                                      dtype=BF16)
    yield "convolution", made("conv3", images, filters, dtype=BF16)


if __name__ == "__main__":
    library = Library(sys.argv[1])
    library.engine("braid")
    for name, work in works(library, "--tiny" in sys.argv):
        print(f"{name}: {work.events(1):.1f} us under the profiler", flush=True)
