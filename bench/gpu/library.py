"""ctypes interface to libbraid_bench: tensors on the GPU, and timed work on them. The C side is in
library/."""

import ctypes
import json

SIZES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "int64": 8}


class Failure(RuntimeError):
    """An error message from the library."""


class Tensor:
    """A tensor in GPU memory that Braid owns. PyTorch accesses it without a copy by
    __cuda_array_interface__."""

    def __init__(self, library, handle, dtype):
        self.library, self.handle, self.dtype = library, handle, dtype
        call = library.call
        self.shape = tuple(call.bb_size(handle, d) for d in range(call.bb_rank(handle)))

    def __del__(self):
        self.library.call.bb_free(self.handle)

    @property
    def __cuda_array_interface__(self):
        # numpy has no bfloat16: PyTorch reinterprets integers (Peer.view)
        kinds = {"float16": "<f2", "bfloat16": "<i2", "float32": "<f4", "float64": "<f8",
                 "int64": "<i8"}
        return {
            "shape": self.shape,
            "typestr": kinds[self.dtype],
            "data": (self.library.call.bb_data(self.handle), False),
            "strides": None,
            "version": 3,
        }

    def bytes(self):
        """Copies the numbers to the host."""
        size = self.library.call.bb_numel(self.handle) * SIZES[self.dtype]
        buffer = bytearray(size)
        place = (ctypes.c_char * size).from_buffer(buffer)
        self.library.ok(self.library.call.bb_copy_out(self.handle, place, size) == 0)
        return buffer

    def item(self):
        kind = {"float32": ctypes.c_float, "float64": ctypes.c_double}[self.dtype]
        return kind.from_buffer(self.bytes()).value


class Work:
    """An operation of Braid. The timers return the time of one run in us, averaged over `count`."""

    def __init__(self, library, handle, operands, dtype):
        self.library, self.handle, self.operands, self.dtype = library, handle, operands, dtype

    def __del__(self):
        self.library.call.bb_free_work(self.handle)

    def result(self):
        """Returns the result of one run with the first operands."""
        return self.library.tensor_of(self.library.call.bb_result(self.handle), self.dtype)

    def _timed(self, function, count):
        return self.library.number(function(self.handle, count))

    def events(self, count):
        return self._timed(self.library.call.bb_events_us, count)

    def wall(self, count):
        return self._timed(self.library.call.bb_wall_us, count)

    def enqueue(self, count):
        return self._timed(self.library.call.bb_enqueue_us, count)


class Library:
    def __init__(self, path):
        self.path = path
        self.call = call = ctypes.CDLL(path)
        pointer, number, long, text = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_char_p
        real, seed = ctypes.c_double, ctypes.c_uint64
        signatures = {
            "bb_error": (text,),
            "bb_emulated": (number,),
            "bb_devices": (number,),
            "bb_description": (text,),
            "bb_processors": (number,),
            "bb_version": (text,),
            "bb_tensor": (pointer, text, number, ctypes.POINTER(long), real, seed),
            "bb_labels": (pointer, long, long, seed),
            "bb_data": (pointer, pointer),
            "bb_numel": (long, pointer),
            "bb_rank": (number, pointer),
            "bb_size": (long, pointer, number),
            "bb_copy_out": (number, pointer, pointer, long),
            "bb_free": (None, pointer),
            "bb_error_of": (real, pointer, pointer),
            "bb_engine": (number, text),
            "bb_precision": (number, text),
            "bb_synchronize": (number,),
            "bb_empty_cache": (number,),
            "bb_memory": (long, number),
            "bb_reset_peak": (number,),
            "bb_predicted_steps": (text, number, long, long, number, number),
            "bb_work": (pointer, text, number, number, ctypes.POINTER(pointer)),
            "bb_free_work": (None, pointer),
            "bb_result": (pointer, pointer),
            "bb_events_us": (real, pointer, number),
            "bb_wall_us": (real, pointer, number),
            "bb_enqueue_us": (real, pointer, number),
            "bb_call_us": (real, text, long, number),
        }
        for name, (result, *arguments) in signatures.items():
            function = getattr(call, name)
            function.restype, function.argtypes = result, arguments
        self.emulated = bool(call.bb_emulated())
        self.seed = 0

    def ok(self, good):
        if not good:
            raise Failure(self.call.bb_error().decode())

    def number(self, value):
        self.ok(value == value)
        return value

    def devices(self):
        return self.call.bb_devices()

    def reason(self):
        return self.call.bb_error().decode()

    def description(self):
        text = self.call.bb_description()
        self.ok(text is not None)
        return text.decode()

    def processors(self):
        return self.call.bb_processors()

    def version(self):
        return self.call.bb_version().decode()

    def tensor_of(self, handle, dtype):
        self.ok(handle)
        return Tensor(self, handle, dtype)

    def normal(self, *shape, scale=1.0, dtype="float32"):
        """Returns normally distributed random numbers, different in every call."""
        self.seed += 1
        sizes = (ctypes.c_int64 * len(shape))(*shape)
        handle = self.call.bb_tensor(dtype.encode(), len(shape), sizes, scale, self.seed)
        return self.tensor_of(handle, dtype)

    def labels(self, count, classes):
        self.seed += 1
        return self.tensor_of(self.call.bb_labels(count, classes, self.seed), "int64")

    def work(self, kind, *sets, dtype="float32"):
        """Creates work. Each set is a list of operands; no sets for work that makes its own."""
        sets = sets or ([],)
        flat = [t.handle for operands in sets for t in operands]
        handles = (ctypes.c_void_p * max(len(flat), 1))(*flat)
        handle = self.call.bb_work(kind.encode(), len(sets), len(sets[0]), handles)
        self.ok(handle)
        return Work(self, handle, sets, dtype)

    def error_of(self, got, want):
        """Returns ‖got − want‖ / ‖want‖; NaN if either contains NaN."""
        return self.call.bb_error_of(got.handle, want.handle)

    def engine(self, name):
        self.ok(self.call.bb_engine(name.encode()) == 0)

    def precision(self, name):
        self.ok(self.call.bb_precision(name.encode()) == 0)

    def synchronize(self):
        self.ok(self.call.bb_synchronize() == 0)

    def empty_cache(self):
        self.ok(self.call.bb_empty_cache() == 0)

    def memory(self):
        """Returns the bytes that tensors on the device have."""
        size = self.call.bb_memory(0)
        self.ok(size >= 0)
        return size

    def peak(self, run):
        """Returns the most bytes that tensors on the device had while run() ran."""
        self.ok(self.call.bb_reset_peak() == 0)
        run()
        size = self.call.bb_memory(1)
        self.ok(size >= 0)
        return size

    def predicted_steps(self, devices, width, rows, rounds, steps):
        """Returns the measured and the predicted times of split steps (library/replicas.hpp)."""
        text = self.call.bb_predicted_steps(devices, width, rows, rounds, steps)
        self.ok(text is not None)
        return json.loads(text)

    def call_us(self, what, size, count):
        """Returns the time in us of one of `count` direct CUDA calls on `size` bytes."""
        return self.number(self.call.bb_call_us(what.encode(), size, count))
