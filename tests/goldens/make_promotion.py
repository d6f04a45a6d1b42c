"""Writes promotion.txt: the dtypes that PyTorch computes with, for every pair of dtypes and for a tensor beside a number.

    . build/peers-venv/peers.env && build/peers-venv/bin/python tests/goldens/make_promotion.py   (after bench/peers/setup.sh)

One `text` record (README.md) of lines `A B RESULT` and `A number RESULT`; tensors have one dimension.
"""

import pathlib

import torch

DTYPES = ["bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
NUMBERS = ["0", "1", "-3", "300", "0.5", "1e300", "inf", "nan"]


def name(dtype):
    return str(dtype).removeprefix("torch.")


def number(text):
    """What the literal is in Python: whole numbers are int."""
    return int(text) if text.lstrip("-").isdigit() else float(text)


lines = []
for a in DTYPES:
    x = torch.ones(2, dtype=getattr(torch, a))
    lines += [f"{a} {b} {name(torch.result_type(x, torch.ones(2, dtype=getattr(torch, b))))}" for b in DTYPES]
    lines += [f"{a} {n} {name(torch.result_type(x, number(n)))}" for n in NUMBERS]
head = f"# dtypes of an operand beside another\n# PyTorch {torch.__version__.split('+')[0]}, written by make_promotion.py\n"
folder = pathlib.Path(__file__).resolve().parent
(folder / "promotion.txt").write_text(head + f"text promotion {len(lines)}\n" + "\n".join(lines) + "\n")
