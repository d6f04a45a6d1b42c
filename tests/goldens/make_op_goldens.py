"""Writes goldens/ops: the results of PyTorch on the CPU for every case of the table of ops
(tests/core/op_cases*.cpp).

    ./dev test core; . build/peers-venv/peers.env          (after bench/peers/setup.sh)
    build/peers-venv/bin/python tests/goldens/make_op_goldens.py PROGRAM

PROGRAM is build/release/tests/core/braid_tests_core. It writes the inputs and the expression of
each call (OpCase::torch, with x0, x1, … or their list x). This script evaluates them in float64,
and in float32 where requested, with the gradients for the output gradient of `incoming`. Tests read
the result through tests/core/op_samples.cpp and do not need PyTorch. Another run with the same
PyTorch gives the same bytes. Format: README.md.
"""

import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import warnings

import torch
from safetensors import safe_open
from torch.nn import functional as F

from make_goldens import TORCH

FOLDER = pathlib.Path(__file__).resolve().parent / "ops"
LIMIT = 2 * 1024 * 1024


def load(path):
    """Returns the tensors and the metadata of a safetensors file."""
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()


def save(path, tapes):
    """Writes rows of numbers by name: {name: (struct format, numbers)}."""
    header, data = {"__metadata__": {"torch": TORCH, "written_by": "make_op_goldens.py"}}, b""
    for name, (kind, numbers) in tapes.items():
        raw = struct.pack(f"<{len(numbers)}{kind}", *numbers)
        type_of, place = {"d": "F64", "f": "F32"}[kind], [len(data), len(data) + len(raw)]
        header[name] = {"dtype": type_of, "shape": [len(numbers)], "data_offsets": place}
        data += raw
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def incoming(y, k):
    """Returns the gradient of output k; op_samples.hpp has the same formula."""
    i = torch.arange(y.numel(), dtype=torch.float64)
    return (((37 * i + 11 * k) % 64 - 31.5) / 32).reshape(y.shape).to(y.dtype)


def fits(*conditions):
    """For calls that crash on sizes that do not fit, instead of raising an error."""
    if not all(conditions):
        raise ValueError("sizes that do not fit")


def tensors_of(result):
    if isinstance(result, torch.Tensor):
        return [result]
    return [t for item in result for t in tensors_of(item)]


def evaluate(words, inputs, dtype, with_gradients):
    """Returns the outputs, and for each floating-point input the gradient or None."""
    x = [t.detach().clone().to(dtype if t.is_floating_point() else t.dtype) for t in inputs]
    floating = [t for t in x if t.is_floating_point()]
    for t in floating:
        t.requires_grad_(with_gradients)
    # integers become this dtype where an op needs floating point
    torch.set_default_dtype(dtype)
    names = {f"x{i}": t for i, t in enumerate(x)} | {"x": x}
    known = {"torch": torch, "F": F, "math": math, "fits": fits, **names}
    outputs = tensors_of(eval(words, known))
    recorded = [(y, incoming(y, k)) for k, y in enumerate(outputs) if y.requires_grad]
    gradients = [None] * len(floating)
    if recorded:
        ys, dys = zip(*recorded)
        gradients = torch.autograd.grad(ys, floating, dys, allow_unused=True)
    return [y.detach() for y in outputs], gradients


def tape(tensors):
    numbers = [len(tensors)]
    for t in tensors:
        if t is None:
            numbers.append(-1)
        else:
            numbers += [t.dim(), *t.shape, *t.to(torch.float64).reshape(-1).tolist()]
    return numbers


def is_float32(x):
    """Returns whether the number is exact in float32."""
    if x != x or abs(x) > sys.float_info.max:
        return True
    return abs(x) < 3e38 and struct.unpack("<f", struct.pack("<f", x))[0] == x


def make_case(name, words, samples):
    wide, narrow, outputs_alone = [], [], []
    for kind, sample in samples.items():
        mark, with_gradients, has_float32 = sample["mark"].tolist()
        inputs = [sample[f"x{i}"] for i in range(len(sample) - 1)]
        # three numbers, each exact in float32
        wide += [int(mark) >> 36, int(mark) >> 18 & 0x3FFFF, int(mark) & 0x3FFFF]
        try:
            outputs, gradients = evaluate(words, inputs, torch.float64, bool(with_gradients))
        except (RuntimeError, IndexError, ValueError) as error:
            if kind == "numbers":
                raise SystemExit(f"{name}: {words}: {error}")
            wide.append(-1)
            continue
        wide += [0, *tape(outputs), *tape(gradients)]
        if has_float32:
            narrow += tape(evaluate(words, inputs, torch.float32, False)[0])
            outputs_alone += tape(outputs)
    return wide, [] if repr(narrow) == repr(outputs_alone) else narrow  # repr: NaN equals NaN


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "reduction: 'mean'")  # kl_div warns in every call
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "BRAID_SAMPLES": folder}
        command = [sys.argv[1], "[dump-samples]"]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        written = set()
        for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
            tensors, words = load(path)
            cases = {}
            for key, t in tensors.items():
                name, number, kind, part = key.rsplit("|", 3)
                cases.setdefault(name, {}).setdefault((int(number), kind), {})[part] = t
            tapes = {}
            for name in sorted(cases):
                samples = {kind: sample for (_, kind), sample in sorted(cases[name].items())}
                wide, narrow = make_case(name, words[name], samples)
                tapes[name] = ("f" if all(is_float32(x) for x in wide) else "d", wide)
                if narrow:
                    tapes[name + ", float32"] = ("f", narrow)
            save(FOLDER / path.name, tapes)
            written.add(path.name)
            size = (FOLDER / path.name).stat().st_size
            print(f"{path.name}: {len(cases)} cases, {size / 1024:.0f} KiB")
    for old in FOLDER.glob("*.safetensors"):
        if old.name not in written:
            old.unlink()
    total = sum(f.stat().st_size for f in FOLDER.glob("*.safetensors"))
    print(f"{total / 1024:.0f} KiB in {FOLDER.name}")
    if total > LIMIT:
        raise SystemExit("the goldens of the ops must stay under 2 MiB")


if __name__ == "__main__":
    main()
