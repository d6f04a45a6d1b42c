"""Rows of products on tensor cores: G2 and G3 of float32, G4 and G6h of bfloat16. Their bars are
the column "must" of the table of goals."""

import math

from measure import during
from rows_kernels import layer_backward, layer_operands, product, torch_product

BF16 = "bfloat16"


def float32_peers(t, name, layout, operands, right, precision, limits):
    """Returns the timers of cuBLAS and of PyTorch in a precision: `exact` or `tf32`. Those whose
    error is outside of the limits are left out."""
    timers = {}
    if t.has_cublas:
        work = t.precision(precision, t.engine("cublas", t.library.work(layout, operands)))
        if t.table.check(name + ".cublas", t.library.error_of(work.result(), right), *limits):
            timers["cublas"] = work.events
    if not t.peer.missing:
        views, multiply = [t.peer.view(x) for x in operands], torch_product(t, layout)

        def run():
            return multiply(*views)

        def set_around(function):
            return during(t.peer.tf32, t.peer.exact, function) if precision == "tf32" else function

        if t.table.check(name + ".torch", t.peer.distance(set_around(run)(), right), *limits):
            timers["torch"] = set_around(t.peer.events(run))
    return timers


def float32_products(t, goal, precision, most_of, theirs, limits_of, bar):
    """Square products of float32 in a precision of tensor cores. `theirs` is the precision of
    cuBLAS and of PyTorch: `exact` or `tf32`. most_of(k) is the largest error, and limits_of(k) the
    largest and the smallest one of theirs."""
    t.cublas(goal + ".cublas")
    for size in (40,) if t.dry else (4096, 8192):
        for layout in ("nn", "nt", "tn"):
            name = f"{goal}.{layout}.{size}"
            operands = [t.library.normal(size, size), t.library.normal(size, size)]
            right = t.library.work(layout + "64", operands, dtype="float64").result()
            ours = t.precision(precision, t.engine("braid", t.library.work(layout, operands)))
            if not t.table.check(name, t.library.error_of(ours.result(), right), most_of(size)):
                continue
            limits = limits_of(size)
            timers = {"braid": ours.events,
                      **float32_peers(t, name, layout, operands, right, theirs, limits)}
            series = t.clock.interleave(timers)
            rate = f"  {2 * size**3 / series['braid'].time() / 1e6:.1f} TFLOP/s"
            t.table.ratio(name, series, "braid", ("cublas", "torch"), bar, "no peer", rate)


def g2(t):
    """Products in tf32x3, whose error is at most twice that of exact sums, against exact ones."""
    float32_products(t, "G2", "tf32x3", lambda k: 2e-6 * math.sqrt(k), "exact",
                     lambda k: (1e-6 * math.sqrt(k), 0), 1.4)


def g3(t):
    """Products in TF32, whose operands are rounded to 11 bits, against the same. That is an error
    of about 3e-4; a peer with less did not use TF32."""
    float32_products(t, "G3", "tf32", lambda k: 1e-3, "tf32", lambda k: (1e-3, 1e-4), 0.6)


def g4(t):
    """Products of square matrices in three layouts, against cuBLAS and torch.matmul."""
    t.cublas("G4.cublas")
    for size in (24,) if t.dry else (4096, 8192):
        for layout in ("nn", "nt", "tn"):
            name = f"G4.{layout}.{size}"
            series = product(t, name, layout, size, size, size, BF16)
            if series:
                rate = f"  {2 * size**3 / series['braid'].time() / 1e6:.1f} TFLOP/s"
                t.table.ratio(name, series, "braid", ("cublas", "torch"), 0.6, "no cuBLAS", rate)


def g6h(t):
    """dX, dW and db of a large layer, against autograd in eager PyTorch."""
    for batch, out, into in ((5, 4, 3),) if t.dry else ((2048, 2048, 2048), (8192, 3072, 768)):
        name = f"G6h.{batch}x{out}x{into}"
        pair = layer_backward(t, name, *layer_operands(t, batch, out, into, BF16))
        if pair is None:
            continue
        timers = {"braid": pair[0].events}
        if pair[1]:
            timers["eager"] = t.peer.events(pair[1]())
        t.table.ratio(name, t.clock.interleave(timers), "braid", ("eager",), 0.6, t.peer.missing)
