"""Writes transformer.txt: PyTorch's attention and Transformer layers with their state dicts,
outputs and gradients. Run it like make_goldens.py.

Evaluation mode, float64, so that both sides compute the same formula. Every number of a state dict
is in the file.
"""

import torch
from torch import nn

from make_goldens import File, eighths

D, HEADS, FF, BATCH, N, M = 4, 2, 3, 2, 3, 4


def fill(module, seed):
    """Fills the parameters, in order, with numbers of 8 bits (short in the file)."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.randint(-128, 128, p.shape, generator=generator) / 256)
    return module.double().eval()


def write(file, name, module, call, *shapes):
    """Writes the state dict, inputs and output, and for an output gradient dy the gradients of the
    inputs and of the parameters."""
    x = {f"x{i}": eighths(shape, 2 + i, 64).requires_grad_() for i, shape in enumerate(shapes)}
    file.tensors(f"{name}.state.", module.state_dict())
    file.tensors(f"{name}.", x)
    y = call(module, *x.values())
    dy = eighths(y.shape, 99, 64)
    y.backward(dy)
    file.tensors(f"{name}.", {"y": y, "dy": dy})
    file.tensors(f"{name}.d", {key: value.grad for key, value in x.items()})
    parameters = {key: p.grad for key, p in module.named_parameters() if p.grad is not None}
    file.tensors(f"{name}.grad.", parameters)


def main():
    file = File("transformer.txt", "attention and Transformer layers in evaluation mode, float64")
    causal = torch.ones(N, N, dtype=torch.bool).triu(1)
    padding = torch.zeros(BATCH, N, dtype=torch.bool)
    padding[1, -1] = True
    hidden = torch.zeros(BATCH, N, dtype=torch.float64).masked_fill(padding, float("-inf"))
    added = eighths((N, N), 7, 64)
    file.tensor("added", added)
    ours, theirs, batch_first = (N, BATCH, D), (M, BATCH, D), (BATCH, N, D)

    def attention(name, call, *shapes, **options):
        write(file, name, fill(nn.MultiheadAttention(D, HEADS, **options), 1), call, *shapes)

    attention("self", lambda a, x: a(x, x, x, need_weights=False)[0], ours)
    call = lambda a, x: a(x, x, x, attn_mask=causal, need_weights=False)[0]
    attention("causal", call, batch_first, batch_first=True)
    call = lambda a, x: a(x, x, x, attn_mask=added, key_padding_mask=hidden)[0]
    attention("masks", call, batch_first, batch_first=True)
    attention("cross", lambda a, x, m: a(x, m, m, need_weights=False)[0], ours, theirs, bias=False)
    attention("weights", lambda a, x, m: a(x, m, m)[1], ours, theirs)

    for name, options in {"post": {}, "pre": {"norm_first": True, "activation": "gelu"}}.items():
        layer = nn.TransformerEncoderLayer(D, HEADS, FF, **options)
        encoder = nn.TransformerEncoder(layer, 1, nn.LayerNorm(D), enable_nested_tensor=False)
        call = lambda e, x: e(x, mask=causal, src_key_padding_mask=padding)
        write(file, f"encoder.{name}", fill(encoder, 4), call, ours)
        decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(D, HEADS, FF, **options), 1)
        call = lambda d, x, m: d(x, m, tgt_mask=causal)
        write(file, f"decoder.{name}", fill(decoder, 5), call, ours, theirs)
    file.write()


if __name__ == "__main__":
    main()
