"""Rows timed by the host's clock, for whole steps and host overhead: G6s, G7, captured, G12, G13,
G14."""

import os
import sys

from measure import geomean
from rows_kernels import layer_backward, layer_operands


def add_graph(t, timers, make):
    """Adds a timer of PyTorch's CUDA graph of the function that make() returns. An error does not
    end the row, except in a dry run, where nothing may fail: it is returned as text."""
    try:
        timers["graph"] = t.peer.wall(t.peer.graph(make))
    except Exception as error:
        if t.dry:
            raise
        return f"torch's CUDA graph: {type(error).__name__}"
    return None


def small(t, name, usual, captured, make):
    """Compares Braid, as usual, with eager PyTorch, whose function make() returns; and Braid's
    captured work with PyTorch's CUDA graph of that function."""
    timers, failed = {"braid": usual.wall, "captured": captured.wall}, t.peer.missing
    if make:
        timers["eager"] = t.peer.wall(make())
        failed = add_graph(t, timers, make)
    series = t.clock.interleave(timers)
    for ours, peer, bar, missing in (("braid", "eager", 5, t.peer.missing),
                                     ("captured", "graph", 1.5, failed)):
        pair = {n: series[n] for n in (ours, peer) if n in series}
        t.table.ratio(f"{name}.{peer}", pair, ours, (peer,), bar, missing)


def captured_backward(t, name, operands, right, most):
    """Returns the backward of a layer as a captured step, or None if a result is wrong."""
    gradients = t.engine("braid", t.library.work("captured_linear_gradients", operands))
    for _ in range(4):  # recorded in the third call, then replayed
        error = t.library.error_of(gradients.result(), right)
        if not t.table.check(f"{name}.captured", error, most):
            return None
    return t.engine("braid", t.library.work("captured_linear_backward", operands))


def g6s(t):
    """dX, dW and db of small layers, timed by the host's clock. As usual beside eager PyTorch, and
    captured beside PyTorch's CUDA graph."""
    sizes = ((3, 2, 5),) if t.dry else ((16, 32, 32), (30, 2, 5), (64, 10, 64), (64, 64, 64))
    for batch, out, into in sizes:
        name = f"G6s.{batch}x{out}x{into}"
        layer = layer_operands(t, batch, out, into)
        pair = layer_backward(t, name, *layer)
        captured = captured_backward(t, name, *layer)
        if pair and captured:
            small(t, name, pair[0], captured, pair[1])


def equal_losses(t, name, works):
    """Returns the losses of the first steps, as usual and captured, or None after an error if they
    differ. A captured step is recorded in the third call, then replayed."""
    usual, recorded = ([work.result().item() for _ in range(6)] for work in works.values())
    if usual == recorded:
        return usual
    t.table.error(name, RuntimeError(f"expected equal losses, got {usual} and {recorded}"))
    return None


def g7(t):
    """A whole SGD step of Linear(5, 2) on 30 rows: forward, loss, backward, update. As usual beside
    eager PyTorch, and captured beside PyTorch's step as a CUDA graph."""
    kinds = {"usual": "sgd_step", "captured": "captured_sgd_step"}
    works = {name: t.library.work(kind) for name, kind in kinds.items()}
    losses = equal_losses(t, "G7", works)
    if losses is None:
        return
    timers, reason = {name: work.wall for name, work in works.items()}, t.peer.missing
    if not reason:
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))
        import rows

        row = rows.linear_row()
        row.model.to(t.peer.device)
        row.x, row.y = row.x.to(t.peer.device), row.y.to(t.peer.device)
        theirs = rows.losses(row, len(losses))
        apart = max(abs(a - b) / abs(b) for a, b in zip(losses, theirs))
        if not t.table.check("G7.losses", apart, 1e-4):
            return
        timers["eager"] = t.peer.wall(row.step)
        reason = add_graph(t, timers, lambda: row.step)
    series = t.clock.interleave(timers)

    def compare(name, ours, peer, bar):
        pair = {n: series[n] for n in (ours, peer) if n in series}
        t.table.ratio(f"G7.{name}", pair, ours, (peer,), bar, reason)

    compare("linear_30x5x2_sgd", "usual", "eager", 10)
    compare("captured", "captured", "graph", 1.5)


def torch_step(t, operands):
    """Returns PyTorch's step of `captured`."""
    torch, F = t.peer.torch, t.peer.torch.nn.functional
    p = [t.peer.view(x).clone().requires_grad_() for x in operands[:6]]
    x, label = (t.peer.view(v).clone() for v in operands[6:])
    optimizer = torch.optim.AdamW(p, fused=True, capturable=not t.dry)

    def step():
        optimizer.zero_grad()
        h = F.relu(F.linear(F.relu(F.linear(x, p[0], p[1])), p[2], p[3]))
        loss = F.cross_entropy(F.linear(h, p[4], p[5]), label)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(p, 1.0, foreach=True)
        optimizer.step()
        return loss.detach()

    return step


def captured(t):
    """A training step of a small network with clipping and AdamW, as usual and captured, beside
    PyTorch's as usual and as a CUDA graph. It has no bar."""
    rows, width, classes = (3, 5, 4) if t.dry else (64, 256, 10)
    shapes = [(width, width), (width,), (width, width), (width,), (classes, width), (classes,)]
    operands = [t.library.normal(*shape, scale=width**-0.5) for shape in shapes]
    operands += [t.library.normal(rows, width), t.library.labels(rows, classes)]
    works = {"usual": t.library.work("mlp_step", operands),
             "captured": t.library.work("captured_step", operands)}
    losses = equal_losses(t, "captured", works)
    if losses is None:
        return
    timers, failed = {name: work.wall for name, work in works.items()}, None
    if not t.peer.missing:
        step = torch_step(t, operands)
        theirs = [step().item() for _ in losses]
        apart = max(abs(a - b) / abs(b) for a, b in zip(losses, theirs))
        if not t.table.check("captured.losses", apart, 1e-3):
            return
        timers["torch"] = t.peer.wall(torch_step(t, operands))
        failed = add_graph(t, timers, lambda: torch_step(t, operands))
    t.table.times("captured", t.clock.interleave(timers), f"  ({failed})" if failed else "")


def g12(t):
    """The host's time of an allocation and its release, both served by the cache."""
    count, size = (2, 1 << 10) if t.dry else (20000, 1 << 20)
    best = {}
    for _ in range(t.clock.rounds):
        for name in ("braid_malloc", "malloc_async"):
            best.setdefault(name, []).append(t.library.call_us(name, size, count) * 1e3)
        if not t.peer.missing:
            allocate = t.peer.cuda.caching_allocator_alloc
            release = t.peer.cuda.caching_allocator_delete
            call = t.peer.enqueue(lambda: release(allocate(size)))
            best.setdefault("torch", []).append(call(count) * 1e3)
    ns = {name: sorted(values)[len(values) // 2] for name, values in best.items()}
    ours = ns["braid_malloc"]
    t.table.at_most("G12.hit", ours, 200, f"{ours:.0f} ns")
    r = ns["malloc_async"] / max(ours, 1e-9)
    text = f"r {r:.2f}  cudaMallocAsync {ns['malloc_async']:.0f} ns"
    t.table.at_least("G12.malloc_async", r, 5, text)
    if "torch" in ns:
        r = ns["torch"] / max(ours, 1e-9)
        # No bar: most of this time is the call from Python.
        called = f"torch's caching allocator, called from Python: {ns['torch']:.0f} ns"
        t.table.figure("G12.torch", f"r {r:.2f}  {called}", value=r)
    else:
        t.table.skip("G12.torch", t.peer.missing)


def g13(t):
    """Copies from the host to the GPU: pinned, pageable, overlapped with work of the GPU, and the
    host's time to queue one behind such work."""
    n = 1 << 8 if t.dry else 1 << 25
    host = t.library.normal(n)
    # torch's copy from pageable memory reads its source before it returns; so does Braid's.
    for kind, name, bar in (("upload_pinned", "pinned", 0.95), ("upload", "pageable", 1.0)):
        work = t.library.work(kind, [host])
        t.table.check(f"G13.{name}.values", t.library.error_of(work.result(), host), 0)
        timers = {"braid": work.wall}
        if not t.peer.missing:
            timers["torch"] = t.peer.wall(torch_upload(t, host, kind == "upload_pinned"))
        series = t.clock.interleave(timers)
        rate = f"  {4 * n / series['braid'].time() / 1e3:.2f} GB/s"
        t.table.ratio(f"G13.{name}", series, "braid", ("torch",), bar, t.peer.missing, rate)
    wide = 16 if t.dry else 2048
    operands = [host, t.library.normal(wide, wide), t.library.normal(wide, wide)]
    kinds = ("only_copy", "only_work", "copy_beside_work")
    series = t.clock.interleave({kind: t.library.work(kind, operands).wall for kind in kinds})
    copy, work, both = (series[kind].time() for kind in kinds)
    hidden = (copy + work - both) / min(copy, work)
    text = f"{hidden:.2f} hidden: copy {copy:.0f} us, work {work:.0f} us, both {both:.0f} us"
    t.table.at_least("G13.overlap", hidden, 0.7, text)
    # Upload run-ahead, without a bar: 16 MB behind eight products that are queued.
    operands[0] = t.library.normal(n // 8)
    for kind, pinned in (("copy_beside_work", True), ("pageable_beside_work", False)):
        timers = {"braid": t.library.work(kind, operands).enqueue}
        if not t.peer.missing:
            upload, mm = torch_upload(t, operands[0], pinned), t.peer.torch.mm
            a, b = (t.peer.view(x) for x in operands[1:])

            def behind_work(upload=upload, mm=mm, a=a, b=b):
                for _ in range(8):
                    mm(a, b)
                return upload()

            timers["torch"] = t.peer.enqueue(behind_work)
        name = "G13.run_ahead." + ("pinned" if pinned else "pageable")
        t.table.times(name, t.host_clock.interleave(timers))


def torch_upload(t, values, pinned):
    """Returns PyTorch's copy of the values from the host, which does not block from pinned
    memory."""
    there = t.peer.view(values).cpu()
    # without a GPU, in a dry run, PyTorch can pin nothing
    there = there.pin_memory() if pinned and t.peer.device == "cuda" else there
    return lambda: there.to(t.peer.device, non_blocking=True, copy=True)


def g14(t):
    """The host's time to queue an op, against eager PyTorch: the geometric mean over the ops."""
    x, y = t.library.normal(64), t.library.normal(64)
    a, b, bias = t.library.normal(16, 16), t.library.normal(16, 16), t.library.normal(16)
    cases = {"add": [x, y], "scale": [x], "relu": [x], "exp": [x], "sum": [x]}
    cases |= {"nn": [a, b], "softmax": [a], "linear_relu": [a, b, bias]}
    works = {kind: t.library.work(kind, operands) for kind, operands in cases.items()}
    theirs = {}
    if not t.peer.missing:
        torch, F = t.peer.torch, t.peer.torch.nn.functional
        p, q, m, n, c = (t.peer.view(v) for v in (x, y, a, b, bias))
        # One closure for each op, because any other Python code would be counted against PyTorch.
        functions = {
            "add": lambda: p + q,
            "scale": lambda: p * 1.5,
            "relu": lambda: torch.relu(p),
            "exp": lambda: torch.exp(p),
            "sum": lambda: p.sum(),
            "nn": lambda: torch.mm(m, n),
            "softmax": lambda: torch.softmax(m, -1),
            "linear_relu": lambda: torch.relu(F.linear(m, n, c)),
        }
        theirs = {kind: t.peer.enqueue(functions[kind]) for kind in cases}
    ratios, clock = [], t.host_clock
    for kind, work in works.items():
        timers = {"braid": work.enqueue}
        if kind in theirs:
            timers["eager"] = theirs[kind]
        series = clock.interleave(timers)
        if "eager" in series:
            ratios.append(series["eager"].time() / series["braid"].time())
        t.table.times("G14." + kind, series)
    if ratios:
        text = f"r {geomean(ratios):.2f} over {len(ratios)} ops"
        t.table.at_least("G14.geomean", geomean(ratios), 2, text)
    else:
        t.table.skip("G14.geomean", t.peer.missing, ">= 2")
