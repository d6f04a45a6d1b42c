"""Writes goldens/numpy: small .npy and .npz files made by numpy, for tests/core/test_npy.cpp and
tests/data/test_npz.cpp.

python3 tests/goldens/make_numpy.py            writes them
python3 tests/goldens/make_numpy.py --check F  reads F.npy and F.npz, which Braid wrote from the
                                               same arrays, and compares them"""

import os
import sys

import numpy as np

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "numpy")


def arrays():
    grid = np.arange(6).reshape(2, 3)
    return {
        "f4": grid.astype(np.float32) / 4,
        "f8": grid.astype(np.float64) / 4,
        "f2": grid.astype(np.float16) / 4,
        "i4": grid.astype(np.int32) - 3,
        "i8": grid.astype(np.int64) - 3,
        "u1": grid.astype(np.uint8),
        "b1": grid % 2 == 1,
        "fortran": np.asfortranarray(np.arange(24, dtype=np.float32).reshape(2, 3, 4)),
        "scalar": np.float64(2.5),
        "one": np.array([7], dtype=np.int64),
        "empty": np.zeros((2, 0, 3), dtype=np.float32),
    }


def main():
    all_arrays = arrays()
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        one = np.load(sys.argv[2] + ".npy")
        assert one.dtype == np.float32 and np.array_equal(one, all_arrays["f4"])
        with np.load(sys.argv[2] + ".npz") as many:
            assert set(many.files) == set(all_arrays), many.files
            for name, array in all_arrays.items():
                read, array = many[name], np.asarray(array)
                assert read.dtype == array.dtype and read.shape == array.shape, name
                assert np.array_equal(read, array), name
        print(f"numpy {np.__version__} reads what Braid wrote: {len(all_arrays)} arrays")
        return
    os.makedirs(FOLDER, exist_ok=True)
    for name, array in all_arrays.items():
        np.save(os.path.join(FOLDER, name + ".npy"), array)
    with open(os.path.join(FOLDER, "version2.npy"), "wb") as file:
        np.lib.format.write_array(file, all_arrays["f4"], version=(2, 0))
    np.save(os.path.join(FOLDER, "big_endian.npy"), all_arrays["f4"].astype(">f4"))
    np.save(os.path.join(FOLDER, "structured.npy"), np.zeros(2, dtype=[("a", "<f4"), ("b", "<i8")]))
    np.save(os.path.join(FOLDER, "text.npy"), np.array(["ab", "c"]))
    objects = np.array([{}, None], dtype=object)
    np.save(os.path.join(FOLDER, "objects.npy"), objects, allow_pickle=True)
    np.savez(os.path.join(FOLDER, "stored.npz"), **all_arrays)
    np.savez_compressed(os.path.join(FOLDER, "deflated.npz"), **all_arrays)
    np.savez_compressed(os.path.join(FOLDER, "large.npz"), zeros=np.zeros(400000, dtype=np.float64))
    np.savez_compressed(os.path.join(FOLDER, "many.npz"),
                        **{f"a{i}": np.zeros(1000000, dtype=np.uint8) for i in range(8)})


if __name__ == "__main__":
    main()
