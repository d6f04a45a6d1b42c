"""Writes transformer.txt: attention and Transformer layers of PyTorch with their state dicts, outputs and gradients; run as make_goldens.py is.

Evaluation mode, float64, so that both sides compute the same formula; every number of a state dict is one of the file.
"""

import torch
from torch import nn

from make_goldens import File

D, HEADS, FF, BATCH, N, M = 4, 2, 3, 2, 3, 4


def fill(module, seed):
    """Parameters of 8 bits (short in the file), in order."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.randint(-128, 128, p.shape, generator=generator) / 256)
    return module.double().eval()


def numbers(shape, seed):
    return torch.randint(-128, 128, shape, generator=torch.Generator().manual_seed(seed)).double() / 64


def write(file, name, module, inputs, call):
    """State dict, inputs, output, gradients of the inputs and of the parameters for a gradient dy."""
    for key, value in module.state_dict().items():
        file.tensor(f"{name}.state.{key}", value)
    for i, x in enumerate(inputs):
        file.tensor(f"{name}.x{i}", x)
        x.requires_grad_()
    y = call(*inputs)
    dy = numbers(y.shape, 99)
    y.backward(dy)
    file.tensor(f"{name}.y", y)
    file.tensor(f"{name}.dy", dy)
    for i, x in enumerate(inputs):
        file.tensor(f"{name}.dx{i}", x.grad)
    for key, p in module.named_parameters():
        if p.grad is not None:
            file.tensor(f"{name}.grad.{key}", p.grad)


def main():
    file = File("transformer.txt", "attention and Transformer layers in evaluation mode, float64")
    causal = torch.ones(N, N, dtype=torch.bool).triu(1)
    padding = torch.zeros(BATCH, N, dtype=torch.bool)
    padding[1, -1] = True
    hidden = torch.zeros(BATCH, N, dtype=torch.float64).masked_fill(padding, float("-inf"))
    added = numbers((N, N), 7)
    file.tensor("added", added)

    mha = fill(nn.MultiheadAttention(D, HEADS), 1)
    write(file, "self", mha, [numbers((N, BATCH, D), 2)], lambda x: mha(x, x, x, need_weights=False)[0])
    mha = fill(nn.MultiheadAttention(D, HEADS, batch_first=True), 1)
    write(file, "causal", mha, [numbers((BATCH, N, D), 2)], lambda x: mha(x, x, x, attn_mask=causal, need_weights=False)[0])
    mha = fill(nn.MultiheadAttention(D, HEADS, batch_first=True), 1)
    write(file, "masks", mha, [numbers((BATCH, N, D), 2)], lambda x: mha(x, x, x, attn_mask=added, key_padding_mask=hidden)[0])
    mha = fill(nn.MultiheadAttention(D, HEADS, bias=False), 1)
    write(file, "cross", mha, [numbers((N, BATCH, D), 2), numbers((M, BATCH, D), 3)], lambda x, m: mha(x, m, m, need_weights=False)[0])
    mha = fill(nn.MultiheadAttention(D, HEADS), 1)
    write(file, "weights", mha, [numbers((N, BATCH, D), 2), numbers((M, BATCH, D), 3)], lambda x, m: mha(x, m, m)[1])

    for name, options in {"post": {}, "pre": {"norm_first": True, "activation": "gelu"}}.items():
        encoder = fill(nn.TransformerEncoder(nn.TransformerEncoderLayer(D, HEADS, FF, **options), 1, nn.LayerNorm(D), enable_nested_tensor=False), 4)
        write(file, f"encoder.{name}", encoder, [numbers((N, BATCH, D), 2)], lambda x: encoder(x, mask=causal, src_key_padding_mask=padding))
        decoder = fill(nn.TransformerDecoder(nn.TransformerDecoderLayer(D, HEADS, FF, **options), 1), 5)
        write(file, f"decoder.{name}", decoder, [numbers((N, BATCH, D), 2), numbers((M, BATCH, D), 3)], lambda x, m: decoder(x, m, tgt_mask=causal))
    file.write()


if __name__ == "__main__":
    main()
