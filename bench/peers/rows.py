"""The benchmark's rows in PyTorch: nets, data and training steps, filled by the same formula as Braid's side (support/rows.hpp)."""

import re
import statistics
import time

import torch
from torch import nn

MASK = 0xFFFFFFFF


def uniform(count, seed, start=0):
    """count values in [-1, 1), exact in float32: a function of (seed, index) alone, so that every program makes the same ones."""
    h = (torch.arange(start, start + count, dtype=torch.int64) + seed * 0x9E3779B9) & MASK
    h = ((h ^ (h >> 16)) * 0x7FEB352D) & MASK
    h = ((h ^ (h >> 15)) * 0x846CA68B) & MASK
    h = h ^ (h >> 16)
    return (h >> 8).to(torch.float64) * 2.0**-23 - 1.0


def labels(count, classes, seed, start=0):
    return (((uniform(count, seed, start) + 1.0) * 2.0**23).to(torch.int64)) % classes


def fill(model):
    """Parameter k gets uniform(seed 100 + k), scaled to +-1/sqrt(fan_in) as PyTorch's own initialisation is."""
    with torch.no_grad():
        fan_in = 1
        for k, p in enumerate(model.parameters()):
            if p.dim() == 2:
                fan_in = p.size(1)  # a bias follows its weight
            p.copy_((uniform(p.numel(), 100 + k) * (1.0 / float(fan_in) ** 0.5)).to(torch.float32).view_as(p))
    return model


class Row:
    """A model, its batch and one training step: zero_grad, forward, loss, backward, step."""

    def __init__(self, model, x, y, loss, wrap=None):
        self.model = fill(model)
        self.net = wrap(self.model) if wrap else self.model
        self.x, self.y, self.loss = x, y, loss
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

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


def mlp_row(hidden, rows, first_row=0, wrap=None):
    x = uniform(rows * 784, 1, first_row * 784).to(torch.float32).view(rows, 784)
    y = labels(rows, 10, 2, first_row)
    net = nn.Sequential(nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 10))
    return Row(net, x, y, nn.functional.cross_entropy, wrap)


def make_row(name):
    """linear_30x5x2_sgd or mlp<hidden>_b<rows>_sgd."""
    if name == "linear_30x5x2_sgd":
        return linear_row()
    match = re.fullmatch(r"mlp(\d+)_b(\d+)_sgd", name)
    if not match:
        raise ValueError(f"unknown row {name}")
    return mlp_row(int(match[1]), int(match[2]))


def batches_of(iterations):
    """(batches, steps a batch): at most 50 timed batches, the same cut as on Braid's side."""
    count = min(50, iterations)
    return count, iterations // count


def measure(row, iterations, before=lambda: None):
    """(us per step, loss of the first step, loss of the last): the median over timed batches, after a warm-up of a tenth.

    `before` is called just before the clock starts; several processes meet there."""
    fill(row.model)  # every run trains from the same weights, so its losses can be checked
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
    """The losses of the first `count` steps from the common weights."""
    fill(row.model)
    return [row.step().item() for _ in range(count)]
