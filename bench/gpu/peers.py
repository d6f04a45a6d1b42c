"""PyTorch as the peer, in this process, on Braid's memory.

There are three cases: PyTorch on the GPU; in a dry run PyTorch on the CPU, with a fake for the few
names of torch.cuda that are used here; and, without PyTorch, no peer, or in a dry run a fake
PyTorch."""

import contextlib
import sys
import time

from fake_packages import fake_packages
from packages import FlashAttention, Quack


class DryCuda:
    """A fake of the names of torch.cuda that are used here, for a machine without GPU."""

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
        memory = ("memory_allocated", "max_memory_allocated", "reset_peak_memory_stats")
        allocator = ("caching_allocator_alloc", "caching_allocator_delete")
        for name in (*names, *memory, *allocator):
            # fails here, not on the GPU, if the real torch.cuda lacks the name
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

    def memory_allocated(self):
        return 1

    def max_memory_allocated(self):
        return 3

    def reset_peak_memory_stats(self):
        pass

    def caching_allocator_alloc(self, size):
        return 0

    def caching_allocator_delete(self, pointer):
        pass


class Peer:
    """The functions of PyTorch that the rows use. `missing` is the reason why there is no PyTorch;
    then nothing else may be used."""

    COMPILE_MODE = "max-autotune-no-cudagraphs"

    def __init__(self, dry, compiles):
        self.dry, self.compiles, self.missing, self.name = dry, compiles, None, "none"
        self.donates = None  # PyTorch's own setting (keep_forward)
        try:
            import torch
        except ImportError:
            if not dry:
                self.missing = "no PyTorch"
                return
            from fake_torch import FakeTorch

            torch = sys.modules["torch"] = FakeTorch()
            self.name, self.device, self.cuda = "a fake PyTorch", "cpu", torch.cuda
            self.torch = torch
            self.find_packages()
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
        self.find_packages()
        self.exact()

    def find_packages(self):
        importing = [fake_packages(self.torch)] if self.dry else []
        self.quack, self.flash_attn = Quack(*importing), FlashAttention(*importing)

    def exact(self):
        """Makes float32 products use float32, not TF32. Every row also checks that by its error."""
        self.torch.set_float32_matmul_precision("highest")
        self.torch.backends.cudnn.allow_tf32 = False  # convolutions have a setting of their own

    def allows_tf32(self):
        return str(self.torch.backends.cuda.matmul.allow_tf32)

    def precision(self):
        return str(self.torch.get_float32_matmul_precision())

    def tf32(self):
        self.torch.set_float32_matmul_precision("high")
        self.torch.backends.cudnn.allow_tf32 = True

    @contextlib.contextmanager
    def searching(self):
        """Inside, cuDNN times its algorithms for each new shape and takes the fastest."""
        if self.missing:
            yield
            return
        cudnn = self.torch.backends.cudnn
        before, cudnn.benchmark = cudnn.benchmark, True
        try:
            yield
        finally:
            cudnn.benchmark = before

    def view(self, tensor):
        """Returns Braid's tensor as a PyTorch tensor: the same memory on a GPU, a copy on a CPU."""
        torch = self.torch
        if self.device == "cuda":
            view = torch.as_tensor(tensor, device="cuda")
            if view.data_ptr() != tensor.__cuda_array_interface__["data"][0]:
                raise RuntimeError("PyTorch made a copy of the tensor")
            return view.view(torch.bfloat16) if tensor.dtype == "bfloat16" else view
        flat = torch.frombuffer(tensor.bytes(), dtype=getattr(torch, tensor.dtype))
        return flat.reshape(tensor.shape)

    def distance(self, got, want):
        """Returns ‖got − want‖ / ‖want‖, computed in float64. Both may be Braid's or PyTorch's
        tensors."""
        got, want = (
            t.double() if hasattr(t, "double") else self.view(t).double() for t in (got, want)
        )
        return float((got.reshape(want.shape) - want).norm() / want.norm())

    def peak(self, run):
        """Returns the most bytes that PyTorch's tensors had while run() ran."""
        self.cuda.synchronize()
        self.cuda.reset_peak_memory_stats()
        run()
        return int(self.cuda.max_memory_allocated())

    def memory(self):
        """Returns the bytes that PyTorch's tensors have."""
        return int(self.cuda.memory_allocated())

    def events(self, run):
        """Returns a timer like Work.events."""

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
        """Returns a timer by the host's clock that includes the wait for the last run."""
        return self._by_host(run, whole=True)

    def enqueue(self, run):
        """Returns a timer of the host's time to queue a run."""
        return self._by_host(run, whole=False)

    def graph(self, make):
        """Returns a function that replays a CUDA graph of the function that make() returns. make()
        is called, and its result run three times, on the capture's stream, because a backward runs
        on the stream of its forward."""
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
        return lambda kept=run: captured.replay()  # the graph reads memory that `run` owns

    def compiled(self, function, *arguments, mode=COMPILE_MODE, again=False):
        """Applies torch.compile to a function for these shapes only, and calls it to compile it.
        With `again` its backward can run more than once."""
        self.torch._dynamo.reset()  # else a second shape would get a dynamic-shape kernel
        self.keep_forward(again)
        if self.dry:
            fast = self.torch.compile(function, backend="eager", dynamic=False)
        else:
            fast = self.torch.compile(function, dynamic=False, mode=mode)
        fast(*arguments)
        self.cuda.synchronize()
        return fast

    def keep_forward(self, on):
        """A compiled backward may use memory of the forward for its own results. With `on` those
        compiled and run before the next call of this do not."""
        config = getattr(self.torch._functorch, "config", None)
        if not hasattr(config, "donated_buffer"):
            return  # so they cannot
        if self.donates is None:
            self.donates = config.donated_buffer
        config.donated_buffer = self.donates and not on
