"""Rows of training steps that read their operands once: the gradient of an embedding, and clipping
with the optimizer's step. They have no bars."""

MOST = 1e-5  # sums of up to thousands of float32 numbers, against float64


def embedding(t):
    """The gradient of an embedding of GPT-2's size at the words of a Zipf text, beside PyTorch and
    the driver's copy of the incoming gradient."""
    rows, words, width = (40, 30, 8) if t.dry else (8192, 50257, 768)
    places = t.library.labels(rows, words)
    operands = [t.library.normal(words, width), places, t.library.normal(rows, width)]
    work = t.library.work("embedding_gradient", operands)
    right = t.library.work("embedding_gradient64", operands, dtype="float64").result()
    if not t.table.check("embedding", t.library.error_of(work.result(), right), MOST):
        return
    timers = {"braid": work.events, "copy": t.library.work("copy", [operands[2]]).events}
    if not t.peer.missing:
        torch = t.peer.torch
        weight = t.peer.view(operands[0]).clone().requires_grad_()
        dy = t.peer.view(operands[2])
        u = t.peer.view(places).to(torch.float64) / words
        index = torch.pow(float(words), u).to(torch.int64) - 1
        y = torch.nn.functional.embedding(index, weight)
        timers["torch"] = t.peer.events(
            lambda: torch.autograd.grad(y, weight, dy, retain_graph=True))
    t.table.times("embedding", t.clock.interleave(timers))


PIECES = 148  # as many parameters as GPT-2 has
# so low that AdamW's eps counts: its step hardly depends on the size of larger gradients
MAX_NORM = 1e-4
MOST_OF_STEP = 1e-6  # of weights of about 1, which a step changes by 1e-3


def clip(t):
    """Clipping 148 gradients and AdamW's step: one after the other, and in the step itself. Beside
    them PyTorch's clip_grad_norm_ and fused AdamW."""
    n = PIECES * (4 if t.dry else 1 << 18)
    operands = [t.library.normal(n), t.library.normal(n, scale=1e-3)]
    in_step = t.library.work("adamw_clipping", operands)
    before = t.library.work("clip_then_adamw", operands)
    stepped = in_step.result()
    if not t.table.check("clip", t.library.error_of(before.result(), stepped), MOST_OF_STEP):
        return
    timers = {"in_step": in_step.events,
              "before": before.events,
              "adamw": t.library.work("adamw", operands).events,
              "copy": t.library.work("copy", [operands[0]]).events}
    if not t.peer.missing:
        torch = t.peer.torch
        whole, gradient = (t.peer.view(x).clone() for x in operands)
        parameters = [p.detach().requires_grad_() for p in whole.chunk(PIECES)]
        for p, g in zip(parameters, gradient.chunk(PIECES)):
            p.grad = g
        optimizer = torch.optim.AdamW(parameters, fused=True)

        def step():
            torch.nn.utils.clip_grad_norm_(parameters, MAX_NORM, foreach=True)
            optimizer.step()

        step()
        if not t.table.check("clip.torch", t.peer.distance(whole, stepped), MOST_OF_STEP):
            return
        timers["torch"] = t.peer.events(step)
    t.table.times("clip", t.clock.interleave(timers))
