"""PyTorch (Python) as a peer: a server on stdin and stdout, with one JSON line per command.
README.md describes the protocol."""

import json
import math
import sys

from cores import pin, pinned_cores


def check(first, last):
    """Raises RuntimeError unless the loss is finite and has fallen."""
    if not math.isfinite(last):
        raise RuntimeError(f"the loss is {last}")
    if not last < first:
        raise RuntimeError(f"the loss did not fall: {first} at the first step, {last} at the last")


class Server:
    def __init__(self):
        self.rows = {}
        self.group = None

    def row(self, name):
        import rows

        if name not in self.rows:
            self.rows = {name: rows.make_row(name)}  # one at a time: the large nets are tens of MB
        return self.rows[name]

    def distributed(self):
        import ddp

        if self.group is None:
            self.group = ddp.Group(pinned_cores())
        return self.group

    def run(self, name, threads, iterations):
        import rows
        import torch

        if name.startswith(("loader_", "clone_", "copy_")) or name in rows.OPS:
            torch.set_num_threads(threads)
            us = rows.measure_calls(self.row(name), iterations)
            return {"row": name, "threads": threads, "us": us, "loss": 0.0}
        if "_ddp" in name:
            us, first, last = self.distributed().run(name, threads, iterations)
        else:
            torch.set_num_threads(threads)
            us, first, last = rows.measure(self.row(name), iterations)
        check(first, last)
        return {"row": name, "threads": threads, "us": us, "loss": last}

    def losses(self, name, threads, count):
        import rows
        import torch

        if "_ddp" in name:
            values = self.distributed().losses(name, threads, count)
        else:
            torch.set_num_threads(threads)
            row = self.row(name)
            values = row.sample(count) if hasattr(row, "sample") else rows.losses(row, count)
        return {"row": name, "threads": threads, "losses": values}

    def close(self):
        if self.group is not None:
            self.group.close()
            self.group = None


def answer(server, words):
    import torch

    if words[0] == "hello":
        capability = torch.backends.cpu.get_cpu_capability()
        return {"peer": "torch-python", "version": torch.__version__, "capability": capability}
    if words[0] in ("run", "losses") and len(words) == 4:
        return getattr(server, words[0])(words[1], int(words[2]), int(words[3]))
    raise ValueError(
        "expected: hello | run ROW THREADS ITERATIONS | losses ROW THREADS COUNT | quit"
    )


def main():
    cores = pinned_cores()
    # pins this thread; OpenMP places its threads by GOMP_CPU_AFFINITY, which the launcher sets
    pin(cores[:1])
    server = Server()
    for line in sys.stdin:
        words = line.split()
        if not words:
            continue
        if words[0] == "quit":
            break
        try:
            reply = answer(server, words)
        except Exception as error:  # the benchmark must get a line whatever happens
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)
    server.close()


if __name__ == "__main__":
    main()
