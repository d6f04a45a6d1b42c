"""PyTorch as the peer, in this process, on Braid's own memory.

Three kinds: PyTorch on the GPU; in a dry run PyTorch on the CPU, with what it lacks of torch.cuda
replaced by the few names that we use; and, without PyTorch, nothing at all, or in a dry run a
stand-in."""

import contextlib
import sys
import time


class DryCuda:
    """The names of torch.cuda that we use, without a GPU."""

    class Event:
        def __init__(self, enable_timing):
            self.at = 0.0

        def record(self):
            self.at = time.perf_counter()

        def elapsed_time(self, end):
            return (end.at - self.at) * 1e3

    class Stream:
        def wait_stream(self, other):
            pass

    class CUDAGraph:
        def replay(self):
            pass

    def __init__(self, torch):
        names = ("Event", "Stream", "CUDAGraph", "stream", "graph", "current_stream", "synchronize")
        for name in (*names, "caching_allocator_alloc", "caching_allocator_delete"):
            # a name that the real one lacks is an error here, not on the GPU
            getattr(torch.cuda, name)
            getattr(self, name)

    def stream(self, stream):
        return contextlib.nullcontext()

    def graph(self, graph, stream):
        return contextlib.nullcontext()

    def current_stream(self):
        return DryCuda.Stream()

    def synchronize(self):
        pass

    def caching_allocator_alloc(self, size):
        return 0

    def caching_allocator_delete(self, pointer):
        pass


class Peer:
    """What rows ask of PyTorch. `missing` is the reason where there is none; then nothing else may
    be used."""

    COMPILE_MODE = "max-autotune-no-cudagraphs"

    def __init__(self, dry):
        self.dry, self.missing, self.name = dry, None, "none"
        try:
            import torch
        except ImportError:
            if not dry:
                self.missing = "no PyTorch"
                return
            from standin import StandIn

            torch = sys.modules["torch"] = StandIn()
            self.name, self.device, self.cuda = "a stand-in for PyTorch", "cpu", torch.cuda
            self.torch = torch
            return
        self.torch = torch
        if torch.cuda.is_available() and not dry:
            self.name, self.device, self.cuda = f"PyTorch {torch.__version__}", "cuda", torch.cuda
        elif dry:
            self.name, self.device = f"PyTorch {torch.__version__} on the CPU", "cpu"
            self.cuda = DryCuda(torch)
        else:
            self.missing = "PyTorch sees no GPU"
            return
        self.exact()

    def exact(self):
        """Products of float32 in float32. Every row asserts it once more by the error."""
        self.torch.set_float32_matmul_precision("highest")

    def allows_tf32(self):
        return str(self.torch.backends.cuda.matmul.allow_tf32)

    def precision(self):
        return str(self.torch.get_float32_matmul_precision())

    def tf32(self):
        self.torch.set_float32_matmul_precision("high")

    def view(self, tensor):
        """Braid's tensor as PyTorch's: the same memory, on a CPU a copy."""
        torch = self.torch
        if self.device == "cuda":
            view = torch.as_tensor(tensor, device="cuda")
            if view.data_ptr() != tensor.__cuda_array_interface__["data"][0]:
                raise RuntimeError("PyTorch made a copy of the tensor")
            return view
        flat = torch.frombuffer(tensor.bytes(), dtype=getattr(torch, tensor.dtype))
        return flat.reshape(tensor.shape)

    def distance(self, got, want):
        """‖got − want‖ / ‖want‖ in float64 of two of PyTorch's tensors, or of one of Braid's and
        one of PyTorch's."""
        got, want = (
            t.double() if hasattr(t, "double") else self.view(t).double() for t in (got, want)
        )
        return float((got.reshape(want.shape) - want).norm() / want.norm())

    def events(self, run):
        """A timer as Work.events."""

        def timed(count):
            start, end = self.cuda.Event(enable_timing=True), self.cuda.Event(enable_timing=True)
            start.record()
            for _ in range(count):
                run()
            end.record()
            self.cuda.synchronize()
            return float(start.elapsed_time(end)) * 1e3 / count

        return timed

    def _by_host(self, run, whole):
        def timed(count):
            self.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(count):
                run()
            queued = time.perf_counter()
            self.cuda.synchronize()
            return ((time.perf_counter() if whole else queued) - start) * 1e6 / count

        return timed

    def wall(self, run):
        """By the host's clock, the wait for the last run included."""
        return self._by_host(run, whole=True)

    def enqueue(self, run):
        """What the host needs to queue a run."""
        return self._by_host(run, whole=False)

    def graph(self, make):
        """Replays the CUDA graph of what make() gives, made and run three times on the stream of
        the capture: a backward runs on the stream of its forward."""
        side = self.cuda.Stream()
        side.wait_stream(self.cuda.current_stream())
        with self.cuda.stream(side):
            run = make()
            for _ in range(3):
                run()
        self.cuda.current_stream().wait_stream(side)
        self.cuda.synchronize()
        captured = self.cuda.CUDAGraph()
        with self.cuda.graph(captured, stream=side):
            run()
        return lambda kept=run: captured.replay()  # the graph reads the memory of what run holds

    def compiled(self, function, *arguments):
        """torch.compile of a function for these shapes alone, compiled here by a first call."""
        self.torch._dynamo.reset()  # else a second shape would be compiled for any shape
        if self.dry:
            fast = self.torch.compile(function, backend="eager", dynamic=False)
        else:
            fast = self.torch.compile(function, dynamic=False, mode=self.COMPILE_MODE)
        fast(*arguments)
        self.cuda.synchronize()
        return fast
