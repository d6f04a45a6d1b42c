"""Rows of tensor cores: G4, G6h, G8b, G9 and convolutions of bfloat16, and tf32. Their bars are the
column "must" of the table of goals; convolutions and tf32 have none."""

import math

from measure import during
from rows_kernels import layer_backward, layer_operands, product

BF16 = "bfloat16"
MOST = 4e-3  # rounding results to bfloat16 has a mean error of 1.7e-3
MOST_ATTENTION = 8e-3  # probabilities are rounded too


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


def checked(t, name, kind, operands, most):
    """Returns the work, or None if its result differs from that of float64."""
    work = t.library.work(kind, operands, dtype=BF16)
    right = t.library.work(kind + "64", operands, dtype="float64").result()
    return work if t.table.check(name, t.library.error_of(work.result(), right), most) else None


def heads(t, batch, count, n, width):
    return [t.library.normal(batch, count, n, width, dtype=BF16) for _ in range(4)]


def g9(t):
    """Causal attention, forward and backward, against the best backend of SDPA. The results are
    checked at a small size: in float64 a large one takes minutes."""
    for width in (16,) if t.dry else (64, 128):
        small = heads(t, 1, 2, 20 if t.dry else 300, width)
        if not checked(t, f"G9.hd{width}", "attention", small[:3], MOST_ATTENTION):
            continue
        if not checked(t, f"G9.hd{width}.grad", "attention_gradients", small, 2 * MOST_ATTENTION):
            continue
        for n in (32,) if t.dry else (2048, 4096, 8192, 16384):
            batch, count = (1, 2) if t.dry else (16384 // n, 2048 // width)
            operands = heads(t, batch, count, n, width)
            flops = 4 * batch * count * n * n * width / 2  # causal: half of the scores
            forward = {"braid": t.library.work("attention", operands[:3], dtype=BF16).events}
            back = {"braid": t.library.work("attention_backward", operands, dtype=BF16).events}
            if not t.peer.missing:
                torch = t.peer.torch
                attend = torch.nn.functional.scaled_dot_product_attention
                q, k, v = (t.peer.view(x).clone().requires_grad_() for x in operands[:3])
                dy, y = t.peer.view(operands[3]), attend(q, k, v, is_causal=True)

                def sdpa(q=q, k=k, v=v):
                    with torch.no_grad():
                        return attend(q, k, v, is_causal=True)

                def gradients(q=q, k=k, v=v, y=y, dy=dy):
                    return torch.autograd.grad(y, (q, k, v), dy, retain_graph=True)

                forward["sdpa"], back["sdpa"] = t.peer.events(sdpa), t.peer.events(gradients)
            series = t.clock.interleave(forward)
            rate = f"  {flops / series['braid'].time() / 1e6:.1f} TFLOP/s"
            name = f"G9.hd{width}.{n}"
            t.table.ratio(name, series, "braid", ("sdpa",), 0.35, t.peer.missing, rate)
            t.table.times(name + ".backward", t.clock.interleave(back))


def g8b(t):
    """The backward of layer norm as a fraction of the rate of the driver's copy."""
    rows, width = (6, 40) if t.dry else (1 << 17, 1024)
    operands = [t.library.normal(rows, width, dtype=BF16), t.library.normal(width, dtype=BF16),
                t.library.normal(width, dtype=BF16), t.library.normal(rows, width, dtype=BF16)]
    work = checked(t, "G8b", "layer_norm_gradient", operands, MOST)
    if not work:
        return
    source = t.library.normal(rows * width)
    copy = t.library.work("copy", [source])
    series = t.clock.interleave({"braid": work.events, "copy": copy.events})
    rate = 3 * 2 * rows * width / series["braid"].time() * 1e6  # x and dy are read, dx is written
    copied = 2 * 4 * rows * width / series["copy"].time() * 1e6
    noise = max(s.noise() for s in series.values())
    text = f"{rate / 1e12:.3f} TB/s, {rate / copied:.3f} +-{noise:.3f} of the copy's"
    t.table.at_least("G8b", rate / copied, 0.65, text, noise=noise)


# (images, channels, side, filters, kernel) of ResNet-50
CONVOLUTIONS = ((64, 64, 56, 64, 3), (64, 128, 28, 128, 3), (64, 256, 14, 256, 3),
                (64, 1024, 14, 256, 1))


def convolutions(t, prefix, dtype, most, wrap):
    """Convolutions with padding, forward, beside cuDNN with channels last. `wrap` gets the work."""
    for n, into, side, out, kernel in ((2, 8, 5, 8, 3),) if t.dry else CONVOLUTIONS:
        operands = [t.library.normal(n, into, side, side, dtype=dtype),
                    t.library.normal(out, into, kernel, kernel, scale=(into * kernel**2) ** -0.5,
                                     dtype=dtype)]
        name = f"{prefix}.{into}x{side}x{out}x{kernel}"
        work = wrap(t.library.work(f"conv{kernel}", operands, dtype=dtype))
        right = t.library.work(f"conv{kernel}64", operands, dtype="float64").result()
        if not t.table.check(name, t.library.error_of(work.result(), right), most):
            continue
        timers = {"braid": work.events}
        if not t.peer.missing:
            torch = t.peer.torch
            x, w = (t.peer.view(o).contiguous(memory_format=torch.channels_last) for o in operands)

            def cudnn(x=x, w=w, pad=kernel // 2):
                return torch.nn.functional.conv2d(x, w, padding=pad)

            timers["cudnn"] = t.peer.events(cudnn)
        t.table.times(name, t.clock.interleave(timers))


def conv(t):
    """Convolutions of bfloat16. There is no bar."""
    convolutions(t, "conv", BF16, MOST, lambda work: work)


def tf32(t):
    """float32 on tensor cores: square products, and the convolutions of the row conv, in tf32
    beside cuBLAS, cuDNN and torch, which use it too, and in tf32x3 beside exact ones of cuBLAS."""
    t.cublas("tf32.cublas")
    for size in (40,) if t.dry else (4096, 8192):
        operands = [t.library.normal(size, size), t.library.normal(size, size)]
        right = t.library.work("nn64", operands, dtype="float64").result()
        # operands rounded to 11 bits; of tf32x3 the bound of exact sums, twice
        for precision, most in (("tf32", 1e-3), ("tf32x3", 2e-6 * math.sqrt(size))):
            name = f"tf32.{precision}.{size}"
            ours = t.precision(precision, t.engine("braid", t.library.work("nn", operands)))
            if not t.table.check(name, t.library.error_of(ours.result(), right), most):
                continue
            timers = {"braid": ours.events}
            theirs = "tf32" if precision == "tf32" else "exact"
            if t.has_cublas:
                work = t.engine("cublas", t.library.work("nn", operands))
                timers["cublas"] = t.precision(theirs, work).events
            if precision == "tf32" and not t.peer.missing:
                a, b = (t.peer.view(x) for x in operands)

                def multiply(a=a, b=b):
                    return t.peer.torch.matmul(a, b)

                timers["torch"] = during(t.peer.tf32, t.peer.exact, t.peer.events(multiply))
            series = t.clock.interleave(timers)
            t.table.times(name, series)
            rate = 2 * size**3 / series["braid"].time() / 1e6
            t.table.figure(name + ".rate", f"{rate:.1f} TFLOP/s", value=rate)
    # PyTorch allows TF32 in convolutions by a setting of its own
    convolutions(t, "tf32.conv", "float32", 1e-3, lambda work: t.precision("tf32", work))
