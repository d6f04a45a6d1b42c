"""The rows of attention: G9, whose bar is the column "must" of the table of goals, and scores."""

from contenders import add_backends, add_package

BF16 = "bfloat16"
MOST = 8e-3  # probabilities are rounded too


def checked(t, name, kind, operands, most):
    """Returns whether the result is that of float64."""
    got = t.library.work(kind, operands, dtype=BF16).result()
    right = t.library.work(kind + "64", operands, dtype="float64").result()
    return t.table.check(name, t.library.error_of(got, right), most)


def heads(t, batch, count, n, width):
    return [t.library.normal(batch, count, n, width, dtype=BF16) for _ in range(4)]


def forward(t, name, operands):
    """Returns the timers of the forward, and the names of SDPA's backends among them."""
    work = t.library.work("attention", operands[:3], dtype=BF16)
    timers = {"braid": work.events}
    if t.peer.missing:
        return timers, []
    torch, right = t.peer.torch, work.result()
    views = [t.peer.view(x) for x in operands[:3]]

    def sdpa():
        attend = torch.nn.functional.scaled_dot_product_attention
        return lambda: attend(*views, is_causal=True)

    backends = add_backends(t, name, timers, sdpa, right, 2 * MOST)
    add_package(t, name, timers, t.peer.flash_attn, lambda flash: flash.causal(*views), right,
                2 * MOST)
    return timers, backends


def backward(t, name, operands):
    """As forward, for dq, dk and dv. A backend's backward is that of its own forward. dq is
    compared."""
    work = t.library.work("attention_backward", operands, dtype=BF16)
    timers = {"braid": work.events}
    if t.peer.missing:
        return timers, []
    torch, right = t.peer.torch, work.result()
    views = [t.peer.view(x) for x in operands]

    def sdpa():
        inputs = [x.clone().requires_grad_() for x in views[:3]]
        y = torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=True)
        return lambda: torch.autograd.grad(y, inputs, views[3], retain_graph=True)[0]

    backends = add_backends(t, name, timers, sdpa, right, 4 * MOST)
    add_package(t, name, timers, t.peer.flash_attn,
                lambda flash: flash.causal_gradients(*views, torch), right, 4 * MOST)
    return timers, backends


def compare(t, name, timers, backends, bar, note=None):
    """Prints r against the fastest backend of SDPA, and beside it FlashAttention's."""
    series = t.clock.interleave(timers)
    note = note(series["braid"].time()) if note else ""
    missing = t.peer.missing or "no backend of SDPA"
    t.table.ratio(name, series, "braid", backends, bar, missing, note)
    if "flash_attn" in series:
        pair = {n: series[n] for n in ("braid", "flash_attn")}
        t.table.ratio(name + ".flash_attn", pair, "braid", ("flash_attn",))


def g9(t):
    """Causal attention, forward and backward, against the fastest backend of SDPA. The results are
    checked at a small size: in float64 a large one takes minutes. At the large size the contenders
    are compared with Braid."""
    for width in (16,) if t.dry else (64, 128):
        small = heads(t, 1, 2, 20 if t.dry else 300, width)
        if not checked(t, f"G9.hd{width}", "attention", small[:3], MOST):
            continue
        if not checked(t, f"G9.hd{width}.grad", "attention_gradients", small, 2 * MOST):
            continue
        for n in (32,) if t.dry else (2048, 4096, 8192, 16384):
            batch, count = (1, 2) if t.dry else (16384 // n, 2048 // width)
            operands = heads(t, batch, count, n, width)
            flops = 4 * batch * count * n * n * width / 2  # causal: half of the scores
            name = f"G9.hd{width}.{n}"
            compare(t, name, *forward(t, name, operands), 0.35,
                    lambda us, flops=flops: f"  {flops / us / 1e6:.1f} TFLOP/s")
            name += ".backward"
            compare(t, name, *backward(t, name, operands), None)


def scores(t):
    """q kᵀ of heads that are split off by a view and a transpose, whose batch dims no single stride
    steps through. The goals have no bar for it. Both copy the operands; at the short length the
    launches count, at the long one the product."""
    for length in (7,) if t.dry else (64, 1024):
        shape = (3, length, 2, 8) if t.dry else (32, length, 12, 64)
        q, k = (t.library.normal(*shape, dtype=BF16) for _ in range(2))
        name = f"scores.{length}"
        work = t.library.work("scores", [q, k], dtype=BF16)
        right = t.library.work("scores64", [q, k], dtype="float64").result()
        if not t.table.check(name, t.library.error_of(work.result(), right), MOST):
            continue
        timers = {"braid": work.events}
        if not t.peer.missing:
            views = [t.peer.view(x) for x in (q, k)]

            def multiply(views=views):
                return views[0].transpose(1, 2) @ views[1].permute(0, 2, 3, 1)

            if not t.table.check(name + ".torch", t.peer.distance(multiply(), right), MOST):
                continue
            timers["torch"] = t.peer.events(multiply)
        t.table.ratio(name, t.clock.interleave(timers), "braid", ("torch",), None, t.peer.missing)
