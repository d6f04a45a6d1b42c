#!/usr/bin/env python3
"""Injects faults into the library, one at a time, and reports which test or check detects each.

A fault is one change of one line: a different operator, a bound or a constant off by one, or a
removed call. A seed selects the faults, the same number from each of kernels/cpu, kernels/cuda,
core, parallel and data, so that the list is the same on every machine. Each fault is made in a copy
of the tree (build/faults/tree) with separate build folders, so that only the affected files are
compiled. The suites run until one fails. Faults that no suite detects are printed: such a fault is
either equivalent to the original, or shows a gap in the tests.

  faults.py [--seed S] [--count N] [--list] [--only I,J,…] [--all]

--list only prints the faults. --all runs the suites as ./dev check --all does; without it, as CI
does (BRAID_CHECK_TURN selects the sample). The exit status is 1 if a fault was not detected.
"""
import argparse
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["kernels/cpu", "kernels/cuda", "core", "parallel", "data"]
SUFFIXES = (".cpp", ".hpp", ".cu", ".cuh")
# The changes of operators: the pattern, and its replacement.
OPERATORS = [(" + ", " - "), (" - ", " + "), (" * ", " + "), (" / ", " * "), (" < ", " <= "),
             (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" == ", " != "), (" != ", " == "),
             (" && ", " || "), (" || ", " && "), (" += ", " -= ")]
NUMBER = re.compile(r"(?<![\w.\"'])(\d+)(?![\w.\"'])")
CALL = re.compile(r"^\s*(?!return|throw|co_|delete|static_assert|using|else)[\w:.>\-]+\([^{}]*\);$")
SKIP = re.compile(r"^\s*(//|#|\*|template|static_assert|using|namespace|extern|case |\})|"
                  r"BRAID_FIELDS|operator|throw |\[\[|noexcept")


def places():
    """Returns all possible changes, by folder: (path, line number, before, after)."""
    found = {folder: [] for folder in FOLDERS}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in SUFFIXES or "stand_in" in path.name:
                continue
            in_function = False
            for number, line in enumerate(path.read_text().splitlines(), 1):
                code = line.split("//")[0].rstrip()
                in_function = code.startswith(" ") and len(code) > 0
                if not in_function or SKIP.search(line) or '"' in code:
                    continue
                name = str(path.relative_to(ROOT))
                for old, new in OPERATORS:
                    if code.count(old) == 1:
                        found[folder].append((name, number, code, code.replace(old, new)))
                for match in NUMBER.finditer(code):
                    more = str(int(match.group()) + 1)
                    changed = code[: match.start()] + more + code[match.end():]
                    found[folder].append((name, number, code, changed))
                if CALL.match(code):
                    indent = code[: len(code) - len(code.lstrip())]
                    found[folder].append((name, number, code, indent + ";"))
    return found


def draw(seed, count):
    chance = random.Random(seed)
    queues = {folder: chance.sample(list_, len(list_)) for folder, list_ in places().items()}
    for i in range(count):
        yield i, queues[FOLDERS[i % len(FOLDERS)]]


class Tree:
    """A copy of the tree, with its build folders."""

    def __init__(self):
        self.folder = ROOT / "build/faults/tree"
        self.folder.mkdir(parents=True, exist_ok=True)
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True,
                                check=True).stdout.split("\0")
        for name in filter(None, listed):
            source, copy = ROOT / name, self.folder / name
            # Unchanged files keep their modification time, so that little is compiled.
            if source.is_file() and not (copy.is_file()
                                         and copy.read_bytes() == source.read_bytes()):
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, copy)

    def run(self, command, seconds=1500, **environment):
        try:
            done = subprocess.run(["bash", "-c", ". tests/lib.sh; " + command], cwd=self.folder,
                                  env=dict(os.environ, **environment), capture_output=True,
                                  text=True, errors="replace", timeout=seconds)
            return done.returncode, done.stdout + done.stderr
        except subprocess.TimeoutExpired:
            return 124, "does not end"

    def plant(self, fault):
        path, number, before, after = fault
        file = self.folder / path
        lines = file.read_text().splitlines(keepends=True)
        assert lines[number - 1].startswith(before), fault
        lines[number - 1] = lines[number - 1].replace(before, after, 1)
        text = file.read_text()
        file.write_text("".join(lines))
        return file, text


def suites_for(path, everything):
    """Returns what to run, the suites most likely to fail first: (what, build, target, command)."""
    module = path.split("/")[0]
    order = {"kernels": ["kernels", "core", "nn"], "core": ["core", "nn", "kernels", "parallel"],
             "parallel": ["parallel"], "data": ["data", "nn"]}[module]
    some = "" if everything else " -R '(sse|avx2|avx512|generic|devices[238])$'"
    plain = [(name, "release", f"braid_tests_{name}",
              f"run_ctest release --stop-on-failure -L '^{name}$'{some}")
             for name in order]
    every = "" if everything else " -E '(reverse|random|random2)$'"
    emulated = [("simt " + name, "simt", f"braid_tests_{name}",
                 f"run_ctest simt --stop-on-failure -L '^{name}$' -L '^simt$'{every}")
                for name in (["cuda_kernels", "cuda", "core"] if module == "kernels"
                             else ["nccl", "schedules", "parallel"] if module == "parallel"
                             else ["cuda", "core"] if module == "core" else [])]
    if path.startswith("kernels/cpu"):
        return plain
    return emulated if path.startswith("kernels/cuda") else plain + emulated


def configure(tree, everything):
    for build in ("release", "simt"):
        turn = os.environ.get("BRAID_CHECK_TURN", "1")
        options = f"-DBRAID_SIMT_SEED={turn}" if build == "simt" else "-DBRAID_BUILD_DOCS=OFF"
        status, text = tree.run(f"configure {build} -DBRAID_BUILD_TESTS=ON {options}")
        if status:
            sys.exit(text)


def seen_by(tree, fault, everything):
    """Returns the suite that fails with the fault, None, or "" if it does not compile."""
    file, text = tree.plant(fault)
    try:
        for name, build, target, command in suites_for(fault[0], everything):
            status, output = tree.run(f"build {build} {target}")
            if status:
                return "" if "error" in output else f"{name}: does not build"
            status, output = tree.run(command, BRAID_TEST_SEEDS="3", BRAID_TEST_TIMEOUT="300")
            if status:
                failed = re.findall(r"(?:\d+ - (\S+) \((?:Failed|Timeout|SEGFAULT|Subprocess|SIG)|"
                                    r"\*\*\*(?:Failed|Timeout|Exception)[^\n]*)", output)
                # The last test named before the first failure. A test that only warns is named as
                # well.
                before = output.split("FAILED:")[0]
                test = [*re.finditer(r"\n([^\n]+)\n-{20,}\n[^\n]*\.(?:cpp|cu)", before)][-1:]
                return f"{name}: {' '.join(f for f in failed if f) or 'fails'}" + \
                    (f": {test[0].group(1).strip()}" if test else "")
        return None
    finally:
        file.write_text(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    only = {int(i) for i in options.only.split(",") if i}
    tree = None if options.list else Tree()
    if tree:
        configure(tree, options.all)
    missed = tried = 0
    for index, queue in draw(options.seed, options.count):
        if only and index not in only:
            queue.pop()
            continue
        while True:
            fault = queue.pop()
            where = f"{index}: {fault[0]}:{fault[1]}: `{fault[2].strip()}` → `{fault[3].strip()}`"
            if options.list:
                print(where)
                break
            start = time.time()
            seen = seen_by(tree, fault, options.all)
            if seen == "":  # it does not compile: try the next one
                print(f"{where}: does not compile, another is drawn", flush=True)
                continue
            print(f"{where}: {seen or 'NOT SEEN'} ({time.time() - start:.0f} s)", flush=True)
            missed += seen is None
            tried += 1
            break
    if tree:
        print(f"SHOWS: {tried - missed} of {tried} faults seen")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
