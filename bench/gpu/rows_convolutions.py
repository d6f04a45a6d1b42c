"""Rows of convolutions: conv (bfloat16, and exact float32) and tf32. The goals have no bars for
them."""

import math

from measure import during

MOST_BF16 = 4e-3  # rounding results to bfloat16 has a mean error of 1.7e-3

# (images, channels, side, filters, kernel) of ResNet-50
CONVOLUTIONS = ((64, 64, 56, 64, 3), (64, 128, 28, 128, 3), (64, 256, 14, 256, 3),
                (64, 1024, 14, 256, 1))


def cudnn(t, part, operands, pad):
    """Returns PyTorch's function for a part of the work, with channels last in memory."""
    torch = t.peer.torch
    last = torch.channels_last
    x, w, dy = (t.peer.view(o).contiguous(memory_format=last) for o in operands[:3])
    convolve = torch.nn.functional.conv2d
    if part == "transposed":
        transposed, bias = torch.nn.functional.conv_transpose2d, t.peer.view(operands[3])
        return lambda: transposed(dy, w, bias, padding=pad)
    if part == "forward":
        return lambda: convolve(x, w, padding=pad)
    # the gradient of one operand alone: the other needs none
    wanted = (x if part == "dx" else w).detach().requires_grad_()
    y = convolve(wanted, w, padding=pad) if part == "dx" else convolve(x, wanted, padding=pad)
    return lambda: torch.autograd.grad(y, wanted, dy, retain_graph=True)[0]


def convolutions(t, prefix, dtype, most_of, wrap, around):
    """Convolutions with padding, beside cuDNN: forward, dX, dW, and the transposed convolution,
    which is dX with a bias. most_of(k) is the largest error of sums of k products; `wrap` gets
    Braid's work, `around` PyTorch's function and timer."""
    for n, into, side, out, kernel in ((2, 8, 5, 8, 3),) if t.dry else CONVOLUTIONS:
        x = t.library.normal(n, into, side, side, dtype=dtype)
        w = t.library.normal(out, into, kernel, kernel, scale=(into * kernel**2) ** -0.5,
                             dtype=dtype)
        dy = t.library.normal(n, out, side, side, dtype=dtype)
        bias = t.library.normal(into, dtype=dtype)
        sums = {"forward": into * kernel**2, "dx": out * kernel**2, "dw": n * side**2,
                "transposed": out * kernel**2 + 1}
        for part, k in sums.items():
            name = f"{prefix}.{into}x{side}x{out}x{kernel}" + f".{part}" * (part != "forward")
            kind = f"conv{kernel}" + f"_{part}" * (part != "forward")
            operands = {"forward": [x, w], "transposed": [dy, w, bias]}.get(part, [x, w, dy])
            work = wrap(t.library.work(kind, operands, dtype=dtype))
            right = t.library.work(kind + "64", operands, dtype="float64").result()
            if not t.table.check(name, t.library.error_of(work.result(), right), most_of(k)):
                continue
            timers = {"braid": work.events}
            if not t.peer.missing:
                run = cudnn(t, part, [x, w, dy, bias], kernel // 2)
                error = t.peer.distance(around(run)(), right)
                # PyTorch on the CPU rounds parts of the sums of a dX in bfloat16
                if not t.table.check(name + ".cudnn", error, (2 if t.dry else 1) * most_of(k)):
                    continue
                timers["cudnn"] = around(t.peer.events(run))
            series = t.clock.interleave(timers)
            t.table.ratio(name, series, "braid", ("cudnn",), None, t.peer.missing)


def exact_sums(k):
    return 2e-6 * math.sqrt(k)


def conv(t):
    """Convolutions of bfloat16, then those of float32 without TF32, for both contenders."""
    with t.peer.searching():
        convolutions(t, "conv", "bfloat16", lambda k: MOST_BF16, lambda work: work, lambda f: f)
        convolutions(t, "conv.fp32", "float32", exact_sums, lambda work: work, lambda f: f)


def tf32(t):
    """Convolutions of float32 on tensor cores, in TF32. The products are G2 and G3."""
    with t.peer.searching():
        convolutions(t, "tf32.conv", "float32", lambda k: 1e-3,
                     lambda work: t.precision("tf32", work),
                     lambda f: during(t.peer.tf32, t.peer.exact, f))
