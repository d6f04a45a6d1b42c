#!/usr/bin/env python3
"""Removes each barrier and event wait of ours in turn; the tests on the emulation must notice every removal.

A site is a statement that begins a line: __syncthreads…, __syncwarp, cp_async_wait in kernels/cuda, and a wait for an event or a
stream, of a stream or of the host, in kernels/cuda/runtime, core and parallel. The changed file is compiled with the flags of the
build folder and linked before the library, so that the rest is not built again. A removal that no test can notice stands in simt_removals.txt with the reason; a reason for a removal that is
noticed, or for a line that is gone, is a failure too.

  simt_removals.py BUILD_FOLDER [--all] [--sample N] [--seed S] [--list] [--only TEXT]
"""
import argparse
import concurrent.futures
import copy
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BARRIER = re.compile(r"^\s*(__syncthreads\w*\(|__syncwarp\(|(simt::)?cp_async_wait<).*;\s*(//.*)?$")
WAIT = re.compile(r"^(?!.*\breturn\b)\s*(.*\bcuda(StreamWaitEvent|EventSynchronize|StreamSynchronize)\(|(.*[.>])?(wait|precede)\(\*?\w+\)|.*[.>]wait_for\([^,]*\)|.*[.>](await|settle_work|settle_or_lose)\([\w.()]*\)|settle_work\(\)).*;\s*(//.*)?$")
# `if (…)` and the like before the statement on its line: they stay. A wait that says whether it was
# one says that it was not.
CALL = re.compile(r"^((?:if|for) \(.*\) )(?=(?:check|settle)\()")
RESULT = re.compile(r"^((?:const bool )?\w+ = )(?=.*settle_work\()")
# What counts as noticed: words of a finding, or a comparison that fails. A program that ends in
# another way is a fault of its own.
FINDING = re.compile(r"(race|uninitialised|deadlock|use before allocation|use after free|freed too early|freed on stream|pinned memory|early read|divergent)[^\n]{0,80}", re.IGNORECASE)
# Which test programs see which folder, and the environments that each is run in until one fails.
ORDERS = [("forward", "fifo"), ("reverse", "reverse"), ("random:1", "random:1"), ("random:2", "random:2")]
# a test program takes some 40, beside other work twice that; without its wait one may not end
SECONDS = 240


def sites():
    found = []
    for folder, pattern in (("kernels/cuda", BARRIER), ("kernels/cuda", WAIT), ("core", WAIT), ("parallel", WAIT)):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".cu", ".cuh", ".cpp", ".hpp"):
                continue
            lines = path.read_text().splitlines()
            for number in range(1, len(lines) + 1):
                line, _ = statement(lines, number)
                if pattern.match(line) and not line.lstrip().startswith("//"):
                    found.append((str(path.relative_to(ROOT)), number, line.strip()))
    return found


def statement(lines, number):
    """The line of that number with those that a call of the CUDA runtime goes on in, and the last."""
    text, last = lines[number - 1], number
    if "cuda" in text and text.endswith(","):
        while not text.endswith(";") and last < len(lines):
            text += " " + lines[last].strip()
            last += 1
    return text, last


def reasons(found):
    """Of the sites: each line of the file names one by its path and its whole text."""
    known = {}
    for line in (ROOT / "tests/check/simt_removals.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        path, text, reason = (part.strip() for part in line.split(" | "))
        named = [site for site in found if site[0] == path and site[2] == text]
        if len(named) != 1:
            sys.exit(f"simt_removals.txt: expected one site `{text}` in {path}, got {len(named)}")
        known[named[0]] = reason
    return known


class Build:
    def __init__(self, folder):
        self.folder = folder.resolve()
        self.commands = subprocess.run(["ninja", "-C", self.folder, "-t", "commands"], capture_output=True, text=True, check=True).stdout.splitlines()
        self.deps = subprocess.run(["ninja", "-C", self.folder, "-t", "deps"], capture_output=True, text=True, check=True).stdout
        self.work = self.folder / "removals"
        subprocess.run(["rm", "-rf", self.work], check=True)

    def at(self, number):
        """The same build with a folder of its own for what is changed: several removals are tried side by side."""
        place = copy.copy(self)
        place.work = self.work / str(number)
        return place

    def objects_of(self, path):
        """The library's objects that are compiled from the file, or from a source that includes it."""
        found = []
        for block in self.deps.split("\n\n"):
            lines = block.splitlines()
            if not lines or "/tests/" in lines[0] or lines[0].startswith("tests/") or "docs/" in lines[0] or "bench/" in lines[0]:
                continue
            if any(os.path.normpath(os.path.join(self.folder, line.strip())) == str(ROOT / path) for line in lines[1:]):
                found.append(lines[0].split(":")[0])
        return found

    def run(self, command):
        return subprocess.run(command, shell=True, cwd=self.folder, capture_output=True, text=True)

    def compile(self, path, number):
        overlay = self.work / "overlay"
        changed = overlay / path
        changed.parent.mkdir(parents=True)
        lines = (ROOT / path).read_text().splitlines(keepends=True)
        # An empty statement stays, and the head of the statement that the call was the body of.
        line, last = statement([each.rstrip("\n") for each in lines], number)
        lines[number:last] = ["\n"] * (last - number)
        call, result = CALL.match(line.strip()), RESULT.match(line.strip())
        lines[number - 1] = (call.group(1) if call else result.group(1) + "false" if result else "") + ";\n"
        changed.write_text("".join(lines))
        results = []
        for index, name in enumerate(self.objects_of(path)):
            command = next(c for c in self.commands if f" -o {name} " in c)
            source = shlex.split(command)[-1]
            output = self.work / f"changed{index}.o"
            is_source = os.path.normpath(os.path.join(self.folder, source)) == str(ROOT / path)
            command = command.replace(f" -o {name} ", f" -o {output} ").replace(f"{name}.d", f"{output}.d")
            # The overlay comes before the folder that it overlays, for both kinds of include.
            roots = " ".join(f"-iquote {overlay / r} -I{overlay / r}" for r in ("kernels", "core", "core/include", "parallel", "parallel/include"))
            command = command.replace(" -c ", f" {roots} -w -c ")
            if is_source:
                command = command[: command.rindex(source)] + str(changed)
            command = command.replace("c++ ", f"c++ -iquote {overlay / 'kernels'} -I{overlay / 'kernels'} ", 1)
            done = self.run(command)
            if done.returncode:
                raise RuntimeError(f"{path}:{number}: does not compile without the line:\n{done.stderr[-2000:]}")
            results.append(output)
        if not results:
            raise RuntimeError(f"{path}: no object of the library is made from it")
        return results

    def control(self, program):
        """With nothing removed every program passes in the first order; the tests themselves run in all of them."""
        name, *cases = program
        found = next(self.folder.glob(f"tests/**/{name}"))
        environment = dict(os.environ, BRAID_SIMT_ORDER=ORDERS[0][0], BRAID_SIMT_STREAM_ORDER=ORDERS[0][1], BRAID_SIMT_DEVICES="3")
        done = subprocess.run([found, *cases, "--abort"], env=environment, capture_output=True, text=True, timeout=SECONDS, errors="replace")
        if done.returncode:
            raise RuntimeError(f"{name} fails with nothing removed:\n{done.stdout[-2000:]}")

    def noticed(self, path, objects, programs):
        for program, *cases in programs:
            link = next(c for c in self.commands if re.search(rf" -o \S*/{program} ", c) and " -c " not in c)
            changed = self.work / program
            link = re.sub(rf" -o \S*/{program} ", f" -o {changed} ", link)
            link = link.replace("libbraid.a", " ".join(map(str, objects)) + " libbraid.a", 1) if " libbraid.a" in link else re.sub(r"(\S*libbraid\.a)", " ".join(map(str, objects)) + r" \1", link, count=1)
            done = self.run(link)
            if done.returncode:
                raise RuntimeError(f"{path}: does not link:\n{done.stderr[-2000:]}")
            for threads, streams in ORDERS:
                environment = dict(os.environ, BRAID_SIMT_ORDER=threads, BRAID_SIMT_STREAM_ORDER=streams, BRAID_SIMT_DEVICES="3")
                try:
                    done = subprocess.run([changed, *cases, "--abort"], env=environment, capture_output=True, text=True, timeout=SECONDS, errors="replace")
                except subprocess.TimeoutExpired:
                    return f"{program} {threads}: does not end"
                if done.returncode == 0:
                    continue
                text = done.stdout + done.stderr
                if finding := FINDING.search(text):
                    return f"{program} {threads}: {finding.group(0)}"
                if "FAILED:" in text:
                    return f"{program} {threads}: a comparison fails"
                raise RuntimeError(f"{path}: {program} ends with {done.returncode} and says neither what was found nor what differs:\n{text[-2000:]}")
        return None


def programs_for(path):
    """Each with the cases that are asked for, all but the hidden ones without."""
    if path.startswith("parallel/"):
        return [("braid_tests_schedules",), ("braid_tests_nccl", "nccl: the communicator's own waits*,nccl: DataParallel on*"), ("braid_tests_parallel", "~[communicator]~[shards]~[faults]~[.]")]
    if path.startswith("kernels/cuda/runtime") or not path.startswith("kernels/"):
        return [("braid_tests_cuda",), ("braid_tests_simt_engine",), ("braid_tests_parallel",)]
    # the first notices most
    return [("braid_tests_cuda_kernels", "[every]"), ("braid_tests_cuda_kernels",), ("braid_tests_cuda",)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--sample", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    found = sites()
    known = reasons(found)
    failures = []
    if options.list:
        print("\n".join(f"{path}:{number}: {text}" + (f"   [{known[(path, number, text)]}]" if (path, number, text) in known else "") for path, number, text in found))
        return
    chosen = [s for s in found if options.only in s[0]]
    if not options.all:
        chosen = random.Random(options.seed).sample([s for s in chosen if s not in known], min(options.sample, sum(s not in known for s in chosen)))
    build = Build(options.build)

    def remove(index):
        path, number, _ = chosen[index]
        place = build.at(index)
        return place.noticed(path, place.compile(path, number), programs_for(path))

    workers = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
    list(workers.map(build.control, sorted({program for path, _, _ in chosen for program in programs_for(path)})))
    for (path, number, text), how in zip(chosen, workers.map(remove, range(len(chosen)))):
        reason = known.get((path, number, text))
        print(f"{path}:{number}: {text}: {how or 'NOT noticed'}" + (f" (listed: {reason})" if reason else ""), flush=True)
        if not how and not reason:
            failures.append(f"{path}:{number}: {text}: its removal is not noticed")
        if how and reason:
            failures.append(f"{path}:{number}: {text}: its removal is noticed, so it needs no reason")
    print(f"SHOWS: {len(chosen)} of {len(found)} barriers and waits removed, {len(known)} listed with a reason")
    for failure in failures:
        print("FAIL:", failure)
    sys.exit(bool(failures))


main()
