"""Rows of kernels that are limited by memory: G8, G8b, G8c. The bars are the column "must" of the
table of goals."""

import math

from contenders import add_compiled, add_package, failure
from library import Failure

BF16 = "bfloat16"
MOST = 1e-5
MOST_BF16 = 4e-3  # rounding results to bfloat16 has a mean error of 1.7e-3
EPS = 1e-5
EPS_RMS = 1e-6


def share_of_copy(t, name, series, moved, copied, bar=None):
    """Prints the bytes moved by Braid in a second, as a fraction of those of the copy."""
    rate = moved / series["braid"].time() * 1e6
    of_copy = copied / series["copy"].time() * 1e6
    noise = max(series[n].noise() for n in ("braid", "copy"))
    beside = f"{rate / of_copy:.3f} +-{noise:.3f} of the copy's {of_copy / 1e12:.3f}"
    text = f"{rate / 1e12:.3f} TB/s, {beside}"
    if bar is None:
        t.table.figure(name, text, value=rate / of_copy, noise=noise)
    else:
        t.table.at_least(name, rate / of_copy, bar, text, noise=noise)


def norm_operands(t, rows, width, dtype="float32"):
    """Returns x [rows, width], its weight and its bias."""
    return [t.library.normal(*shape, dtype=dtype) for shape in ((rows, width), (width,), (width,))]


def norm_shape(t, n):
    width = 32 if t.dry else 1024
    return n // width, width


def logits_of(t, n):
    """Returns n numbers in rows of 16384, and a class of each row."""
    rows, wide = (4, n // 4) if t.dry else (1 << 12, 1 << 14)
    return t.library.normal(rows, wide), t.library.labels(rows, wide)


def g8(t):
    """Memory-bound kernels on 256 MB and more, as a fraction of the rate of the driver's copy,
    which is timed in turn with each of them."""
    n, size = (1 << 10, 1 << 10) if t.dry else (1 << 26, 1 << 28)
    source = t.library.normal(size)
    copy = t.library.work("copy", [source])
    if not t.table.check("G8.copy", t.library.error_of(copy.result(), source), 0):
        return
    a, b = t.library.normal(n), t.library.normal(n)
    matrix, classes = logits_of(t, n)
    flat = t.library.normal(n, scale=1e-3)
    # name, work, operands, number of times that n numbers of 4 bytes are read or written
    cases = [
        ("add", "add", [a, b], 3),
        ("scale", "scale", [a], 2),
        ("exp", "exp", [a], 2),
        ("sum", "sum", [a], 1),
        ("softmax.16384", "softmax", [matrix], 2),
        ("layer_norm.1024", "layer_norm", norm_operands(t, *norm_shape(t, n)), 2),
        ("cross_entropy.16384", "cross_entropy", [matrix, classes], 1),
        ("sgd", "sgd", [a, flat], 3),
        ("adamw", "adamw", [a, flat], 7),
    ]
    for name, kind, operands, times in cases:
        try:
            work = t.library.work(kind, operands)
            if kind not in ("sgd", "adamw"):
                right = t.library.work(kind + "64", operands, dtype="float64").result()
                most = 1e-3 if kind == "sum" else MOST  # a sum may be close to 0
                if not t.table.check("G8." + name, t.library.error_of(work.result(), right), most):
                    continue
            series = t.clock.interleave({"braid": work.events, "copy": copy.events})
        except Failure as error:
            t.table.error("G8." + name, error)
            continue
        share_of_copy(t, "G8." + name, series, 4 * n * times, 2 * 4 * size, 0.85)


def compare(t, name, series, reason, bars, no_eager=None):
    """Prints a row for each contender: eager PyTorch, torch.compile and quack. Their bars may be
    missing. `reason` and `no_eager` say why torch.compile and eager PyTorch are."""
    for peer in ("eager", "compile", "quack"):
        missing = no_eager or t.peer.missing if peer == "eager" else reason
        if peer == "quack" and peer not in series:
            continue  # the first line says that it is absent, or a line of its own that it failed
        pair = {n: series[n] for n in ("braid", peer) if n in series}
        t.table.ratio(f"{name}.{peer}", pair, "braid", (peer,), bars.get(peer), missing)


def layer_norm_backward(t):
    """The backward of layer norm: as a fraction of the rate of the driver's copy, and beside
    PyTorch and quack."""
    rows, width = (6, 40) if t.dry else (1 << 17, 1024)
    operands = norm_operands(t, rows, width, BF16)
    operands.append(t.library.normal(rows, width, dtype=BF16))
    work = t.library.work("layer_norm_gradient", operands, dtype=BF16)
    right = t.library.work("layer_norm_gradient64", operands, dtype="float64").result()
    if not t.table.check("G8b", t.library.error_of(work.result(), right), MOST_BF16):
        return
    source = t.library.normal(rows * width)
    series = t.clock.interleave({"braid": work.events,
                                 "copy": t.library.work("copy", [source]).events})
    # x and dy are read, dx is written
    share_of_copy(t, "G8b", series, 3 * 2 * rows * width, 2 * 4 * rows * width, 0.65)
    timers, reason = {"braid": work.events}, t.peer.missing
    if not reason:
        torch = t.peer.torch
        x, w, b, dy = (t.peer.view(v).clone() for v in operands)
        inputs = [v.requires_grad_() for v in (x, w, b)]

        def layer(x, w, b):
            return torch.nn.functional.layer_norm(x, (width,), w, b, EPS)

        def backward_of(y):
            return lambda: torch.autograd.grad(y, inputs, dy, retain_graph=True)

        eager = backward_of(layer(*inputs))
        if not t.table.check("G8b.eager", t.peer.distance(eager()[0], right), MOST_BF16):
            return
        timers["eager"] = t.peer.events(eager)
        # the compiled function is the backward of a compiled forward
        reason = add_compiled(t, timers, layer, [inputs], lambda fast: backward_of(fast(*inputs)))
        plain = [v.detach() for v in (x, w.float(), b.float(), dy)]
        add_package(t, "G8b", timers, t.peer.quack,
                    lambda quack: quack.layer_norm_backward(*plain, EPS), right, MOST_BF16)
    compare(t, "G8b", t.clock.interleave(timers), reason, {"eager": 1.4})


def norm_backward(t, name, kind, shape, parameters, function, times):
    """The backward of another norm, without a bar: beside the driver's copy and eager PyTorch's
    function(F, x, weight, bias). `times` is how often x, dy and dx are read or written."""
    channels = (shape[1],)  # also the width of rows
    operands = [t.library.normal(*size, dtype=BF16)
                for size in (shape, *[channels] * parameters, shape)]
    work = t.library.work(kind, operands, dtype=BF16)
    right = t.library.work(kind + "64", operands, dtype="float64").result()
    if not t.table.check(name, t.library.error_of(work.result(), right), MOST_BF16):
        return
    n = math.prod(shape)
    copy = t.library.work("copy", [t.library.normal(n)])
    series = t.clock.interleave({"braid": work.events, "copy": copy.events})
    share_of_copy(t, name, series, times * 2 * n, 2 * 4 * n)
    timers, missing = {"braid": work.events}, t.peer.missing
    if not missing:
        torch = t.peer.torch
        *inputs, dy = (t.peer.view(v).clone() for v in operands)
        for v in inputs:
            v.requires_grad_()
        try:
            y = function(torch.nn.functional, *inputs)
        except Exception as error:  # PyTorch 2.4 is the first with rms_norm
            if t.dry:
                raise
            return t.table.skip(name + ".eager", failure(error))

        def eager():
            return torch.autograd.grad(y, inputs, dy, retain_graph=True)

        if not t.table.check(name + ".eager", t.peer.distance(eager()[0], right), MOST_BF16):
            return
        timers["eager"] = t.peer.events(eager)
    t.table.ratio(name + ".eager", t.clock.interleave(timers), "braid", ("eager",), None, missing)


def g8b(t):
    """The backward of norms in bfloat16. Layer norm has bars."""
    rows, images = ((6, 40), (3, 32, 3, 5)) if t.dry else ((1 << 17, 1024), (128, 256, 56, 56))
    # name, work, shape of x, number of parameters, PyTorch's function, times
    cases = [
        ("rms_norm.1024", "rms_norm_gradient", rows, 1,
         lambda F, x, w: F.rms_norm(x, w.shape, w, EPS_RMS), 3),
        ("group_norm.32", "group_norm_gradient", images, 2,
         lambda F, x, w, b: F.group_norm(x, 32, w, b, EPS), 3),
        # the sums of a channel are needed before the first dx: x and dy are read twice
        ("batch_norm.256", "batch_norm_gradient", images, 2,
         lambda F, x, w, b: F.batch_norm(x, None, None, w, b, True, 0.1, EPS), 5),
    ]
    others = [("G8b." + name, norm_backward, ("G8b." + name, *case)) for name, *case in cases]
    each(t, [("G8b", layer_norm_backward, ()), *others])


def each(t, cases):
    """Calls f(t, *arguments) for each (name, f, arguments). An error ends only that case."""
    for name, f, arguments in cases:
        try:
            f(t, *arguments)
        except Exception as error:
            if t.dry:
                raise
            t.table.error(name, error)


def forward_beside(t, name, kind, operands, function, of_quack, bars):
    """A kernel of float32, forward, beside PyTorch's function(F, ..) and quack's."""
    work = t.library.work(kind, operands)
    right = t.library.work(kind + "64", operands, dtype="float64").result()
    if not t.table.check(name, t.library.error_of(work.result(), right), MOST):
        return
    timers, reason, no_eager = {"braid": work.events}, t.peer.missing, None
    if not reason:
        F, views = t.peer.torch.nn.functional, [t.peer.view(v) for v in operands]

        def eager(*views):
            return function(F, *views)

        try:
            error = t.peer.distance(eager(*views), right)
        except Exception as missing:  # PyTorch 2.4 is the first with rms_norm
            if t.dry:
                raise
            no_eager = reason = failure(missing)
        else:
            if not t.table.check(name + ".eager", error, MOST):
                return
            timers["eager"] = t.peer.events(lambda: eager(*views))
            reason = add_compiled(t, timers, eager, [views])
        add_package(t, name, timers, t.peer.quack, lambda quack: of_quack(quack, *views), right,
                    MOST)
    compare(t, name, t.clock.interleave(timers), reason, bars, no_eager)


def g8c(t):
    """Softmax, norms and cross entropy of float32, forward, beside PyTorch and quack. The goals
    have bars for softmax and layer norm."""
    n = 1 << 10 if t.dry else 1 << 26
    matrix, classes = logits_of(t, n)
    norm = norm_operands(t, *norm_shape(t, n))
    bars = {"eager": 1.1, "compile": 0.95}
    # name, work, operands, PyTorch's function, quack's, bars
    cases = [
        ("softmax.16384", "softmax", [matrix], lambda F, x: F.softmax(x, -1),
         lambda quack, x: quack.softmax(x), bars),
        ("layer_norm.1024", "layer_norm", norm,
         lambda F, x, w, b: F.layer_norm(x, w.shape, w, b, EPS),
         lambda quack, x, w, b: quack.layer_norm(x, w, b, EPS), bars),
        ("rms_norm.1024", "rms_norm", norm[:2], lambda F, x, w: F.rms_norm(x, w.shape, w, EPS_RMS),
         lambda quack, x, w: quack.rms_norm(x, w, EPS_RMS), {}),
        ("cross_entropy.16384", "cross_entropy", [matrix, classes],
         lambda F, x, y: F.cross_entropy(x, y), lambda quack, x, y: quack.cross_entropy(x, y), {}),
    ]
    each(t, [("G8c." + name, forward_beside, ("G8c." + name, *case)) for name, *case in cases])
