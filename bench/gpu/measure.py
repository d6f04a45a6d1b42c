"""Interleaved timing in ABBA order, the lines of the table, and the JSON file."""

import datetime
import json
import math
import os
import statistics


def geomean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


def during(enter, leave, function):
    """Returns the function with enter() before and leave() after each call."""

    def run(*arguments):
        enter()
        try:
            return function(*arguments)
        finally:
            leave()

    return run


def within(context, function):
    """Returns the function, each call inside of a new context()."""

    def run(*arguments):
        with context():
            return function(*arguments)

    return run


class During:
    """Work of the library whose runs are between enter() and leave()."""

    def __init__(self, enter, leave, work):
        self.events = during(enter, leave, work.events)
        self.wall = during(enter, leave, work.wall)
        self.result = during(enter, leave, work.result)


class Series:
    """The times of one contender: one for each turn, two turns in each round."""

    def __init__(self):
        self.us = []

    def time(self):
        return statistics.median(self.us)

    def noise(self):
        """Returns the relative difference between the two turns of a round, as the median."""
        turns = zip(self.us[::2], self.us[1::2])
        return statistics.median([max(a, b) / min(a, b) - 1 for a, b in turns])


class Clock:
    """Decides how long to measure. A dry run does everything once."""

    def __init__(self, dry):
        self.dry = dry
        self.rounds, self.samples, self.sample_us = (1, 1, 0) if dry else (5, 6, 3000)
        self.most = 2000

    def plan(self, timer):
        """Returns the number of runs for a sample of sufficient length, and of samples in a turn:
        fewer if one run is longer than that. Also warms up."""
        timer(1)
        if self.dry:
            return 1, 1
        us = max(timer(3), 0.05)
        count = max(1, min(self.most, round(self.sample_us / us)))
        return count, max(1, min(self.samples, round(self.samples * self.sample_us / us)))

    def interleave(self, timers):
        """Returns name → Series. Every round runs all timers forwards, then backwards, so that a
        drift of the machine affects all equally. A turn is the median of several samples."""
        plans = {name: self.plan(timer) for name, timer in timers.items()}
        series = {name: Series() for name in timers}
        for _ in range(self.rounds):
            for name in [*timers, *reversed(timers)]:
                count, samples = plans[name]
                us = statistics.median(timers[name](count) for _ in range(samples))
                series[name].us.append(max(1e-4, us))
        return series


class Table:
    """Prints one line for each row: PASS, FAIL or SKIP(reason), name, figures and bar. In a dry
    run it prints DRY and no figures."""

    def __init__(self, dry, card):
        self.dry, self.card, self.rows, self.failed = dry, card, [], False
        self.group = ""

    def line(self, verdict, name, text, bar=None, **data):
        if self.dry and verdict in ("PASS", "FAIL", "INFO") and "error" not in data:
            verdict, text = "DRY", ""  # figures of emulated devices are meaningless
        self.failed = self.failed or verdict == "FAIL"
        bar_text = f"  (bar {bar})" if bar is not None else ""
        print(f"{verdict}  {name}  {text}".rstrip() + bar_text, flush=True)
        row = {"group": self.group, "name": name, "verdict": verdict, "text": text, "bar": bar}
        self.rows.append({**row, **data})

    def skip(self, name, reason, bar=None, text=""):
        self.line(f"SKIP({reason})", name, text, bar)

    def error(self, name, error):
        text = f"{type(error).__name__}: {error}"
        self.line("FAIL", name, text.splitlines()[0][:300], error=True)

    def check(self, name, error, most, least=0):
        """Returns whether the result is correct. A wrong result is not timed. A contender whose
        error is below `least` did not round its operands to TF32; nor does PyTorch on the CPU, so
        a dry run has only the upper limit."""
        if self.dry and (not isinstance(error, float) or error < least):
            return True
        if least <= error <= most:
            return True
        wanted = f"at least {least:.3g}" if error < least else f"at most {most:.3g}"
        self.line("FAIL", name, f"wrong result: error {error:.3g}, expected {wanted}", error=True)
        return False

    def figure(self, name, text, **data):
        """Prints a ceiling or another figure without a bar."""
        self.line("INFO", name, text, **data)

    def times(self, name, series, note=""):
        """Prints the time of each contender, without a bar, and the note."""
        times = {n: s.time() for n, s in series.items()}
        text = ", ".join(f"{n} {us:.2f} us" for n, us in times.items())
        self.figure(name, text + note, times=times)

    def at_least(self, name, value, bar, text, **data):
        self.line("PASS" if value >= bar else "FAIL", name, text, f">= {bar}", value=value, **data)

    def at_most(self, name, value, bar, text, **data):
        self.line("PASS" if value <= bar else "FAIL", name, text, f"<= {bar}", value=value, **data)

    def ratio(self, name, series, ours, peers, bar=None, missing=None, note=""):
        """Compares r = t_peer / t_ours of the fastest peer with the bar, if there is one, and names
        that peer if there are several. Its noise is the larger noise of the two."""
        mine = series[ours]
        times = {n: {"us": s.time(), "noise": s.noise()} for n, s in series.items()}
        there = [p for p in peers if p in series]
        shown = ", ".join(f"{n} {s.time():.2f} us" for n, s in series.items())
        bar_text = None if bar is None else f">= {bar}"
        if not there:
            verdict = f"SKIP({missing})"
            return self.line(verdict, name, f"{shown}{note}", bar_text, times=times)
        best = min(there, key=lambda p: series[p].time())
        r, noise = series[best].time() / mine.time(), max(mine.noise(), series[best].noise())
        near = bar is not None and abs(r - bar) <= 2 * noise * bar
        tie = abs(r - 1) <= 2 * noise  # neither is faster
        marks = f"{' NEAR' if near else ''}{' within noise' if tie else ''}"
        beside = f" of {best}" if len(there) > 1 else ""
        text = f"r {r:.3f} +-{noise:.3f}{beside}{marks}  {shown}{note}"
        data = {"value": r, "noise": noise, "within_noise": tie, "peer": best, "times": times}
        verdict = "INFO" if bar is None else "PASS" if r >= bar else "FAIL"
        self.line(verdict, name, text, bar_text, **data)
        return r

    def write(self, out, results):
        """Writes the rows. They replace the rows of the same groups in an existing table."""
        if self.dry:
            return []
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        groups = {row["group"] for row in self.rows}
        name = os.path.join(self.card["slug"], "table.json")
        rows = []
        old = os.path.join(results, name)
        if os.path.exists(old):
            with open(old, encoding="utf-8") as file:
                table = json.load(file)
            if table["machine"]["gpu"] == self.card["gpu"]:
                rows = [row for row in table["rows"] if row["group"] not in groups]
        rows += [{**row, "commit": self.card["commit"], "time": now} for row in self.rows]
        text = json.dumps({"machine": self.card, "rows": rows}, indent=1) + "\n"
        paths = [os.path.join(folder, name) for folder in (out, results)]
        for path in paths:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return paths
