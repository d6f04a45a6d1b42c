"""Compiles the lines of the tables: what a row says must be what the compiler says."""

import keyword
import os
import pathlib
import re
import subprocess

from vocabulary_compile import Compiler
from vocabulary_table import Row, Table, Topic

MODULES = ("core", "kernels", "nn", "data", "parallel")
CXX_WORDS = {"bool", "char", "short", "int", "long", "float", "double", "new", "export"}


# Rows that are wrong, one in each way. They are compiled with the others; a run that does not
# report each of them has checked nothing.
LIES = [
    Row("lies", 1, "no_such_name", "same", "torch::no_such_name(x)"),
    Row("lies", 2, "no_such_name", "other", "torch::no_such_name(x)", "no_such_name(x)"),
    Row("lies", 3, "relu", "other", "torch::relu(x)", "relu(x)"),
    Row("lies", 4, "sigmoid", "none", "torch::sigmoid(x)", "", "a lie"),
    Row("lies", 5, "tanh", "none", "", "", "a lie"),
    Row("lies", 6, "optim", "none", "", "", "a lie"),
]


def compiler(folder, work):
    """The compiler, with fixtures.hpp compiled once."""
    work.mkdir(parents=True, exist_ok=True)
    for old in work.glob("unit_*"):
        old.unlink()
    command = ["g++", "-std=c++20", "-w", *(f"-I{m}/include" for m in MODULES)]
    command += ["-Icore/umbrella"]
    header = work / "fixtures.hpp"
    header.write_text((folder / "fixtures.hpp").read_text())
    subprocess.run(
        [*command, "-x", "c++-header", str(header), "-o", f"{header}.gch"], check=True
    )
    flags = ["-fsyntax-only", "-fmax-errors=0", "-fno-diagnostics-show-caret", f"-I{work}"]
    return Compiler([*command, *flags], "fixtures.hpp", work, os.cpu_count() or 1)


def libtorch(row):
    return re.sub(r"\bF::", "torch::nn::functional::", row.libtorch)


def braid(row):
    return f"using namespace braid; {row.braid}"


def probes(table, row):
    """Statements of which one compiles if Braid has the name at all."""
    if row.name in CXX_WORDS or keyword.iskeyword(row.name) or not row.name.isidentifier():
        return []
    if table.stem == "tensor":
        return [f"struct P : torch::Tensor {{ using torch::Tensor::{row.name}; }}"]
    found = []
    for space in table.spaces:
        found += [f"using {space}::{row.name}", f"namespace probe = {space}::{row.name}"]
    return found


def compare(tables, compiler):
    """[(row, what is wrong)] of all rows that say something else than the compiler."""
    right, wrong, rows = {}, {}, {}
    lies = Table("lies", "", ("torch",), [Topic("", [], LIES)])
    for table in [*tables, lies]:
        exists = {row.name for row in table.rows() if row.status != "none"}
        for row in table.rows():
            key = (row.file, row.line)
            rows[key] = row
            if row.status in ("same", "differs"):
                right[(*key, "LibTorch's line")] = libtorch(row)
            elif row.libtorch:
                wrong[(*key, "LibTorch's line")] = libtorch(row)
            if row.braid:
                right[(*key, "Braid's line")] = braid(row)
            if row.status == "none" and row.name not in exists:
                for n, probe in enumerate(probes(table, row)):
                    wrong[(*key, f"the name, {n}")] = probe
    failed = compiler.failures(right)
    failed_as_said = compiler.failures(wrong)
    found = []
    for key, message in failed.items():
        row = rows[key[:2]]
        found.append((row, f"is {row.status}, but {key[2]} does not compile: {message}"))
    for key in wrong:
        if key in failed_as_said:
            continue
        row = rows[key[:2]]
        what = key[2].split(",")[0]
        found.append((row, f"is {row.status}, but {what} compiles"))
    missed = [row for row in LIES if not any(row is seen for seen, _ in found)]
    if missed:
        raise SystemExit(f"FAIL: rows that are wrong were not reported: {missed}")
    return [(row, message) for row, message in found if row not in LIES]


def update(tables, found):
    """Sets each status to what the compiler says. Returns how many were changed, and what a person
    has to decide."""
    changed, left = [], []
    for row, message in found:
        if row.status in ("other", "none") and message.endswith("LibTorch's line compiles"):
            print(f"same now: {row.name}: {row.libtorch}")
            row.status, row.braid, row.note = "same", "", ""
            changed.append(row)
        else:
            left.append((row, message))
    # a line that is no longer needed may be wrong
    left = [(row, message) for row, message in left if not any(row is one for one in changed)]
    return len(changed), left
