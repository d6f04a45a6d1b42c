"""The benchmark's rows in PyTorch: nets, data and training steps. Weights and data come from the
same formula as in Braid's version (support/rows.hpp)."""

import functools
import math
import re
import statistics
import time

import torch
from torch import nn

MASK = 0xFFFFFFFF


def uniform(count, seed, start=0):
    """Returns `count` values in [-1, 1), exact in float32. They depend only on (seed, index), so
    every program computes the same ones."""
    h = (torch.arange(start, start + count, dtype=torch.int64) + seed * 0x9E3779B9) & MASK
    h = ((h ^ (h >> 16)) * 0x7FEB352D) & MASK
    h = ((h ^ (h >> 15)) * 0x846CA68B) & MASK
    h = h ^ (h >> 16)
    return (h >> 8).to(torch.float64) * 2.0**-23 - 1.0


def labels(count, classes, seed, start=0):
    return (((uniform(count, seed, start) + 1.0) * 2.0**23).to(torch.int64)) % classes


def fill(model):
    """Fills parameter k with uniform numbers of seed 100 + k, scaled to +-1/sqrt(fan_in) as in
    PyTorch's own initialisation."""
    with torch.no_grad():
        fan_in = 1
        for k, p in enumerate(model.parameters()):
            if p.dim() >= 2:
                fan_in = p.numel() // p.size(0)  # a bias follows its weight
            values = uniform(p.numel(), 100 + k) * (1.0 / float(fan_in) ** 0.5)
            p.copy_(values.to(torch.float32).view_as(p))
    return model


class Row:
    """A model, its batch and one training step: zero_grad, forward, loss, backward, step."""

    def __init__(
        self, model, x, y, loss, wrap=None, optimizer=lambda p: torch.optim.SGD(p, lr=0.01)
    ):
        self.model = fill(model)
        self.net = wrap(self.model) if wrap else self.model
        self.x, self.y, self.loss = x, y, loss
        self.make_optimizer = optimizer
        self.reset()

    def reset(self):
        """Resets the model to the common weights and creates an optimizer without state."""
        fill(self.model)
        self.optimizer = self.make_optimizer(self.model.parameters())

    def step(self):
        self.optimizer.zero_grad()
        loss = self.loss(self.net(self.x), self.y)
        loss.backward()
        self.optimizer.step()
        return loss


def linear_row():
    x = uniform(30 * 5, 1).to(torch.float32).view(30, 5)
    y = uniform(30 * 2, 2).to(torch.float32).view(30, 2)
    return Row(nn.Linear(5, 2), x, y, nn.functional.mse_loss)


def mlp_row(hidden, rows, first_row=0, wrap=None, **options):
    x = uniform(rows * 784, 1, first_row * 784).to(torch.float32).view(rows, 784)
    y = labels(rows, 10, 2, first_row)
    net = nn.Sequential(
        nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
        nn.Linear(hidden, 10),
    )  # fmt: skip
    return Row(net, x, y, nn.functional.cross_entropy, wrap, **options)


class Block(nn.Module):
    """A causal pre-norm Transformer block; the row block_sgd."""

    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(256)
        self.qkv = nn.Linear(256, 768)
        self.out = nn.Linear(256, 256)
        self.norm2 = nn.LayerNorm(256)
        self.wide = nn.Linear(256, 1024)
        self.narrow = nn.Linear(1024, 256)

    def forward(self, x):
        batch, n, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, n, 3, 8, 32).permute(2, 0, 3, 1, 4)
        heads = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = x + self.out(heads.transpose(1, 2).reshape(batch, n, 256))
        return y + self.narrow(nn.functional.gelu(self.wide(self.norm2(y))))


def block_row(batch=8, first=0, wrap=None):
    size = 128 * 256
    x, y = (
        uniform(batch * size, seed, first * size).to(torch.float32).view(batch, 128, 256)
        for seed in (1, 2)
    )
    return Row(Block(), x, y, nn.functional.mse_loss, wrap)


class WordModel(nn.Module):
    """Embedding, LSTM layers and a decoder: scores of the next word at each position."""

    def __init__(self, words, width, layers):
        super().__init__()
        self.encoder = nn.Embedding(words, width)
        self.rnn = nn.LSTM(width, width, layers)
        self.decoder = nn.Linear(width, words)

    def forward(self, x):
        return self.decoder(self.rnn(self.encoder(x))[0].flatten(0, 1))


class ClippedRow(Row):
    """A Row whose gradients are clipped to a norm of 0.25 before the step."""

    def step(self):
        self.optimizer.zero_grad()
        loss = self.loss(self.net(self.x), self.y)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.25)
        self.optimizer.step()
        return loss


def lstm_lm_row(batch=20, first=0, wrap=None, world=1, words=10000, width=200, layers=2, steps=35):
    """The row of texts first … first + batch - 1 of the world * batch columns."""
    x, y = (
        labels(steps * batch * world, words, seed)
        .view(steps, -1)[:, first : first + batch]
        .contiguous()
        for seed in (1, 2)
    )
    net = WordModel(words, width, layers)
    return ClippedRow(net, x, y.flatten(), nn.functional.cross_entropy, wrap)


def cnn_row(rows, first_row=0, wrap=None):
    x = uniform(rows * 784, 1, first_row * 784).to(torch.float32).view(rows, 1, 28, 28)
    y = labels(rows, 10, 2, first_row)
    net = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(1600, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip
    return Row(net, x, y, nn.functional.cross_entropy, wrap)


def sized_row(name, ending, first=lambda size: 0, wrap=None, world=1):
    """Makes the row named mlp<hidden>, cnn, lstm_lm or block, then _b<rows>_ and the ending, with
    data from row first(rows) on. Returns None for other names."""
    match = re.fullmatch(rf"(mlp(\d+)|cnn|lstm_lm|block)_b(\d+)_{ending}", name)
    if not match:
        return None
    size = int(match[3])
    if match[2]:
        return mlp_row(int(match[2]), size, first(size), wrap)
    if match[1] == "lstm_lm":
        return lstm_lm_row(size, first(size), wrap, world)
    return {"cnn": cnn_row, "block": block_row}[match[1]](size, first(size), wrap)


def make_row(name):
    """Makes the row of this name: linear_30x5x2_sgd, block_sgd (8 sequences), lstm_lm_sgd (20
    texts), a name of sized_row ending in sgd, mlp<hidden>_b<rows>_adam or _adam_fused,
    loader_<rows>x<width>_b<batch>, clone_<bytes>, copy_<bytes>, or one of OPS."""
    if name == "lstm_lm_sgd":
        return lstm_lm_row()
    if name == "linear_30x5x2_sgd":
        return linear_row()
    if name == "block_sgd":
        return block_row()
    row = sized_row(name, "sgd")
    if row:
        return row
    if name in OPS:
        return Op(OPS[name])
    match = re.fullmatch(r"loader_(\d+)x(\d+)_b(\d+)", name)
    if match:
        return Loader(int(match[1]), int(match[2]), int(match[3]))
    match = re.fullmatch(r"(clone|copy)_(\d+)", name)
    if match:
        return Move(match[1], int(match[2]) // 4)
    match = re.fullmatch(r"mlp(\d+)_b(\d+)_(adam|adam_fused)", name)
    if not match:
        raise ValueError(f"unknown row {name}")
    fused = match[3] == "adam_fused" or None
    adam = lambda p: torch.optim.Adam(p, fused=fused)
    return mlp_row(int(match[1]), int(match[2]), optimizer=adam)


def batches_of(iterations):
    """Returns (batches, steps in a batch): at most 50 timed batches, divided as in Braid."""
    count = min(50, iterations)
    return count, iterations // count


def measure(row, iterations, before=lambda: None):
    """Returns (us per step, loss of the first step, loss of the last step). The time is the median
    over timed batches, after a warm-up of a tenth of the iterations.

    `before` is called just before the clock starts: a barrier, if there are several processes."""
    row.reset()  # every run starts from the same weights, so its losses can be checked
    first = row.step().item()
    for _ in range(2 + iterations // 10):
        row.step()
    count, steps = batches_of(iterations)
    times = []
    loss = None
    before()
    for _ in range(count):
        start = time.perf_counter_ns()
        for _ in range(steps):
            loss = row.step()
        times.append((time.perf_counter_ns() - start) / steps / 1e3)
    return statistics.median(times), first, loss.item()


def losses(row, count):
    """Returns the losses of the first `count` steps from the common weights."""
    row.reset()
    return [row.step().item() for _ in range(count)]


def numbers(shape, seed):
    """Returns uniform() in float32, computed in pieces, because its intermediate int64 arrays take
    more memory than the result."""
    flat, piece = torch.empty(math.prod(shape)), 1 << 20
    for start in range(0, flat.numel(), piece):
        part = flat[start : start + piece]
        part.copy_(uniform(part.numel(), seed, start))
    return flat.view(shape)


def softmax_4096():
    x = numbers((4096, 4096), 1)
    return lambda: nn.functional.softmax(x, -1)


def add_1e7():
    x, y = numbers((10**7,), 1), numbers((10**7,), 2)
    return lambda: x + y


def layernorm_4096x1024():
    x, weight, bias = numbers((4096, 1024), 1), numbers((1024,), 2), numbers((1024,), 3)
    return lambda: nn.functional.layer_norm(x, (1024,), weight, bias)


OPS = {"softmax_4096": softmax_4096, "add_1e7": add_1e7, "layernorm_4096x1024": layernorm_4096x1024}


class Op:
    """One operation without gradient. The result is in newly allocated memory at every step."""

    def __init__(self, make):
        self.step = make()

    def sample(self, count):
        """Returns `count` evenly spaced numbers of the result."""
        flat = self.step().flatten()
        return flat[:: flat.numel() // count][:count].tolist()


@functools.lru_cache(maxsize=1)
def moved(count):
    """Returns numbers to copy, 4 bytes each. The last result is cached, because rows of the same
    size are timed in turn."""
    return torch.arange(count, dtype=torch.int32)


@functools.lru_cache(maxsize=1)
def place(count):
    return torch.zeros(count, dtype=torch.int32)


class Move:
    """A copy of a number of bytes into new memory (row clone_<bytes>) or into existing memory (row
    copy_<bytes>)."""

    def __init__(self, kind, count):
        x = moved(count)
        self.step = x.clone if kind == "clone" else functools.partial(place(count).copy_, x)

    def sample(self, count):
        """Returns `count` evenly spaced numbers of the result."""
        flat = self.step()
        return flat[:: flat.numel() // count][:count].tolist()


class Loader:
    """Shuffled batches of a TensorDataset, over endless epochs: row
    loader_<rows>x<width>_b<batch>."""

    def __init__(self, rows, width, batch):
        dataset = torch.utils.data.TensorDataset(torch.rand(rows, width), torch.arange(rows))
        self.loader = torch.utils.data.DataLoader(dataset, batch_size=batch, shuffle=True)
        self.batches = iter(())

    def step(self):
        batch = next(self.batches, None)
        if batch is None:
            self.batches = iter(self.loader)
            batch = next(self.batches)
        return batch


def measure_calls(row, iterations):
    """Returns the us of a step whose result is dropped, for the loader and for operations: the
    median over timed groups, after a warm-up."""
    for _ in range(3 + iterations // 10):
        row.step()
    count, steps = batches_of(iterations)
    times = []
    for _ in range(count):
        start = time.perf_counter_ns()
        for _ in range(steps):
            row.step()
        times.append((time.perf_counter_ns() - start) / steps / 1e3)
    return statistics.median(times)
