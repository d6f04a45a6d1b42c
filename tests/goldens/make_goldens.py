"""Writes the text goldens of this folder: values, gradients, training runs, printed tensors and
dtypes, computed by PyTorch on the CPU.

    . build/peers-venv/peers.env
    build/peers-venv/bin/python tests/goldens/make_goldens.py     (after bench/peers/setup.sh)

The files are committed; tests read them with support/golden.hpp and do not need PyTorch. Another
run with the same PyTorch gives the same bytes. Format (README.md): `tensor NAME DTYPE RANK SIZES…
VALUES…`, and `text NAME LINES` followed by that many lines. Inputs are exact in float32, so the
float32 and the float64 case of a name share them.
"""

import pathlib
import re
import textwrap

import torch
from torch.nn import functional as F

FOLDER = pathlib.Path(__file__).resolve().parent
TORCH = torch.__version__.split("+")[0]
DTYPES = {"float32": torch.float32, "float64": torch.float64}


class File:
    def __init__(self, name, about):
        self.path = FOLDER / name
        self.parts = [f"# {about}", f"# PyTorch {TORCH}, written by make_goldens.py"]

    def tensor(self, name, t):
        t = t.detach()
        flat = t.reshape(-1)
        if t.dtype == torch.float32:
            # the shortest text that is parsed to the same float
            values = [str(v) for v in flat.numpy()]
        elif t.dtype == torch.bool:
            values = [str(int(v)) for v in flat.tolist()]
        else:
            values = [repr(v) for v in flat.tolist()]
        sizes = map(str, [t.dim(), *t.shape])
        self.parts.append(" ".join(["tensor", name, word(t.dtype), *sizes]))
        whole_words = dict(break_long_words=False, break_on_hyphens=False)
        self.parts += textwrap.wrap(" ".join(values), 150, **whole_words)

    def tensors(self, prefix, named):
        for name, t in dict(named).items():
            self.tensor(prefix + name, t)

    def text(self, name, text):
        lines = text.split("\n")
        self.parts += [f"text {name} {len(lines)}", *lines]

    def write(self):
        self.path.write_text("\n".join(self.parts) + "\n")


def word(dtype):
    return str(dtype).removeprefix("torch.")


class Random:
    """Normal numbers that are exact in float32, rounded so that their text is short."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, *shape):
        return (torch.randn(shape, generator=self.generator, dtype=torch.float64) * 64).round() / 64

    def integers(self, high, *shape):
        return torch.randint(high, shape, generator=self.generator)


def eighths(shape, seed, scale):
    """Returns uniform numbers of 8 bits, whose text is short."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-128, 128, shape, generator=generator).double() / scale


def f64(values):
    return torch.tensor(values, dtype=torch.float64)


def leaf(value, dtype):
    return value.detach().to(dtype, copy=True).requires_grad_()


# ---- optimizers and training
OPTIMIZERS = {
    "sgd.plain": dict(lr=0.1),
    "sgd.decay": dict(lr=0.1, weight_decay=0.05),
    "sgd.momentum": dict(lr=0.1, momentum=0.9),
    "sgd.both": dict(lr=0.05, momentum=0.8, weight_decay=0.1),
    "sgd.dampening": dict(lr=0.05, momentum=0.8, dampening=0.3),
    "sgd.nesterov": dict(lr=0.05, momentum=0.8, weight_decay=0.1, nesterov=True),
    "sgd.maximize": dict(lr=0.05, momentum=0.8, weight_decay=0.1, maximize=True),
    "adamw.default": dict(lr=0.001, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01),
    "adamw.large": dict(lr=0.1, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1),
    "adamw.no_decay": dict(lr=0.01, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0),
    "adam.decay": dict(lr=0.05, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1),
    "adam.amsgrad": dict(lr=0.05, betas=(0.5, 0.6), eps=1e-8, weight_decay=0.01, amsgrad=True),
    "adam.maximize": dict(lr=0.05, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1, maximize=True),
    "adamw.amsgrad": dict(lr=0.05, betas=(0.5, 0.6), eps=1e-8, weight_decay=0.1, amsgrad=True),
    "adamw.maximize": dict(lr=0.05, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1, maximize=True),
    "rmsprop.momentum": dict(lr=0.02, alpha=0.9, eps=1e-6, weight_decay=0.1, momentum=0.8),
    "rmsprop.centered": dict(lr=0.02, alpha=0.7, eps=1e-3, centered=True),
    "rmsprop.both": dict(
        lr=0.02, alpha=0.7, eps=1e-3, weight_decay=0.1, momentum=0.5, centered=True, maximize=True
    ),
    "adagrad.decays": dict(
        lr=0.1, lr_decay=0.2, weight_decay=0.1, initial_accumulator_value=0.3, eps=1e-6
    ),
    "adagrad.maximize": dict(lr=0.1, weight_decay=0.1, eps=1e-10, maximize=True),
}
ADAM = "lr betas eps weight_decay"
OPTIONS = {
    "sgd": (torch.optim.SGD, "lr momentum weight_decay dampening nesterov maximize"),
    "adam": (torch.optim.Adam, ADAM + " amsgrad maximize"),
    "adamw": (torch.optim.AdamW, ADAM + " amsgrad maximize"),
    "rmsprop": (torch.optim.RMSprop, "lr alpha eps weight_decay momentum centered maximize"),
    "adagrad": (
        torch.optim.Adagrad,
        "lr lr_decay weight_decay initial_accumulator_value eps maximize",
    ),
}


def calls_of(path):
    """Returns the calls in the records `text NAME.call 1` of a file, by name."""
    lines = path.read_text().splitlines()
    records = [(line, lines[i + 1]) for i, line in enumerate(lines) if line.startswith("text ")]
    return {
        line.split()[1].removesuffix(".call"): call
        for line, call in records
        if line.endswith(".call 1")
    }


def write_optim():
    """NAME.options has the numbers given to the optimizer, NAME.DTYPE.p<i>.step<k> the parameter
    after step k. All optimizers use the same gradients. An optimizer that is not in OPTIMIZERS has
    the record NAME.call in the file: `Adadelta(p, rho=0.8)`, of torch.optim; add it there by hand
    and run this script."""
    out, r = File("optim.txt", "Parameters after each of five optimizer steps"), Random(2)
    calls = calls_of(out.path)
    starts = [r(3, 4), r(5)]
    gradients = [[r(3, 4), r(5)] for _ in range(5)]
    for i, p in enumerate(starts):
        out.tensor(f"p{i}", p.float())
        for k, step in enumerate(gradients):
            out.tensor(f"g{i}.step{k + 1}", step[i].float())

    def write_steps(name, make):
        for label, dtype in DTYPES.items():
            parameters = [leaf(p, dtype) for p in starts]
            optimizer = make(parameters)
            for k, step in enumerate(gradients):
                for p, g in zip(parameters, step):
                    p.grad = g.to(dtype)
                optimizer.step()
                names = [f"p{i}.step{k + 1}" for i in range(len(starts))]
                out.tensors(f"{name}.{label}.", zip(names, parameters))

    for name, options in OPTIMIZERS.items():
        kind, fields = OPTIONS[name.split(".")[0]]
        if name in ("adamw.default", "adamw.large", "adamw.no_decay"):
            fields = ADAM
        flat = []
        for field in fields.split():
            flat += options["betas"] if field == "betas" else [float(options.get(field, 0.0))]
        out.tensor(f"{name}.options", f64(flat))
        write_steps(name, lambda p: kind(p, **options))
    for name, call in calls.items():
        out.text(f"{name}.call", call)
        write_steps(name, lambda p: eval(call, {**vars(torch.optim), "p": p}))
    out.write()


def schedules():
    """Returns name → a function that makes the schedule of an optimizer."""
    s = torch.optim.lr_scheduler
    short = dict(T_0=5, T_mult=2, eta_min=0.001)
    linear = dict(pct_start=0.4, anneal_strategy="linear", div_factor=10, final_div_factor=100)
    three = dict(three_phase=True, base_momentum=0.8, max_momentum=0.9)

    def sequential(o):
        first, last = s.LinearLR(o, 0.1, total_iters=5), s.CosineAnnealingLR(o, 20, eta_min=0.01)
        return s.SequentialLR(o, [first, last, s.ExponentialLR(o, 0.9)], [5, 25])

    def chained(o):
        first, second = s.ConstantLR(o, 0.1, total_iters=6), s.ExponentialLR(o, 0.95)
        third, fourth = s.CosineAnnealingLR(o, 45), s.StepLR(o, 10, gamma=0.5)
        return s.ChainedScheduler([first, second, third, fourth])

    return {
        "step": lambda o: s.StepLR(o, 7, gamma=0.3),
        "multistep": lambda o: s.MultiStepLR(o, [3, 9, 9, 30], gamma=0.5),
        "exponential": lambda o: s.ExponentialLR(o, 0.93),
        "cosine": lambda o: s.CosineAnnealingLR(o, 16, eta_min=0.01),
        "cosine.zero": lambda o: s.CosineAnnealingLR(o, 40),
        "restarts": lambda o: s.CosineAnnealingWarmRestarts(o, 7, eta_min=0.001),
        "restarts.longer": lambda o: s.CosineAnnealingWarmRestarts(o, **short),
        "linear": lambda o: s.LinearLR(o, start_factor=0.1, end_factor=0.9, total_iters=12),
        "constant": lambda o: s.ConstantLR(o, factor=0.25, total_iters=8),
        "polynomial": lambda o: s.PolynomialLR(o, total_iters=25, power=1.7),
        "lambda": lambda o: s.LambdaLR(o, lambda t: 1 / (1 + 0.1 * t)),
        "onecycle": lambda o: s.OneCycleLR(o, 0.7, total_steps=41),
        "onecycle.linear": lambda o: s.OneCycleLR(o, 0.7, total_steps=45, **linear),
        "onecycle.three": lambda o: s.OneCycleLR(o, 0.7, total_steps=41, **three),
        "sequential": sequential,
        "chained": chained,
    }


def write_schedules():
    """NAME.lr: the learning rates of two groups that start with 0.5 and 0.02, before the first
    step and after each of 40 steps. NAME.momentum: the same for the momentum."""
    out = File("schedules.txt", "Learning rates of schedules over 40 steps")
    steps = 40

    def make(momentum):
        groups = [{"params": [torch.zeros(1)], "lr": lr} for lr in (0.5, 0.02)]
        return torch.optim.SGD(groups, lr=1.0, momentum=momentum)

    for name, build in schedules().items():
        optimizer = make(0.9)
        schedule = build(optimizer)
        rates, momenta = [], []
        for step in range(steps + 1):
            rates.append([g["lr"] for g in optimizer.param_groups])
            momenta.append(optimizer.param_groups[0]["momentum"])
            optimizer.step()
            if step < steps:
                schedule.step()
        out.tensor(f"{name}.lr", f64(rates))
        if name.startswith("onecycle"):
            out.tensor(f"{name}.momentum", f64(momenta))
    falling = lambda t: 1 / (1 + 0.3 * t) if t < 12 else 0.25 + 0.01 * ((t * 7) % 5)
    metrics = f64([falling(t) for t in range(steps)])
    out.tensor("plateau.metrics", metrics)
    top = dict(mode="max", patience=1, threshold=0.02)
    plateaus = {
        "plateau.default": dict(),
        "plateau.short": dict(factor=0.5, patience=2, threshold=0.05, cooldown=1, min_lr=0.003),
        "plateau.absolute": dict(factor=0.5, patience=3, threshold=0.02, threshold_mode="abs"),
        "plateau.max": dict(**top, factor=0.5),
        "plateau.max_absolute": dict(**top, factor=0.7, threshold_mode="abs", cooldown=2),
    }
    for name, options in plateaus.items():
        optimizer = make(0.0)
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        rates = []
        for metric in metrics.tolist():
            schedule.step(-metric if "mode" in options else metric)
            rates.append([g["lr"] for g in optimizer.param_groups])
        out.tensor(f"{name}.lr", f64(rates))
    out.write()


def write_mlp():
    """An MLP 8-16-16-4 with 12 rows, trained for ten steps from given weights: the losses, the
    gradients of the first step, the last layer after training."""
    out, r = File("mlp.txt", "An MLP 8-16-16-4 trained for ten steps"), Random(3)
    sizes = [(16, 8), (16,), (16, 16), (16,), (4, 16), (4,)]
    names = ["0.weight", "0.bias", "2.weight", "2.bias", "4.weight", "4.bias"]
    starts = [(r(*s) * 0.25 * 64).round() / 64 for s in sizes]
    x, labels = r(12, 8), r.integers(4, 12)
    out.tensor("x", x.float())
    out.tensor("labels", labels)
    out.tensors("", {name: p.float() for name, p in zip(names, starts)})
    optimizers = {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
        "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    }
    for kind, make in optimizers.items():
        for label, dtype in DTYPES.items():
            p = [leaf(s, dtype) for s in starts]
            optimizer, losses = make(p), []
            for step in range(10):
                optimizer.zero_grad()
                h = F.relu(F.linear(x.to(dtype), p[0], p[1]))
                h = F.relu(F.linear(h, p[2], p[3]))
                loss = F.cross_entropy(F.linear(h, p[4], p[5]), labels)
                loss.backward()
                if step == 0 and kind == "sgd":
                    out.tensors(f"{label}.d", {name: q.grad for name, q in zip(names, p)})
                optimizer.step()
                losses.append(loss.detach())
            out.tensor(f"{kind}.{label}.losses", torch.stack(losses))
            out.tensors(f"{kind}.{label}.", zip(names[4:], p[4:]))
    out.write()


# ---- printing
def printed(t):
    """Returns PyTorch's text with Braid's spelling: `dtype=float64`, `size=[0, 3]`, `true`. The
    spelling is changed before lines are broken."""
    add_suffixes = torch._tensor_str._add_suffixes
    ours = lambda suffix: re.sub(r"size=\((.*)\)", r"size=[\1]", suffix.replace("torch.", ""))

    def in_our_words(text, suffixes, *rest, **options):
        return add_suffixes(text, [ours(s) for s in suffixes], *rest, **options)

    torch._tensor_str._add_suffixes = in_our_words
    try:
        text = repr(t)
    finally:
        torch._tensor_str._add_suffixes = add_suffixes
    return re.sub(r"\b(True|False)\b", lambda word: word[0].lower(), text)


def print_cases():
    r = Random(4)
    f32, i32, i64 = torch.float32, torch.int32, torch.int64
    nan, inf = float("nan"), float("inf")
    t = lambda values, dtype=f32: torch.tensor(values, dtype=dtype)
    normal = lambda *shape: r(*shape).float()
    count = torch.arange
    quarters = lambda n: count(n, dtype=f32) / 4
    return dict(
        scalar=t(3.5), scalar_whole=t(2.0), scalar_int=t(7, i64), scalar_small=t(1e-7),
        scalar_nan=t(nan), empty=t([]), empty_int=t([], i64), empty_matrix=torch.zeros(0, 3),
        empty_tail=torch.zeros(2, 0, dtype=torch.float64),
        whole_floats=t([1.0, 2.0, -3.0]), whole_large=t([100000.0, 1.0]),
        whole_over_1e8=t([2e8, 1.0]), fractions=t([0.25, -1.5, 10.125]),
        negative=t([-0.5, -12.75]), matrix=normal(3, 4), rank3=normal(2, 3, 4),
        rank4=normal(2, 1, 2, 3), column=normal(4, 1), zeros=torch.zeros(2, 3),
        negative_zero=t([-0.0, 0.0]),
        scientific_small=t([1e-5, 2.5e-5]), scientific_ratio=t([0.001, 5.0]),
        ratio_not_over=t([0.005, 4.0]), scientific_large=t([1.5e9, 2.0]),
        scientific_matrix=t([[1e-10, 4.0046e-11], [3.0, -2.0]]),
        special=t([nan, inf, -inf]), special_mixed=t([1.5, nan, -inf, 100.25]),
        special_whole=t([1.0, inf, -2.0]), special_scientific=t([1e-8, nan, 1.0]),
        float64=f64([1.0 / 3.0, 2.0]), float64_scientific=f64([1e-300, 1e300]),
        float16=t([0.1, 65504.0], torch.float16), float16_plain=t([0.5, -1.25], torch.float16),
        bfloat16=t([0.1, 3.0], torch.bfloat16),
        int64=t([1, -20, 300], i64), int64_matrix=t([[1, 2], [-3, 1000]], i64),
        int64_extreme=t([9223372036854775807, -9223372036854775808], i64),
        int32=t([1, 2, 3], i32), uint8=t([0, 255], torch.uint8),
        bool=t([True, False], torch.bool), bool_true=t([True, True], torch.bool),
        bool_matrix=t([[True, False], [False, False]], torch.bool),
        long_row=normal(25), long_row_int=count(60), long_rows=normal(2, 14),
        rounding=t([0.00005, 0.12345, 0.99995, 1.00005]),
        exactly_1000=count(1000).view(100, 10), summary_1001=count(1001),
        summary_float=(count(1200, dtype=f32) / 16 - 30).view(40, 30),
        summary_int=count(1100).view(11, 10, 10), summary_thin=count(1400).view(700, 2),
        summary_wide=(count(1206, dtype=f32) * 0.5).view(6, 201),
        # the widths depend only on the elements that are shown
        summary_hidden_extreme=torch.cat([quarters(500), t([1e10]), quarters(600)]),
        summary_rank4=count(1536).view(2, 8, 8, 12), summary_bool=(count(1100) % 3 == 0),
        # the suffix moves to a separate line
        **{f"suffix_after_{n}": count(n, dtype=i32) for n in (13, 14, 15, 16, 17, 18)},
        suffix_after_matrix=count(36, dtype=torch.float64).view(2, 18) / 2,
        strided=count(12, dtype=f32).view(3, 4).t(),
    )  # fmt: skip


def write_print():
    """NAME.value, and the text that printing it gives. grad.NAME: the same for a leaf that requires
    a gradient."""
    out = File("print.txt", "Printed tensors, in PyTorch's layout")
    for name, value in print_cases().items():
        out.tensor(f"{name}.value", value)
        out.text(name, printed(value))
    leaves = dict(vector=torch.tensor([1.0, -2.0]), float64=f64([0.5]))
    for name, value in dict(**leaves, matrix=torch.tensor([[0.5, 1.25]])).items():
        out.tensor(f"grad.{name}.value", value)
        out.text(f"grad.{name}", printed(value.requires_grad_()))
    out.write()


def write_promotion():
    """Lines `A B RESULT` and `A number RESULT`, for tensors with one dimension."""
    dtypes = "bool uint8 int32 int64 float16 bfloat16 float32 float64".split()
    ones = {name: torch.ones(2, dtype=getattr(torch, name)) for name in dtypes}
    # The type of a literal in Python: whole numbers are int.
    numbers = {n: int(n) for n in "0 1 -3 300".split()}
    numbers |= {n: float(n) for n in "0.5 1e300 inf nan".split()}
    lines = []
    for a, x in ones.items():
        for b, y in (ones | numbers).items():
            lines.append(f"{a} {b} {word(torch.result_type(x, y))}")
    out = File("promotion.txt", "dtypes of an operand beside another")
    out.text("promotion", "\n".join(lines))
    out.write()


def main():
    torch.set_num_threads(1)
    for write in (write_optim, write_schedules, write_mlp, write_print, write_promotion):
        write()
    total = sum(f.stat().st_size for f in FOLDER.glob("*.txt"))
    print(f"{total / 1024:.0f} KiB in {FOLDER}")
    if total > 320 * 1024:
        raise SystemExit("the text goldens must stay under 320 KiB")


if __name__ == "__main__":
    main()
