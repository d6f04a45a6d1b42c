#!/usr/bin/env python3
"""Prints the errors of PyTorch's bfloat16 on the CPU against float64, as rows for
tests/core/test_bfloat16_errors.cpp: for each case and result the root mean square error of FEW
draws of the inputs together, that of ROUNDS draws, and the largest error. The inputs are the
numbers of `numbers`, which bfloat16 represents exactly."""
import torch
import torch.nn.functional as F


FEW, ROUNDS = 16, 160


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
print("// PyTorch " + torch.__version__.split("+")[0])
for name, case in [("attention", lambda r: attention(False, r)),
                   ("causal attention", lambda r: attention(True, r)),
                   ("linear", linear), ("block", block)]:
    errors = []  # of each round, for each result
    for r in range(ROUNDS):
        of_round = case(10 * r)
        wide = results(*of_round, torch.float64)
        narrow = results(*of_round, torch.bfloat16)
        errors.append([b.double() - a for a, b in zip(wide, narrow)])
    of_results = [torch.stack(list(e)) for e in zip(*errors)]
    rows = ", ".join(f"{{{e[:FEW].square().mean().sqrt():.6g}, {e.square().mean().sqrt():.6g}, "
                     f"{e.abs().max():.6g}}}" for e in of_results)
    print(f'{{"{name}", {{{rows}}}}},')
