"""Rows that time kernels by CUDA events: ceilings, G1, G1s, G6. The bars are the column "must" of
the table of goals."""

import math

from measure import geomean


def ceilings(t):
    """The upper bounds of this GPU, measured in the same run: copies, cuBLAS products, launches,
    transfers."""
    size = 1 << 12 if t.dry else 1 << 30
    count = 1 if t.dry else 25
    us = t.library.call_us("copy", size, count)
    rate = 2 * size / us * 1e6  # read and written
    t.table.figure("ceilings.copy", f"{rate / 1e12:.3f} TB/s, read + written", value=rate)
    n = 32 if t.dry else 8192
    flops = 2 * n**3
    a, b = t.library.normal(n, n), t.library.normal(n, n)

    def product_rate(name, contender, events):
        us = t.clock.interleave({contender: events})[contender].time()
        t.table.figure(name, f"{flops / us / 1e6:.1f} TFLOP/s at {n}", value=flops / us * 1e6)

    if t.cublas("ceilings.cublas.fp32"):
        work = t.library.work("nn", [a, b])
        product_rate("ceilings.cublas.fp32", "cublas", t.engine("cublas", work).events)
        halves = [t.library.normal(n, n, dtype="bfloat16") for _ in range(2)]
        work = t.library.work("nn", halves, dtype="bfloat16")
        product_rate("ceilings.cublas.bf16", "cublas", t.engine("cublas", work).events)
    if t.peer.missing:
        t.table.skip("ceilings.torch.tf32", t.peer.missing)
    else:
        torch, x, y = t.peer.torch, t.peer.view(a), t.peer.view(b)
        t.peer.tf32()
        product_rate("ceilings.torch.tf32", "torch", t.peer.events(lambda: torch.mm(x, y)))
        t.peer.exact()
    us = t.library.call_us("launch", 0, 2 if t.dry else 500)
    t.table.figure("ceilings.launch.gap", f"{us:.2f} us between empty kernels", value=us)
    us = t.library.call_us("launch_host", 0, 2 if t.dry else 500)
    t.table.figure("ceilings.launch.host", f"{us:.2f} us of the host a launch", value=us)
    us = t.library.call_us("graph_node", 0, 2 if t.dry else 20)
    t.table.figure("ceilings.graph.node", f"{us:.2f} us a node of a graph", value=us)
    size = 1 << 12 if t.dry else 256 << 20
    for kind in ("pinned", "pageable"):
        us = t.library.call_us(kind + "_upload", size, count)
        t.table.figure(f"ceilings.h2d.{kind}", f"{size / us / 1e3:.2f} GB/s", value=size / us * 1e6)


def torch_product(t, layout):
    torch = t.peer.torch
    return {
        "nn": lambda a, b: torch.mm(a, b),
        "nt": lambda a, b: torch.mm(a, b.t()),
        "tn": lambda a, b: torch.mm(a.t(), b),
    }[layout]


def rotation(t, *tensors):
    """Returns the number of operand sets to use in turn, so that none is in the cache: together at
    least 256 MB, but at most 64 sets."""
    size = 4 * sum(math.prod(shape) for shape in tensors)
    return 1 if t.dry else max(1, min(64, math.ceil((256 << 20) / size)))


def product(t, name, layout, m, n, k, dtype="float32"):
    """Checks and times the products of Braid, of cuBLAS (selected in Braid) and of PyTorch. Returns
    None if a result is wrong."""
    shapes = {"nn": ((m, k), (k, n)), "nt": ((m, k), (n, k)), "tn": ((k, m), (k, n))}[layout]
    sets = [
        [t.library.normal(*shape, dtype=dtype) for shape in shapes]
        for _ in range(rotation(t, *shapes))
    ]
    work = t.library.work(layout, *sets, dtype=dtype)
    right = t.library.work(layout + "64", sets[0], dtype="float64").result()
    # TF32 would have an error of 3e-4; bfloat16 results are rounded, by 1.7e-3 in the mean
    most = 1e-6 * math.sqrt(k) if dtype == "float32" else 4e-3
    if not t.table.check(name, t.library.error_of(work.result(), right), most):
        return None
    timers = {"braid": t.engine("braid", work).events}
    if t.has_cublas:
        theirs = t.engine("cublas", t.library.work(layout, *sets, dtype=dtype))
        if not t.table.check(name + ".cublas", t.library.error_of(theirs.result(), right), most):
            return None
        timers["cublas"] = theirs.events
    if not t.peer.missing:
        views, multiply = [[t.peer.view(x) for x in s] for s in sets], torch_product(t, layout)
        if not t.table.check(name + ".torch", t.peer.distance(multiply(*views[0]), right), most):
            return None
        timers["torch"] = t.peer.events(t.turns(views, multiply))
    return t.clock.interleave(timers)


def g1(t):
    """Exact fp32 products of square matrices in three layouts, against cuBLAS without TF32."""
    t.cublas("G1.cublas")
    for size in (24,) if t.dry else (2048, 4096, 8192):
        for layout in ("nn", "nt", "tn"):
            name = f"G1.{layout}.{size}"
            series = product(t, name, layout, size, size, size)
            if series:
                rate = f"  {2 * size**3 / series['braid'].time() / 1e6:.1f} TFLOP/s"
                peers = ("cublas", "torch")
                t.table.ratio(name, series, "braid", peers, 0.85, "no cuBLAS", rate)


# (rows, out, in) of layers that are not multiples of a tile, or thin in one dim.
SHAPES = (
    [
        (b, o, i)
        for b in (1, 32, 256)
        for o, i in ((1000, 2048), (4096, 1024), (10, 512), (3072, 768))
    ]
    + [(64, 512, 784), (100, 300, 500), (128, 257, 1025), (200, 1000, 1000), (333, 777, 555)]
    + [(500, 50, 5000), (512, 4096, 64), (777, 129, 33), (1000, 3, 1000), (1024, 1024, 1023)]
    + [(2000, 16, 2000), (2049, 2047, 2049), (4096, 10, 784), (4096, 128, 784), (8192, 64, 64)]
    + [(10000, 100, 100), (30000, 32, 48), (65536, 2, 5)]
)


def g1s(t):
    """The geometric mean over layer shapes, forward only, against torch.mm."""
    ratios, beside_cublas, worst, bound = [], [], None, 0
    for m, n, k in SHAPES[-2:-1] if t.dry else SHAPES:
        if t.dry:
            m, n, k = 9, 5, 7
        name = f"G1s.{m}x{n}x{k}"
        series = product(t, name, "nt", m, n, k)
        if not series:
            continue
        peer = "torch" if "torch" in series else "cublas" if "cublas" in series else None
        if peer:
            ratios.append(series[peer].time() / series["braid"].time())
            worst = min(worst or (9e9, ""), (ratios[-1], name))
        if "cublas" in series:
            beside_cublas.append(series["cublas"].time() / series["braid"].time())
        bound += series["braid"].time() < 8
        t.table.times(name, series)
    # A kernel of a few us takes as long as the host needs to queue it. There the hosts are
    # compared: PyTorch with Python, cuBLAS through Braid's own C++ host code.
    t.table.figure("G1s.host_bound", f"{bound} shapes of less than 8 us", value=bound)
    if beside_cublas:
        r = geomean(beside_cublas)
        text = f"r {r:.3f} over {len(beside_cublas)} shapes, cuBLAS through our C++ path"
        t.table.figure("G1s.cublas", text, value=r)
    if not ratios or t.peer.missing:
        return t.table.skip("G1s.geomean", t.peer.missing or "no ratio", ">= 0.95")
    r = geomean(ratios)
    text = f"r {r:.3f} over {len(ratios)} shapes, worst {worst[0]:.2f} at {worst[1]}"
    t.table.at_least("G1s.geomean", r, 0.95, text)


def layer_backward(t, name, operands, right, most):
    """dX, dW and db of a layer by autograd. Returns (Work, a function that makes PyTorch's
    version), or None if a result is wrong."""
    dtype = operands[0].dtype
    gradients = t.engine("braid", t.library.work("linear_gradients", operands, dtype=dtype))
    if not t.table.check(name, t.library.error_of(gradients.result(), right), most):
        return None
    work = t.engine("braid", t.library.work("linear_backward", operands, dtype=dtype))
    if t.peer.missing:
        return work, None
    torch = t.peer.torch

    def make():
        x, w, b = (t.peer.view(v).clone().requires_grad_() for v in operands[:3])
        dy, y = t.peer.view(operands[3]), torch.nn.functional.linear(x, w, b)
        return lambda: torch.autograd.grad(y, (x, w, b), dy, retain_graph=True)

    theirs = torch.cat([g.flatten() for g in make()()])
    if not t.table.check(name + ".torch", t.peer.distance(theirs, right), most):
        return None
    return work, make


def layer_operands(t, batch, out, into, dtype="float32"):
    operands = [
        t.library.normal(batch, into, dtype=dtype),
        t.library.normal(out, into, scale=into**-0.5, dtype=dtype),
        t.library.normal(out, dtype=dtype),
        t.library.normal(batch, out, dtype=dtype),
    ]
    right = t.library.work("linear_gradients64", operands, dtype="float64").result()
    most = 1e-6 * math.sqrt(max(batch, out, into)) if dtype == "float32" else 4e-3
    return operands, right, most


def g6(t):
    """dX, dW and db of a large layer, fp32, against autograd in eager PyTorch."""
    large = (2048, 2048, 2048), (4096, 1024, 4096), (8192, 4096, 1024)
    for batch, out, into in ((5, 4, 3),) if t.dry else large:
        name = f"G6.{batch}x{out}x{into}"
        pair = layer_backward(t, name, *layer_operands(t, batch, out, into))
        if pair is None:
            continue
        timers = {"braid": pair[0].events}
        if pair[1]:
            timers["eager"] = t.peer.events(pair[1]())
        t.table.ratio(name, t.clock.interleave(timers), "braid", ("eager",), 0.85, t.peer.missing)
