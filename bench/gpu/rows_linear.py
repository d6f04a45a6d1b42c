"""Rows of a linear layer's forward with what follows it in the same kernel: G5 and G5h. The bars
are the column "must" of the table of goals."""

import math

from contenders import add_compiled
from rows_kernels import rotation

# what follows -> Braid's work, PyTorch's function, whether there is a fourth operand
EPILOGUES = {
    "bias": ("linear", lambda F, x, w, b: F.linear(x, w, b), False),
    "relu": ("linear_relu", lambda F, x, w, b: F.relu(F.linear(x, w, b)), False),
    "gelu": ("linear_gelu", lambda F, x, w, b: F.gelu(F.linear(x, w, b)), False),
    "residual": ("linear_add", lambda F, x, w, b, r: F.linear(x, w, b) + r, True),
}


def layers(t, prefix, epilogue, dtype, batches, width, most):
    """Layers of a width, against eager PyTorch and torch.compile."""
    kind, function, adds = EPILOGUES[epilogue]
    for batch in batches:
        shapes = [(batch, width), (width, width), (width,)] + [(batch, width)] * adds
        sets = [[t.library.normal(*shape, scale=width**-0.5 if i == 1 else 1, dtype=dtype)
                 for i, shape in enumerate(shapes)] for _ in range(rotation(t, *shapes))]
        work = t.library.work(kind, *sets, dtype=dtype)
        right = t.library.work(kind + "64", sets[0], dtype="float64").result()
        name = f"{prefix}.b{batch}"
        if not t.table.check(name, t.library.error_of(work.result(), right), most):
            continue
        timers, reason = {"braid": work.events}, t.peer.missing
        if not t.peer.missing:
            F, views = t.peer.torch.nn.functional, [[t.peer.view(v) for v in s] for s in sets]

            def layer(*operands, F=F):
                return function(F, *operands)

            if not t.table.check(name + ".torch", t.peer.distance(layer(*views[0]), right), most):
                continue
            timers["eager"] = t.peer.events(t.turns(views, layer))
            reason = add_compiled(t, timers, layer, views)
        series = t.clock.interleave(timers)
        eager = {n: s for n, s in series.items() if n != "compile"}
        t.table.ratio(name + ".eager", eager, "braid", ("eager",), 1.0, t.peer.missing)
        compiled = {n: s for n, s in series.items() if n != "eager"}
        mode = f"  (mode {t.peer.COMPILE_MODE})"
        t.table.ratio(name + ".compile", compiled, "braid", ("compile",), 0.9, reason, mode)


def g5(t):
    """Linear with bias and ReLU, forward, fp32."""
    width = 8 if t.dry else 1024
    layers(t, "G5", "relu", "float32", (4,) if t.dry else (256, 512, 1024), width,
           1e-6 * math.sqrt(width))


def g5h(t):
    """Linear in bfloat16 with bias alone, with GELU and with a residual. torch.compile tries many
    kernels for each of them, so there are two sizes."""
    for epilogue in ("bias", "gelu", "residual"):
        # Braid and PyTorch may round the sum before GELU or the residual
        most = 4e-3 if epilogue == "bias" else 6e-3
        layers(t, f"G5h.{epilogue}", epilogue, "bfloat16", (4,) if t.dry else (256, 1024),
               8 if t.dry else 1024, most)
