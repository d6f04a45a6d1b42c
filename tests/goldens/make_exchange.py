"""Writes goldens/exchange: three nets that train for ten steps in PyTorch, as safetensors. With
--check, compares the files that Braid wrote of the same nets.

    . build/peers-venv/peers.env          (after bench/peers/setup.sh)
    build/peers-venv/bin/python tests/goldens/make_exchange.py [--check FOLDER]

FOLDER has the files that braid_tests_exchange wrote; ./dev test exchange runs both. For each net:
<net>.start and <net>.end.safetensors, the state dicts before and after training, and
<net>.run.safetensors: the batches x, y, the losses, and the outputs for the first batch in
evaluation mode after training. tests/exchange/nets.hpp has the same nets for Braid. All files are
written and read by the safetensors package, the reference implementation of the format.
"""

import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

from make_goldens import TORCH

FOLDER = pathlib.Path(__file__).resolve().parent / "exchange"
STEPS = 10
LOSS_BOUND, PARAMETER_BOUND = 1e-6, 1e-5


class Cnn(nn.Module):
    """Convolutions, BatchNorm for images and for rows; AdamW."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, bias=False)
        self.norm1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 12, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(12, eps=1e-3, momentum=0.2)
        self.fc1 = nn.Linear(12 * 5 * 5, 16, bias=False)
        self.norm3 = nn.BatchNorm1d(16)
        self.fc2 = nn.Linear(16, 10)

    def forward(self, images):
        h = F.max_pool2d(F.relu(self.norm1(self.conv1(images))), 2)
        h = F.relu(self.norm2(self.conv2(h))).flatten(1)
        return self.fc2(F.relu(self.norm3(self.fc1(h))))

    def optimizer(self):
        return torch.optim.AdamW(self.parameters(), lr=2e-3)

    @staticmethod
    def data(generator):
        """Ten patterns with noise."""
        patterns = torch.randn(10, 1, 12, 12, generator=generator)
        y = torch.randint(10, (STEPS, 16), generator=generator)
        return patterns[y] + 0.5 * torch.randn(STEPS, 16, 1, 12, 12, generator=generator), y


class Tagger(nn.Module):
    """Two bidirectional LSTM layers; Adam, gradients clipped to a norm of 0.25."""

    clip = 0.25

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 12)
        self.rnn = nn.LSTM(12, 16, num_layers=2, bidirectional=True)
        self.out = nn.Linear(32, 5)

    def forward(self, words):
        return self.out(self.rnn(self.embed(words))[0])

    def optimizer(self):
        return torch.optim.Adam(self.parameters(), lr=5e-3)

    @staticmethod
    def data(generator):
        """The tag is w % 5. w is the word if it is below 15, otherwise the word before it."""
        x = torch.randint(20, (STEPS, 9, 8), generator=generator)
        return x, torch.where(x < 15, x, x.roll(1, 1)) % 5


class Translator(nn.Module):
    """A Transformer with encoder and decoder; SGD with momentum. (The gradient of the keys' bias is
    only rounding error, and Adam would turn it into full steps.)"""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 16)
        self.position = nn.Parameter(torch.randn(8, 16) * 0.1)
        layers = {"num_encoder_layers": 2, "num_decoder_layers": 2, "dim_feedforward": 32}
        options = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": True}
        self.transformer = nn.Transformer(16, 2, **layers, **options)
        self.out = nn.Linear(16, 12)

    def forward(self, pair):
        """pair [batch, 2, 8]: the source, and the target with a start token in front."""
        source, target = (self.embed(words) + self.position for words in pair.unbind(1))
        causal = nn.Transformer.generate_square_subsequent_mask(8)
        return self.out(self.transformer(source, target, tgt_mask=causal, tgt_is_causal=True))

    def optimizer(self):
        return torch.optim.SGD(self.parameters(), lr=0.3, momentum=0.9, weight_decay=1e-4)

    @staticmethod
    def data(generator):
        """The target is the source reversed."""
        source = torch.randint(1, 12, (STEPS, 16, 8), generator=generator)
        y = source.flip(2)
        target = torch.cat([torch.zeros_like(y[..., :1]), y[..., :-1]], 2)
        return torch.stack([source, target], 2), y


NETS = {"cnn": Cnn, "lstm": Tagger, "transformer": Translator}


def train(model, x, y):
    """Takes one step for each batch, and returns the losses."""
    optimizer = model.train().optimizer()
    losses = []
    for images, labels in zip(x, y):
        loss = F.cross_entropy(model(images).flatten(0, -2), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        if hasattr(model, "clip"):
            nn.utils.clip_grad_norm_(model.parameters(), model.clip)
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses, dtype=torch.float64)


def outputs(model, x):
    model.eval()
    with torch.no_grad():
        return model(x)


def write():
    FOLDER.mkdir(exist_ok=True)
    for name, net in NETS.items():
        generator = torch.Generator().manual_seed(6)
        torch.manual_seed(6)
        x, y = net.data(generator)
        model = net()
        file = lambda part: FOLDER / f"{name}.{part}.safetensors"
        start = {key: value.clone() for key, value in model.state_dict().items()}
        save_file(start, file("start"), {"format": "pt"})
        losses = train(model, x, y)
        save_file(model.state_dict(), file("end"), {"format": "pt"})
        run = {"x": x, "y": y, "losses": losses, "outputs": outputs(model, x[0])}
        save_file(run, file("run"), {"torch": TORCH})
        for part in ("start", "end", "run"):
            file(part).chmod(0o644)
        exact = net().double()
        exact.load_state_dict(start)
        wide = train(exact, x.double() if x.is_floating_point() else x, y)
        rounding = ((losses - wide) / losses).abs().max()
        print(
            f"{name}: loss {losses[0]:.4f} -> {losses[-1]:.4f}; float32 against float64: "
            f"{rounding:.1e}, parameters {distance(model, exact.state_dict()):.1e}"
        )


def distance(model, other):
    """Returns the largest |a - b| / max(1, |b|) of two state dicts. Integers must be equal."""
    worst = 0.0
    for key, a in model.state_dict().items():
        b = other[key]
        if not a.is_floating_point() and not torch.equal(a, b):
            raise SystemExit(f"{key}: expected {b.tolist()}, got {a.tolist()}")
        worst = max(worst, ((a - b).abs() / b.abs().clamp(min=1)).max().item())
    return worst


def check(folder):
    """Loads Braid's state dicts by name into PyTorch, and compares ten steps from Braid's start
    with those that Braid took."""
    failed = False
    for name, net in NETS.items():
        read = lambda part: load_file(folder / f"{name}.{part}.safetensors")
        golden = load_file(FOLDER / f"{name}.run.safetensors")
        trained, fresh = net(), net()
        trained.load_state_dict(read("end"))  # strict: checks every name and shape
        far = (outputs(trained, golden["x"][0]) - golden["outputs"]).abs().max().item()
        fresh.load_state_dict(read("own.start"))
        losses, ours = train(fresh, golden["x"], golden["y"]), read("own.run")["losses"]
        apart = ((losses - ours) / losses).abs().max().item()
        moved = distance(fresh, read("own.end"))
        verdict = far <= PARAMETER_BOUND and apart <= LOSS_BOUND and moved <= PARAMETER_BOUND
        failed |= not verdict
        print(
            f"{name}: Braid's trained net in PyTorch: outputs within {far:.1e}; "
            f"from Braid's start: losses within {apart:.1e} relative (bound {LOSS_BOUND}), "
            f"parameters within {moved:.1e} (bound {PARAMETER_BOUND}): "
            f"{'agree' if verdict else 'DIFFER'}"
        )
    return failed


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:2] == ["--check"] and len(sys.argv) == 3:
        sys.exit(check(pathlib.Path(sys.argv[2])))
    if len(sys.argv) > 1:
        sys.exit(__doc__)
    write()
