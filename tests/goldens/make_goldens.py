"""Writes the goldens of this folder: values, gradients, training runs and printed tensors from PyTorch on the CPU.

    . build/peers-venv/peers.env && build/peers-venv/bin/python tests/goldens/make_goldens.py   (after bench/peers/setup.sh)

The files are committed; tests read them with support/golden.hpp and need no PyTorch. Running this again with the same PyTorch
gives the same bytes. Format (README.md): `tensor NAME DTYPE RANK SIZES… VALUES…` and `text NAME LINES` with that many lines after it.
Inputs are exact in float32, so the float32 and the float64 case of a name share them.
"""

import pathlib
import re
import textwrap

import torch
from torch.nn import functional as F

FOLDER = pathlib.Path(__file__).resolve().parent
DTYPES = {"float32": torch.float32, "float64": torch.float64}


def number(value):
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int):
        return str(value)
    return repr(value)


class File:
    def __init__(self, name, about):
        self.path = FOLDER / name
        self.parts = [f"# {about}", f"# PyTorch {torch.__version__.split('+')[0]}, written by make_goldens.py"]

    def tensor(self, name, t):
        t = t.detach()
        dtype = str(t.dtype).removeprefix("torch.")
        if t.dtype == torch.float32:
            # shortest text that reads back as the same float
            values = [str(v) for v in t.reshape(-1).numpy()]
        elif t.dtype in (torch.float16, torch.bfloat16):
            values = [number(v) for v in t.reshape(-1).to(torch.float64).tolist()]
        else:
            values = [number(v) for v in t.reshape(-1).tolist()]
        head = " ".join(["tensor", name, dtype, str(t.dim()), *map(str, t.shape)])
        self.parts.append(head)
        self.parts += textwrap.wrap(" ".join(values), 150, break_long_words=False, break_on_hyphens=False)

    def text(self, name, text):
        lines = text.split("\n")
        self.parts.append(f"text {name} {len(lines)}")
        self.parts += lines

    def write(self):
        self.path.write_text("\n".join(self.parts) + "\n")


class Random:
    """Normal numbers that float32 holds exactly, rounded so that they are short to write."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, *shape):
        return (torch.randn(shape, generator=self.generator, dtype=torch.float64) * 64).round() / 64

    def integers(self, high, *shape):
        return torch.randint(high, shape, generator=self.generator)


# ---- values and gradients
# ---------------------------------------------------------------------------------------------------------
def case(out, random, name, function, inputs, constants=None):
    """For each dtype: NAME.DTYPE.y, and NAME.DTYPE.d<input> for the upstream gradient NAME.dy; inputs are NAME.<input>."""
    for key, value in {**inputs, **(constants or {})}.items():
        out.tensor(f"{name}.{key}", value.to(torch.float32) if value.is_floating_point() else value)
    dy = None
    for label, dtype in DTYPES.items():
        leaves = {k: v.detach().to(dtype, copy=True).requires_grad_() for k, v in inputs.items()}
        y = function(**leaves)
        if dy is None:
            dy = random(*y.shape)
            out.tensor(f"{name}.dy", dy.to(torch.float32))
        gradients = torch.autograd.grad(y, list(leaves.values()), dy.to(dtype))
        out.tensor(f"{name}.{label}.y", y)
        for key, gradient in zip(leaves, gradients):
            out.tensor(f"{name}.{label}.d{key}", gradient)


def write_ops():
    out, r = File("ops.txt", "Values and gradients of ops"), Random(1)
    case(out, r, "linear.bias", lambda x, weight, bias: F.linear(x, weight, bias), dict(x=r(4, 5), weight=r(3, 5), bias=r(3)))
    case(out, r, "linear.plain", lambda x, weight: F.linear(x, weight), dict(x=r(4, 5), weight=r(3, 5)))
    case(out, r, "linear.leading", lambda x, weight, bias: F.linear(x, weight, bias), dict(x=r(2, 3, 5), weight=r(4, 5), bias=r(4)))
    shapes = {
        "matrix": ((3, 4), (4, 5)),
        "tails": ((9, 17), (17, 5)),
        "batch": ((2, 3, 4), (2, 4, 2)),
        "broadcast": ((2, 3, 4), (4, 2)),
        "broadcast_both": ((2, 1, 2, 3), (2, 3, 2)),
        "vectors": ((4,), (4,)),
        "matrix_vector": ((3, 4), (4,)),
        "vector_matrix": ((4,), (4, 3)),
    }
    for name, (a, b) in shapes.items():
        case(out, r, f"matmul.{name}", torch.matmul, dict(input=r(*a), other=r(*b)))

    signs = torch.tensor([0.0, -0.0, 1.5, -1.5, 1e-30, -1e-30, 3e38, -3e38], dtype=torch.float32).to(torch.float64)
    case(out, r, "relu.signs", lambda x: F.relu(x), dict(x=signs))
    case(out, r, "relu.plain", lambda x: F.relu(x), dict(x=r(3, 7)))
    extreme = torch.tensor([[1000.0, 0.0, -1000.0], [-1000.0, -1000.0, -1000.0], [88.0, 89.0, 90.0]], dtype=torch.float64)
    for op in (F.softmax, F.log_softmax):
        for dim in (0, 1, -1):
            case(out, r, f"{op.__name__}.dim{dim}", lambda x: op(x, dim), dict(x=r(2, 3, 4)))
        case(out, r, f"{op.__name__}.extreme", lambda x: op(x, 1), dict(x=extreme))
        case(out, r, f"{op.__name__}.long", lambda x: op(x, -1), dict(x=r(2, 37)))
    for reduction in ("mean", "sum"):
        labels = r.integers(4, 5)
        case(out, r, f"cross_entropy.{reduction}", lambda x: F.cross_entropy(x, labels, reduction=reduction), dict(x=r(5, 4)), dict(labels=labels))
        case(out, r, f"mse_loss.{reduction}", lambda a, b: F.mse_loss(a, b, reduction=reduction), dict(a=r(3, 4), b=r(3, 4)))
    wide = torch.tensor([[1000.0, -1000.0, 0.0], [-50.0, 60.0, 50.0]], dtype=torch.float64)
    labels = torch.tensor([1, 2])
    case(out, r, "cross_entropy.extreme", lambda x: F.cross_entropy(x, labels), dict(x=wide), dict(labels=labels))

    reductions = {"all": ((), False), "first": ((0,), False), "middle": ((1,), False), "last_kept": ((-1,), True), "two": ((0, 2), False), "all_kept": ((0, 1, 2), True)}
    for op in (torch.sum, torch.mean):
        for name, (dims, keep) in reductions.items():
            call = (lambda x: op(x)) if not dims else (lambda x: op(x, dims, keep))
            case(out, r, f"{op.__name__}.{name}", call, dict(x=r(2, 3, 5)), dict(dims=torch.tensor(dims, dtype=torch.int64), keepdim=torch.tensor(keep)))
    index = torch.tensor([[0, 5, 2, 2], [2, 0, 0, 1]])
    case(out, r, "embedding.repeats", lambda weight: F.embedding(index, weight), dict(weight=r(6, 3)), dict(index=index))

    for op in (torch.add, torch.sub, torch.mul, torch.maximum, torch.minimum):
        case(out, r, f"{op.__name__}.broadcast", lambda a, b: op(a, b), dict(a=r(3, 1, 4), b=r(2, 1)))
    positive = lambda *shape: r(*shape).abs() + 0.25
    case(out, r, "div.broadcast", lambda a, b: torch.div(a, b), dict(a=r(3, 4), b=positive(4)))
    for op in (torch.exp, torch.tanh, torch.sigmoid, torch.abs, torch.square, torch.sin, torch.cos):
        case(out, r, f"{op.__name__}.plain", lambda x: op(x), dict(x=r(11)))
    for op in (torch.log, torch.sqrt, torch.rsqrt, torch.reciprocal):
        case(out, r, f"{op.__name__}.plain", lambda x: op(x), dict(x=positive(11)))
    case(out, r, "pow.cube", lambda x: torch.pow(x, 3.0), dict(x=r(11)))
    case(out, r, "pow.half", lambda x: torch.pow(x, 0.5), dict(x=positive(11)))
    case(out, r, "linear_relu.leading", lambda x, weight, bias: F.relu(F.linear(x, weight, bias)), dict(x=r(2, 3, 5), weight=r(4, 5), bias=r(4)))
    out.write()


# ---- optimizers and training
# ------------------------------------------------------------------------------------------------------
def write_optim():
    """NAME.options are the numbers given to the optimizer; NAME.DTYPE.p<i>.step<k> the parameter after step k; gradients are shared."""
    out, r = File("optim.txt", "Parameters after each of five optimizer steps"), Random(2)
    starts = [r(3, 4), r(5)]
    gradients = [[r(3, 4), r(5)] for _ in range(5)]
    for i, p in enumerate(starts):
        out.tensor(f"p{i}", p.to(torch.float32))
        for k, step in enumerate(gradients):
            out.tensor(f"g{i}.step{k + 1}", step[i].to(torch.float32))
    sgd = {
        "sgd.plain": dict(lr=0.1),
        "sgd.decay": dict(lr=0.1, weight_decay=0.05),
        "sgd.momentum": dict(lr=0.1, momentum=0.9),
        "sgd.both": dict(lr=0.05, momentum=0.8, weight_decay=0.1),
        "sgd.dampening": dict(lr=0.05, momentum=0.8, dampening=0.3),
        "sgd.nesterov": dict(lr=0.05, momentum=0.8, weight_decay=0.1, nesterov=True),
        "sgd.maximize": dict(lr=0.05, momentum=0.8, weight_decay=0.1, maximize=True),
    }
    adamw = {
        "adamw.default": dict(lr=0.001, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01),
        "adamw.large": dict(lr=0.1, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1),
        "adamw.no_decay": dict(lr=0.01, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0),
    }
    more = {
        "adam.decay": (torch.optim.Adam, dict(lr=0.05, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1)),
        "adam.amsgrad": (torch.optim.Adam, dict(lr=0.05, betas=(0.5, 0.6), eps=1e-8, weight_decay=0.01, amsgrad=True)),
        "adam.maximize": (torch.optim.Adam, dict(lr=0.05, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1, maximize=True)),
        "adamw.amsgrad": (torch.optim.AdamW, dict(lr=0.05, betas=(0.5, 0.6), eps=1e-8, weight_decay=0.1, amsgrad=True)),
        "adamw.maximize": (torch.optim.AdamW, dict(lr=0.05, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1, maximize=True)),
        "rmsprop.momentum": (torch.optim.RMSprop, dict(lr=0.02, alpha=0.9, eps=1e-6, weight_decay=0.1, momentum=0.8)),
        "rmsprop.centered": (torch.optim.RMSprop, dict(lr=0.02, alpha=0.7, eps=1e-3, centered=True)),
        "rmsprop.both": (torch.optim.RMSprop, dict(lr=0.02, alpha=0.7, eps=1e-3, weight_decay=0.1, momentum=0.5, centered=True, maximize=True)),
        "adagrad.decays": (torch.optim.Adagrad, dict(lr=0.1, lr_decay=0.2, weight_decay=0.1, initial_accumulator_value=0.3, eps=1e-6)),
        "adagrad.maximize": (torch.optim.Adagrad, dict(lr=0.1, weight_decay=0.1, eps=1e-10, maximize=True)),
    }
    fields = {
        torch.optim.SGD: ("lr", "momentum", "weight_decay", "dampening", "nesterov", "maximize"),
        torch.optim.RMSprop: ("lr", "alpha", "eps", "weight_decay", "momentum", "centered", "maximize"),
        torch.optim.Adagrad: ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps", "maximize"),
    }
    cases = {name: (torch.optim.SGD, options) for name, options in sgd.items()} | {name: (torch.optim.AdamW, options) for name, options in adamw.items()} | more
    for name, (kind, options) in cases.items():
        if kind in fields:
            flat = [float(options.get(key, 0.0)) for key in fields[kind]]
        else:
            flat = [options["lr"], *options["betas"], options["eps"], options["weight_decay"]]
            if name in more:
                flat += [float(options.get(key, 0.0)) for key in ("amsgrad", "maximize")]
        out.tensor(f"{name}.options", torch.tensor(flat, dtype=torch.float64))
        for label, dtype in DTYPES.items():
            parameters = [p.detach().to(dtype, copy=True).requires_grad_() for p in starts]
            optimizer = kind(parameters, **options)
            for k, step in enumerate(gradients):
                for p, g in zip(parameters, step):
                    p.grad = g.to(dtype)
                optimizer.step()
                for i, p in enumerate(parameters):
                    out.tensor(f"{name}.{label}.p{i}.step{k + 1}", p)
    out.write()


def write_schedules():
    """NAME.lr: the learning rates of two groups, which start with 0.5 and 0.02, before the first step and after each of 40; NAME.momentum likewise."""
    out = File("schedules.txt", "Learning rates of schedules over 40 steps")
    sched = torch.optim.lr_scheduler
    steps = 40
    plain = {
        "step": lambda o: sched.StepLR(o, 7, gamma=0.3),
        "multistep": lambda o: sched.MultiStepLR(o, [3, 9, 9, 30], gamma=0.5),
        "exponential": lambda o: sched.ExponentialLR(o, 0.93),
        "cosine": lambda o: sched.CosineAnnealingLR(o, 16, eta_min=0.01),
        "cosine.zero": lambda o: sched.CosineAnnealingLR(o, 40),
        "restarts": lambda o: sched.CosineAnnealingWarmRestarts(o, 7, eta_min=0.001),
        "restarts.longer": lambda o: sched.CosineAnnealingWarmRestarts(o, 5, T_mult=2, eta_min=0.001),
        "linear": lambda o: sched.LinearLR(o, start_factor=0.1, end_factor=0.9, total_iters=12),
        "constant": lambda o: sched.ConstantLR(o, factor=0.25, total_iters=8),
        "polynomial": lambda o: sched.PolynomialLR(o, total_iters=25, power=1.7),
        "lambda": lambda o: sched.LambdaLR(o, lambda t: 1 / (1 + 0.1 * t)),
        "onecycle": lambda o: sched.OneCycleLR(o, 0.7, total_steps=41),
        "onecycle.linear": lambda o: sched.OneCycleLR(o, 0.7, total_steps=45, pct_start=0.4, anneal_strategy="linear", div_factor=10, final_div_factor=100),
        "onecycle.three": lambda o: sched.OneCycleLR(o, 0.7, total_steps=41, three_phase=True, base_momentum=0.8, max_momentum=0.9),
        "sequential": lambda o: sched.SequentialLR(
            o, [sched.LinearLR(o, 0.1, total_iters=5), sched.CosineAnnealingLR(o, 20, eta_min=0.01), sched.ExponentialLR(o, 0.9)], [5, 25]
        ),
        "chained": lambda o: sched.ChainedScheduler(
            [sched.ConstantLR(o, 0.1, total_iters=6), sched.ExponentialLR(o, 0.95), sched.CosineAnnealingLR(o, 45), sched.StepLR(o, 10, gamma=0.5)]
        ),
    }
    make = lambda momentum: torch.optim.SGD([{"params": [torch.zeros(1)], "lr": 0.5}, {"params": [torch.zeros(1)], "lr": 0.02}], lr=1.0, momentum=momentum)
    for name, build in plain.items():
        optimizer = make(0.9)
        schedule = build(optimizer)
        rates, momenta = [], []
        for step in range(steps + 1):
            rates.append([g["lr"] for g in optimizer.param_groups])
            momenta.append(optimizer.param_groups[0]["momentum"])
            optimizer.step()
            if step < steps:
                schedule.step()
        out.tensor(f"{name}.lr", torch.tensor(rates, dtype=torch.float64))
        if name.startswith("onecycle"):
            out.tensor(f"{name}.momentum", torch.tensor(momenta, dtype=torch.float64))
    metrics = torch.tensor([1 / (1 + 0.3 * t) if t < 12 else 0.25 + 0.01 * ((t * 7) % 5) for t in range(steps)], dtype=torch.float64)
    out.tensor("plateau.metrics", metrics)
    plateaus = {
        "plateau.default": (dict(), 1),
        "plateau.short": (dict(factor=0.5, patience=2, threshold=0.05, cooldown=1, min_lr=0.003), 1),
        "plateau.absolute": (dict(factor=0.5, patience=3, threshold=0.02, threshold_mode="abs"), 1),
        "plateau.max": (dict(mode="max", factor=0.5, patience=1, threshold=0.02), -1),
        "plateau.max_absolute": (dict(mode="max", factor=0.7, patience=1, threshold=0.02, threshold_mode="abs", cooldown=2), -1),
    }
    for name, (options, sign) in plateaus.items():
        optimizer = make(0.0)
        schedule = sched.ReduceLROnPlateau(optimizer, **options)
        rates = []
        for metric in metrics.tolist():
            schedule.step(sign * metric)
            rates.append([g["lr"] for g in optimizer.param_groups])
        out.tensor(f"{name}.lr", torch.tensor(rates, dtype=torch.float64))
    out.write()


def write_mlp():
    """An MLP 8-16-16-4, 12 rows, ten steps from given weights: the losses, the gradients of the first step, the last layer at the end."""
    out, r = File("mlp.txt", "An MLP 8-16-16-4 trained for ten steps"), Random(3)
    sizes = [(16, 8), (16,), (16, 16), (16,), (4, 16), (4,)]
    names = ["0.weight", "0.bias", "2.weight", "2.bias", "4.weight", "4.bias"]
    starts = [(r(*s) * 0.25 * 64).round() / 64 for s in sizes]
    x, labels = r(12, 8), r.integers(4, 12)
    out.tensor("x", x.to(torch.float32))
    out.tensor("labels", labels)
    for name, p in zip(names, starts):
        out.tensor(name, p.to(torch.float32))
    optimizers = {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
        "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    }
    for kind, make in optimizers.items():
        for label, dtype in DTYPES.items():
            p = [s.detach().to(dtype, copy=True).requires_grad_() for s in starts]
            optimizer, losses = make(p), []
            for step in range(10):
                optimizer.zero_grad()
                h = F.relu(F.linear(x.to(dtype), p[0], p[1]))
                h = F.relu(F.linear(h, p[2], p[3]))
                loss = F.cross_entropy(F.linear(h, p[4], p[5]), labels)
                loss.backward()
                if step == 0 and kind == "sgd":
                    for name, q in zip(names, p):
                        out.tensor(f"{label}.d{name}", q.grad)
                optimizer.step()
                losses.append(loss.detach())
            out.tensor(f"{kind}.{label}.losses", torch.stack(losses))
            for name, q in list(zip(names, p))[4:]:
                out.tensor(f"{kind}.{label}.{name}", q)
    out.write()


# ---- printing
# ---------------------------------------------------------------------------------------------------------------------
def printed(t):
    """PyTorch's text in Braid's words: `dtype=float64`, `size=[0, 3]`, `true`. The words are changed before the lines are broken."""
    add_suffixes = torch._tensor_str._add_suffixes

    def in_our_words(text, suffixes, *rest, **options):
        return add_suffixes(text, [re.sub(r"size=\((.*)\)", r"size=[\1]", s.replace("torch.", "")) for s in suffixes], *rest, **options)

    torch._tensor_str._add_suffixes = in_our_words
    try:
        text = repr(t)
    finally:
        torch._tensor_str._add_suffixes = add_suffixes
    return re.sub(r"\b(True|False)\b", lambda word: word[0].lower(), text)


def print_cases():
    r = Random(4)
    f32, f64, i32, i64 = torch.float32, torch.float64, torch.int32, torch.int64
    nan, inf = float("nan"), float("inf")
    t = lambda values, dtype=f32: torch.tensor(values, dtype=dtype)
    normal = lambda *shape: r(*shape).to(f32)
    yield "scalar", t(3.5)
    yield "scalar_whole", t(2.0)
    yield "scalar_int", t(7, i64)
    yield "scalar_small", t(1e-7)
    yield "scalar_nan", t(nan)
    yield "empty", t([])
    yield "empty_int", t([], i64)
    yield "empty_matrix", torch.zeros(0, 3)
    yield "empty_tail", torch.zeros(2, 0, dtype=f64)
    yield "whole_floats", t([1.0, 2.0, -3.0])
    yield "whole_large", t([100000.0, 1.0])
    yield "whole_over_1e8", t([2e8, 1.0])
    yield "fractions", t([0.25, -1.5, 10.125])
    yield "negative", t([-0.5, -12.75])
    yield "matrix", normal(3, 4)
    yield "rank3", normal(2, 3, 4)
    yield "rank4", normal(2, 1, 2, 3)
    yield "column", normal(4, 1)
    yield "zeros", torch.zeros(2, 3)
    yield "negative_zero", t([-0.0, 0.0])
    yield "scientific_small", t([1e-5, 2.5e-5])
    yield "scientific_ratio", t([0.001, 5.0])
    yield "ratio_not_over", t([0.005, 4.0])
    yield "scientific_large", t([1.5e9, 2.0])
    yield "scientific_matrix", t([[1e-10, 4.0046e-11], [3.0, -2.0]])
    yield "special", t([nan, inf, -inf])
    yield "special_mixed", t([1.5, nan, -inf, 100.25])
    yield "special_whole", t([1.0, inf, -2.0])
    yield "special_scientific", t([1e-8, nan, 1.0])
    yield "float64", t([1.0 / 3.0, 2.0], f64)
    yield "float64_scientific", t([1e-300, 1e300], f64)
    yield "float16", t([0.1, 65504.0], torch.float16)
    yield "float16_plain", t([0.5, -1.25], torch.float16)
    yield "bfloat16", t([0.1, 3.0], torch.bfloat16)
    yield "int64", t([1, -20, 300], i64)
    yield "int64_matrix", t([[1, 2], [-3, 1000]], i64)
    yield "int64_extreme", t([9223372036854775807, -9223372036854775808], i64)
    yield "int32", t([1, 2, 3], i32)
    yield "uint8", t([0, 255], torch.uint8)
    yield "bool", t([True, False], torch.bool)
    yield "bool_true", t([True, True], torch.bool)
    yield "bool_matrix", t([[True, False], [False, False]], torch.bool)
    yield "long_row", normal(25)
    yield "long_row_int", torch.arange(60)
    yield "long_rows", normal(2, 14)
    yield "rounding", t([0.00005, 0.12345, 0.99995, 1.00005])
    yield "exactly_1000", torch.arange(1000).view(100, 10)
    yield "summary_1001", torch.arange(1001)
    yield "summary_float", (torch.arange(1200, dtype=f32) / 16 - 30).view(40, 30)
    yield "summary_int", torch.arange(1100).view(11, 10, 10)
    yield "summary_thin", torch.arange(1400).view(700, 2)
    yield "summary_wide", (torch.arange(1206, dtype=f32) * 0.5).view(6, 201)
    # widths come from what is shown
    yield "summary_hidden_extreme", torch.cat([torch.arange(500, dtype=f32) / 4, t([1e10]), torch.arange(600, dtype=f32) / 4])
    yield "summary_rank4", torch.arange(1536).view(2, 8, 8, 12)
    yield "summary_bool", (torch.arange(1100) % 3 == 0)
    for count in (13, 14, 15, 16, 17, 18):  # the suffix moves to a line of its own
        yield f"suffix_after_{count}", torch.arange(count, dtype=i32)
    yield "suffix_after_matrix", torch.arange(36, dtype=f64).view(2, 18) / 2
    yield "strided", torch.arange(12, dtype=f32).view(3, 4).t()


def write_print():
    """NAME.value and the text that printing it gives. grad.NAME: the same for a leaf that requires a gradient."""
    out = File("print.txt", "Printed tensors, in PyTorch's layout")
    for name, value in print_cases():
        out.tensor(f"{name}.value", value)
        out.text(f"{name}", printed(value))
    for name, value in {"vector": torch.tensor([1.0, -2.0]), "float64": torch.tensor([0.5], dtype=torch.float64), "matrix": torch.tensor([[0.5, 1.25]])}.items():
        out.tensor(f"grad.{name}.value", value)
        out.text(f"grad.{name}", printed(value.requires_grad_()))
    out.write()


def main():
    torch.set_num_threads(1)
    write_ops()
    write_optim()
    write_schedules()
    write_mlp()
    write_print()
    total = sum(f.stat().st_size for f in FOLDER.glob("*.txt"))
    print(f"{total / 1024:.0f} KiB in {FOLDER}")
    if total > 300 * 1024:
        raise SystemExit("the goldens must stay under 300 KiB")


if __name__ == "__main__":
    main()
