#!/usr/bin/env python3
"""Writes goldens/bfloat16_errors.safetensors: the errors of PyTorch's bfloat16 on the CPU against
float64, for tests/core/test_bfloat16_errors.cpp. For each case and each of DRAWS draws of its
inputs it has the root mean square error of each result, and the largest error. The inputs are the
numbers of `numbers`, which bfloat16 represents exactly. Run it with python -P: goldens/numpy would
hide the package of that name."""
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import save_file


DRAWS = 160


def numbers(shape, seed):
    n = 1
    for s in shape:
        n *= s
    i = torch.arange(n, dtype=torch.int64)
    return (((i * 7919 + seed * 104729) % 509) % 253 - 126).double().reshape(shape) / 64


def attention(causal, r):
    shape = (1, 2, 128, 64)
    inputs = [numbers(shape, seed) for seed in (1 + r, 2 + r, 3 + r)]
    return inputs, numbers(shape, 4 + r), lambda q, k, v: F.scaled_dot_product_attention(
        q, k, v, is_causal=causal)


def linear(r):
    inputs = [numbers((96, 160), 1 + r), numbers((136, 160), 2 + r), numbers((136,), 3 + r)]
    return inputs, numbers((96, 136), 4 + r), F.linear


def block(r):
    """x + attention(layer norm x), then + mlp(layer norm): a GPT block of width 64, two heads."""
    d, n = 64, 48
    weights = [(3 * d, d), (d, d), (4 * d, d), (d, 4 * d)]
    inputs = [numbers((n, d), 1 + r)] + [numbers(s, i + 2 + r) / 8 for i, s in enumerate(weights)]

    def f(x, qkv, out, up, down):
        y = F.layer_norm(x, (d,))
        q, k, v = F.linear(y, qkv).reshape(n, 3, 2, d // 2).permute(1, 2, 0, 3)
        a = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
        x = x + F.linear(a.permute(1, 0, 2).reshape(n, d), out)
        return x + F.linear(F.gelu(F.linear(F.layer_norm(x, (d,)), up)), down)

    return inputs, numbers((n, d), 7 + r), f


def results(inputs, dy, f, dtype):
    leaves = [x.clone().to(dtype).requires_grad_() for x in inputs]
    y = f(*leaves)
    y.backward(dy.to(dtype))
    return [y.detach()] + [x.grad for x in leaves]


torch.set_num_threads(1)
golden = {}
for name, case in [("attention", lambda r: attention(False, r)),
                   ("causal attention", lambda r: attention(True, r)),
                   ("linear", linear), ("block", block)]:
    rms, largest = [], []  # of each draw, for each result
    for r in range(DRAWS):
        of_draw = case(10 * r)
        wide = results(*of_draw, torch.float64)
        narrow = results(*of_draw, torch.bfloat16)
        errors = [b.double() - a for a, b in zip(wide, narrow)]
        rms.append(torch.stack([e.square().mean().sqrt() for e in errors]))
        largest.append(torch.stack([e.abs().max() for e in errors]))
    golden[name + ".rms"] = torch.stack(rms).detach()
    golden[name + ".largest"] = torch.stack(largest).detach()
folder = pathlib.Path(__file__).resolve().parent
save_file(golden, folder / "bfloat16_errors.safetensors", {"pytorch": torch.__version__})
