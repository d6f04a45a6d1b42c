#!/usr/bin/env python3
"""Removes each of our barriers, fences and event waits in turn; the tests on the emulation must
detect every removal.

A site is a statement that begins a line: __syncthreads…, __syncwarp, __threadfence… or
cp_async_wait in kernels/cuda and bench/ladder, and in kernels/cuda/runtime, core and parallel a
wait of a stream or of the host for an event or a stream (not yet: `synchronize()`, and waits for
NCCL or for another process). The wait of a condition variable is no site: by the standard it may
end early, so the loop around it looks again, and without the wait it only spins. Some calls are not
removed but weakened:
cp_async_wait<N> waits for one copy less, store_release, load_acquire and inc_acq_rel become an
atomic store, a plain load and an atomic increment without an order, and __syncthreads_or its
argument. The changed file is compiled with the flags of the build folder and linked before the
library, so that the rest is not built again. A removal that no test can detect is listed in
simt_removals.txt with the reason. It is also a failure if a listed removal is detected, or if the
listed line no longer exists.

--only chooses by the path. A line of a header is in many kernels: --each tries the removal in one
object at a time, and it must be detected in each.

  simt_removals.py BUILD_FOLDER [--all] [--each] [--sample N] [--seed S] [--list] [--only REGEX]
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
BARRIER = re.compile(r"^\s*(__syncthreads\w*\(|__syncwarp\(|__threadfence\w*\(|"
                     r"(simt::)?cp_async_wait(<|_all\()).*;\s*(//.*)?$")
# calls with an order between threads, and what they are without it or with less of it
WEAKER = [
    (re.compile(r"simt::store_release\("), "atomicExch("),
    (re.compile(r"simt::load_acquire\("), "*("),
    (re.compile(r"simt::inc_acq_rel\("), "atomicInc("),
    (re.compile(r"__syncthreads_or\("), "("),
    (re.compile(r"cp_async_wait<([^<>]+)>"), r"cp_async_wait<(\1) + 1>"),
]
WAIT = re.compile(
    r"^(?!.*\breturn\b)\s*(.*\bcuda(StreamWaitEvent|EventSynchronize|StreamSynchronize)\("
    r"|(.*[.>])?(wait|precede)\((?!lock\))\*?\w+\)|.*[.>]wait_for\([^,]*\)"
    r"|.*[.>](await|settle_work|settle_or_lose)\([\w.()]*\)|settle_work\(\)).*;\s*(//.*)?$"
)
# `if (…)` and similar code before the statement on its line stays. If the result of a wait is used,
# it becomes false.
CALL = re.compile(r"^((?:if|for) \(.*\) )(?=(?:check|settle)\()")
RESULT = re.compile(r"^((?:const bool )?\w+ = )(?=.*settle_work\()")
# What counts as detected: the words of a finding, or a failed comparison. Any other way for a
# program to end is an error.
FINDING = re.compile(
    r"(race|uninitialised|deadlock|use before allocation|use after free|freed too early"
    r"|freed on stream|pinned memory|early read|divergent)[^\n]{0,80}",
    re.IGNORECASE,
)
LADDER = "bench/ladder/"
# The test programs for each folder. Each runs in these orders of (threads, streams), with the sums
# of tensor cores and the delays that the tests have in them, until one run fails.
ORDERS = [("forward", "fifo", "nearest", "0"), ("reverse", "reverse", "nearest", "0"),
          ("random:1", "random:1", "cut", "300"), ("random:2", "random:2", "cut", "300")]
# A quarter of the longest test program takes up to four minutes beside another one, and the whole
# of it four times that; without its wait it may never end. With too short a limit every removal
# would count as detected.
SECONDS = 480 if "BRAID_TEST_PART" in os.environ else 1800


def sites():
    found = []
    patterns = [("kernels/cuda", BARRIER), (LADDER, BARRIER)]
    patterns += [(folder, WAIT) for folder in ("kernels/cuda", "core", "parallel")]
    for folder, pattern in patterns:
        for path in sorted((ROOT / folder).rglob("*")):
            # a public header is in every object
            if path.suffix not in (".cu", ".cuh", ".cpp", ".hpp") or "include" in path.parts:
                continue
            lines = path.read_text().splitlines()
            for number in range(1, len(lines) + 1):
                line, _ = statement(lines, number)
                weak = pattern is BARRIER and any(call.search(line) for call, _ in WEAKER)
                if (weak or pattern.match(line)) and not line.lstrip().startswith("//"):
                    found.append((str(path.relative_to(ROOT)), number, line.strip()))
    return found


def statement(lines, number):
    """Returns the statement that begins at the line, joined if it is a call of the CUDA runtime
    over several lines, and the number of its last line."""
    text, last = lines[number - 1], number
    if "cuda" in text and text.endswith(","):
        while not text.endswith(";") and last < len(lines):
            text += " " + lines[last].strip()
            last += 1
    return text, last


def reasons(found):
    """Returns the reasons by site. Each line of the file names a site by its path and full text."""
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
        def ask(tool):
            command = ["ninja", "-C", self.folder, "-t", tool]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

        self.folder = folder.resolve()
        self.commands = ask("commands").splitlines()
        self.deps = ask("deps")
        self.work = self.folder / "removals"
        subprocess.run(["rm", "-rf", self.work], check=True)

    def at(self, number):
        """Returns the same build with a separate folder for changed files, because several removals
        run in parallel."""
        place = copy.copy(self)
        place.work = self.work / str(number)
        return place

    def objects_of(self, path):
        """Returns the library's objects that are compiled from the file, or that include it; of a
        kernel of bench/ladder, those of its tests."""
        other = r"(^|/)tests/|docs/|bench/"
        if path.startswith(LADDER):
            other = r"^(?!tests/ladder/)"
        found = []
        for block in self.deps.split("\n\n"):
            lines = block.splitlines()
            if not lines or re.search(other, lines[0]):
                continue
            if any(self.is_file(line.strip(), path) for line in lines[1:]):
                found.append(lines[0].split(":")[0])
        return found

    def is_file(self, name, path):
        return os.path.normpath(os.path.join(self.folder, name)) == str(ROOT / path)

    def run(self, command):
        return subprocess.run(command, shell=True, cwd=self.folder, capture_output=True, text=True)

    def compile(self, path, number, each=False):
        """Compiles the objects without the line, and returns {object of the build: changed one}.
        With each, only those whose code changes."""
        changed = self.changed_text(path, number)
        objects = self.objects_of(path)
        if not objects:
            raise RuntimeError(f"{path}: no object is made from it")
        made = self.compile_text(path, objects, changed, "changed")
        if each:
            same = self.compile_text(path, objects, (ROOT / path).read_text(), "same")
            made = {name: made[name] for name in objects
                    if made[name].read_bytes() != same[name].read_bytes()}
        return made

    def changed_text(self, path, number):
        lines = (ROOT / path).read_text().splitlines(keepends=True)
        # An empty statement stays, with the start of the statement whose body the call was.
        line, last = statement([each.rstrip("\n") for each in lines], number)
        lines[number:last] = ["\n"] * (last - number)
        call, result = CALL.match(line.strip()), RESULT.match(line.strip())
        kept = call.group(1) if call else result.group(1) + "false" if result else ""
        lines[number - 1] = kept + ";\n"
        for call, weak in WEAKER:
            if call.search(line):
                lines[number - 1] = call.sub(weak, line) + "\n"
        return "".join(lines)

    def compile_text(self, path, objects, text, folder):
        """Compiles the objects with this text of the file."""
        overlay = self.work / folder
        changed = overlay / path
        changed.parent.mkdir(parents=True)
        changed.write_text(text)
        results = {}
        for index, name in enumerate(objects):
            command = next(c for c in self.commands if f" -o {name} " in c)
            source = shlex.split(command)[-1]
            output = overlay / f"{index}.o"
            command = command.replace(f" -o {name} ", f" -o {output} ")
            command = command.replace(f"{name}.d", f"{output}.d")
            # The overlay precedes the folder that it replaces, for both kinds of include.
            folders = ("bench", "kernels", "core", "core/include", "parallel", "parallel/include")
            roots = [f"-iquote {overlay / r} -I{overlay / r}" for r in folders]
            # A changed header makes up to twenty objects compile again. Less optimisation takes a
            # third of the time and gives the same findings.
            command = command.replace(" -c ", f" {' '.join(roots)} -O1 -w -c ")
            if self.is_file(source, path):
                beside = f"-iquote {(ROOT / path).parent} "  # headers of the file's own folder
                command = command[: command.rindex(source)] + beside + str(changed)
            command = command.replace("c++ ", f"c++ {roots[0]} ", 1)
            done = self.run(command)
            if done.returncode:
                raise RuntimeError(f"{path}: does not compile:\n{done.stderr[-2000:]}")
            results[name] = output
        return results

    def test(self, program, cases, order):
        names = [f"BRAID_SIMT_{name}" for name in ("ORDER", "STREAM_ORDER", "MMA", "DELAY")]
        environment = dict(os.environ, **dict(zip(names, order)), BRAID_SIMT_DEVICES="3")
        if pathlib.Path(program).name == "braid_tests_simt_engine":
            # it fails one call after another: a wait after a failed call needs the right one
            environment.pop("BRAID_TEST_PART", None)
        if pathlib.Path(program).name == "braid_tests_core":
            environment["BRAID_DEVICE"] = "cuda:0"  # its cases run on any device
        done = subprocess.run([program, *cases, "--abort"], env=environment, capture_output=True,
                              text=True, timeout=SECONDS, errors="replace")
        if re.search(r"No test(s ran| cases matched)", done.stdout):
            raise RuntimeError(f"{program}: no case for {cases}:\n{done.stdout[-2000:]}")
        return done

    def control(self, program):
        """Checks that every program passes in the first order with nothing removed. The tests
        themselves run in all orders."""
        name, *cases = program
        done = self.test(next(self.folder.glob(f"tests/**/{name}")), cases, ORDERS[0])
        if done.returncode:
            raise RuntimeError(f"{name} fails with nothing removed:\n{done.stdout[-2000:]}")

    def link(self, path, program, objects):
        """Links the program with the changed objects in the place of its own, or before the
        library."""
        written = rf" -o \S*/{program} "
        link = next(c for c in self.commands if re.search(written, c) and " -c " not in c)
        link = re.sub(written, f" -o {self.work / program} ", link)
        for name, changed in objects.items():
            if f" {name} " in link:
                link = link.replace(f" {name} ", f" {changed} ")
            else:
                link = re.sub(r"\S*libbraid\.a", rf"{changed} \g<0>", link, count=1)
        done = self.run(link)
        if done.returncode:
            raise RuntimeError(f"{path}: does not link:\n{done.stderr[-2000:]}")

    def noticed(self, path, objects, programs, orders):
        for order in orders:  # every program in the first order, before the others
            for program, *cases in programs:
                changed = self.work / program
                if not changed.exists():
                    self.link(path, program, objects)
                try:
                    done = self.test(changed, cases, order)
                except subprocess.TimeoutExpired:
                    return f"{program} {order[0]}: does not end"
                if done.returncode == 0:
                    continue
                text = done.stdout + done.stderr
                if finding := FINDING.search(text):
                    return f"{program} {order[0]}: {finding.group(0)}"
                if "FAILED:" in text:
                    return f"{program} {order[0]}: a comparison fails"
                raise RuntimeError(
                    f"{path}: {program} ends with {done.returncode} and says neither what was "
                    f"found nor what differs:\n{text[-2000:]}"
                )
        return None


def programs_for(path):
    """Returns the programs with their filters; without one, all cases but the hidden ones run."""
    if path.startswith(LADDER):
        return [("braid_tests_ladder",)]
    if path.startswith("parallel/"):
        return [("braid_tests_schedules",), ("braid_tests_nccl", "[nccl]"),
                ("braid_tests_parallel", "~[communicator]~[shards]~[faults]~[.]")]
    if path.startswith("kernels/cuda/runtime") or not path.startswith("kernels/"):
        return [("braid_tests_cuda",), ("braid_tests_simt_engine",), ("braid_tests_parallel",)]
    if path.startswith("kernels/cuda/attention_starts"):  # no table of calls has sequences
        return [("braid_tests_core", "[varlen]")]
    # the first detects most
    return [("braid_tests_cuda_kernels", "[every]"), ("braid_tests_cuda_kernels",),
            ("braid_tests_cuda",)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--sample", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    found = sites()
    known = reasons(found)
    failures = []
    if options.list:
        for site in found:
            reason = f"   [{known[site]}]" if site in known else ""
            print("{}:{}: {}".format(*site) + reason)
        return
    chosen = [s for s in found if re.search(options.only, s[0])]
    if not options.all:
        chosen = [s for s in chosen if s not in known]
        count = min(options.sample, len(chosen))
        chosen = random.Random(options.seed).sample(chosen, count)
    build = Build(options.build)

    def remove(index):
        path, number, _ = chosen[index]
        place = build.at(index)
        # removals that are listed as undetected are not tried in the random orders
        orders = ORDERS[:2] if chosen[index] in known else ORDERS
        objects = place.compile(path, number, options.each)
        if not options.each:
            how = place.noticed(path, objects, programs_for(path), orders)
            return bool(how), how or "NOT noticed"
        ways, all_noticed = [], bool(objects)
        for each, (name, changed) in enumerate(objects.items()):
            alone = place.at(each)
            alone.work.mkdir()
            way = alone.noticed(path, {name: changed}, programs_for(path), orders)
            ways.append(f"\n  {name.split('/')[-1]}: {way or 'NOT noticed'}")
            all_noticed = all_noticed and bool(way)
        return all_noticed, "".join(ways) or "changes no object"

    workers = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
    programs = sorted({program for path, _, _ in chosen for program in programs_for(path)})
    if options.all:  # a sample runs right after the tests, which have passed
        list(workers.map(build.control, programs))
    for site, (noticed, how) in zip(chosen, workers.map(remove, range(len(chosen)))):
        reason, name = known.get(site), "{}:{}: {}".format(*site)
        listed = f" (listed: {reason})" if reason else ""
        print(f"{name}: {how}{listed}", flush=True)
        if not noticed and not reason:
            failures.append(f"{name}: its removal is not noticed")
        if noticed and reason:
            failures.append(f"{name}: its removal is noticed, so it needs no reason")
    print(f"SHOWS: {len(chosen)} of {len(found)} barriers, fences and waits removed, "
          f"{len(known)} listed with a reason")
    for failure in failures:
        print("FAIL:", failure)
    sys.exit(bool(failures))


main()
