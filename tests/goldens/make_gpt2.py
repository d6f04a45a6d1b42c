"""Writes goldens/gpt2: a small GPT-2 with random weights, and what PyTorch computes with it.

    . build/peers-venv/peers.env          (after bench/peers/setup.sh)
    build/peers-venv/bin/python tests/goldens/make_gpt2.py [--check FILE]

model.safetensors has the names and layouts of Hugging Face's GPT2Model, as the files of the hub
have them: products as [in, out], and the masks h.N.attn.bias, which are not weights.
run.safetensors has tokens; the logits in float64, in float32, in bfloat16 (weights and
activations), and with autocast; the loss; gradients of the loss (computed in float64); and the
losses of some steps of training as docs/tutorials/gpt2/training.hpp takes them, in float64. Where
the package transformers is installed, its GPT2LMHeadModel must compute the same. With --check, a
file that Braid wrote must have the same names, shapes, dtypes and numbers, and transformers must
load it.
"""

import argparse
import math
import pathlib

import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional as F

FOLDER = pathlib.Path(__file__).resolve().parent / "gpt2"
LAYERS, WIDTH, HEADS, VOCABULARY, POSITIONS, EPS = 2, 32, 2, 257, 20, 1e-5
BATCH, LENGTH = 2, 10
STEPS, WARM_UP, LR = 8, 2, 1e-2
GRADIENTS = ("wte.weight", "wpe.weight", "h.0.ln_1.weight", "h.0.attn.c_attn.weight",
             "h.0.attn.c_proj.weight", "h.1.ln_2.bias", "h.1.mlp.c_fc.bias", "ln_f.weight")


def make_weights():
    """Weights that are large enough for every part to matter."""
    generator = torch.Generator().manual_seed(23)

    def normal(*shape, std, mean=0.0):
        return mean + std * torch.randn(*shape, generator=generator)

    weights = {"wte.weight": normal(VOCABULARY, WIDTH, std=0.4),
               "wpe.weight": normal(POSITIONS, WIDTH, std=0.2)}

    def norm(name):
        weights[f"{name}.weight"] = normal(WIDTH, std=0.3, mean=1.0)
        weights[f"{name}.bias"] = normal(WIDTH, std=0.2)

    def product(name, into, out):  # [in, out], as Hugging Face's Conv1D
        weights[f"{name}.weight"] = normal(into, out, std=1 / math.sqrt(into))
        weights[f"{name}.bias"] = normal(out, std=0.2)

    for i in range(LAYERS):
        norm(f"h.{i}.ln_1")
        product(f"h.{i}.attn.c_attn", WIDTH, 3 * WIDTH)
        product(f"h.{i}.attn.c_proj", WIDTH, WIDTH)
        norm(f"h.{i}.ln_2")
        product(f"h.{i}.mlp.c_fc", WIDTH, 4 * WIDTH)
        product(f"h.{i}.mlp.c_proj", 4 * WIDTH, WIDTH)
    norm("ln_f")
    return weights


def logits_of(weights, tokens):
    """GPT-2 (pre-norm, learned positions, tanh's GELU, tied head)."""

    def norm(x, name):
        return F.layer_norm(x, (WIDTH,), weights[f"{name}.weight"], weights[f"{name}.bias"], EPS)

    def product(x, name):
        return F.linear(x, weights[f"{name}.weight"].t(), weights[f"{name}.bias"])

    h = weights["wte.weight"][tokens] + weights["wpe.weight"][: tokens.shape[1]]
    for i in range(LAYERS):
        parts = product(norm(h, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").chunk(3, -1)
        q, k, v = (p.unflatten(-1, (HEADS, -1)).transpose(1, 2) for p in parts)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        h = h + product(seen, f"h.{i}.attn.c_proj")
        up = F.gelu(product(norm(h, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), approximate="tanh")
        h = h + product(up, f"h.{i}.mlp.c_proj")
    return F.linear(norm(h, "ln_f"), weights["wte.weight"])


def loss_of(logits, tokens):
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def train(weights, tokens):
    """Returns the losses of steps with AdamW, a schedule and clipped gradients."""
    p = {n: w.double().requires_grad_() for n, w in weights.items()}
    groups = [{"params": [w for w in p.values() if w.dim() >= 2], "weight_decay": 0.1},
              {"params": [w for w in p.values() if w.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=LR, betas=(0.9, 0.95))
    fall = STEPS - WARM_UP
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda t: (t + 1) / (WARM_UP + 1) if t < WARM_UP else
        0.1 + 0.9 * (1 + math.cos(math.pi * min(1, (t - WARM_UP) / fall))) / 2)
    losses = []
    for _ in range(STEPS):
        loss = loss_of(logits_of(p, tokens), tokens)
        losses.append(loss.detach())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(p.values(), 1.0)
        optimizer.step()
        schedule.step()
    return torch.stack(losses)


def in_dtype(weights, dtype):
    return {name: w.to(dtype) for name, w in weights.items()}


def hugging_face(weights):
    """Returns GPT2LMHeadModel with these weights in float64, or None without transformers."""
    try:
        from transformers import GPT2Config, GPT2LMHeadModel
    except ImportError:
        return None
    config = GPT2Config(vocab_size=VOCABULARY, n_positions=POSITIONS, n_embd=WIDTH, n_layer=LAYERS,
                        n_head=HEADS)
    model = GPT2LMHeadModel(config).double().eval()
    missing, unexpected = model.transformer.load_state_dict(weights, strict=False)
    assert not missing, missing
    assert all(name.endswith((".attn.bias", ".attn.masked_bias")) for name in unexpected)
    return model


def error_of_bfloat16():
    """Prints ‖bfloat16 − float64‖ / ‖float64‖ of the logits of 128 lines of tokens, for
    tests/tutorials/test_gpt2.cpp: the logits themselves would take megabytes."""
    weights = load_file(FOLDER / "model.safetensors")
    line, at = torch.arange(128)[:, None], torch.arange(POSITIONS)
    tokens = (line * 7919 + at * 104729 + line * at * 31) % VOCABULARY
    with torch.no_grad():
        exact = logits_of(in_dtype(weights, torch.float64), tokens)
        narrow = logits_of(in_dtype(weights, torch.bfloat16), tokens).double()
    print(f"PyTorch {torch.__version__}: {(narrow - exact).norm() / exact.norm():.8g}")


def write():
    weights = make_weights()
    generator = torch.Generator().manual_seed(24)
    tokens = torch.randint(VOCABULARY, (BATCH, LENGTH), generator=generator)
    wide = {n: w.requires_grad_() for n, w in in_dtype(weights, torch.float64).items()}
    exact = logits_of(wide, tokens)
    loss = loss_of(exact, tokens)
    loss.backward()
    model = hugging_face(in_dtype(weights, torch.float64))
    if model is not None:
        theirs = model(tokens).logits
        assert (theirs - exact).abs().max() < 1e-12, "transformers computes other logits"
        loss_of(theirs, tokens).backward()
        gradients = dict(model.transformer.named_parameters())
        for name, w in wide.items():
            apart = (gradients[name].grad - w.grad).abs().max()
            assert apart < 1e-12, f"transformers computes another gradient of {name}"
        print("transformers computes the same logits and gradients")
    run = {"tokens": tokens, "logits.float64": exact.detach(), "loss": loss.detach()}
    with torch.no_grad():
        run["logits.float32"] = logits_of(weights, tokens)
        run["logits.bfloat16"] = logits_of(in_dtype(weights, torch.bfloat16), tokens)
        with torch.autocast("cpu", torch.bfloat16):
            run["logits.autocast"] = logits_of(weights, tokens)
    for name in GRADIENTS:
        run[f"grad.{name}"] = wide[name].grad.float()
    for name in ("bfloat16", "autocast", "float32"):
        apart = (run[f"logits.{name}"].double() - exact).norm() / exact.norm()
        print(f"PyTorch's {name}: ‖error‖ / ‖logits‖ = {apart.item():.3g}")
    run["losses"] = train(weights, tokens)
    mask = torch.ones(POSITIONS, POSITIONS).tril().reshape(1, 1, POSITIONS, POSITIONS)
    masks = {f"h.{i}.attn.bias": mask.clone() for i in range(LAYERS)}
    FOLDER.mkdir(exist_ok=True)
    save_file({**weights, **masks}, FOLDER / "model.safetensors", {"format": "pt"})
    save_file({n: t.contiguous() for n, t in run.items()}, FOLDER / "run.safetensors")


def check(path):
    want = make_weights()
    got = load_file(path)
    assert set(got) == set(want), sorted(set(got) ^ set(want))
    for name, w in want.items():
        assert got[name].dtype == w.dtype and torch.equal(got[name], w), name
    model = hugging_face(in_dtype(got, torch.float64))
    loaded = "transformers is not installed" if model is None else "transformers loads it"
    print(f"{path}: the names and numbers of model.safetensors; {loaded}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check")
    parser.add_argument("--error", action="store_true", help="print PyTorch's error of bfloat16")
    options = parser.parse_args()
    if options.error:
        error_of_bfloat16()
    elif options.check:
        check(options.check)
    else:
        write()
