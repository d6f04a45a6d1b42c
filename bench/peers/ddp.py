"""DistributedDataParallel over gloo: two processes with one core and one thread each, controlled
through pipes.

Row names are mlp<hidden>, cnn, lstm_lm or block, followed by _b<rows>_ddp. Every process has
<rows> rows; the rows of rank r follow those of rank r-1."""

import json
import os
import subprocess
import sys
import tempfile

from cores import pin, pinned_cores

WORLD = 2


class Group:
    """The group of processes; they run until close()."""

    def __init__(self, cores):
        self.folder = tempfile.TemporaryDirectory(prefix="braid-ddp-")
        self.ranks = []
        for rank in range(WORLD):
            env = dict(os.environ, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
            env.pop("GOMP_CPU_AFFINITY", None)
            if cores:
                env["BRAID_PIN_CORES"] = str(cores[rank % len(cores)])
            store = os.path.join(self.folder.name, "store")
            command = [sys.executable, os.path.abspath(__file__), str(rank), store]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self.ranks.append(subprocess.Popen(command, text=True, env=env, **pipes))

    def _ask(self, line):
        for process in self.ranks:
            process.stdin.write(line + "\n")
            process.stdin.flush()
        replies = []
        for rank, process in enumerate(self.ranks):
            text = process.stdout.readline()
            if not text:
                raise RuntimeError(f"rank {rank} of DDP ended with code {process.wait()}")
            replies.append(json.loads(text))
        for reply in replies:
            if "error" in reply:
                raise RuntimeError(f"DDP: {reply['error']}")
        return replies

    def run(self, name, threads, iterations):
        replies = self._ask(f"run {name} {threads} {iterations}")
        # all chunks are equally large, so the mean of the means is the mean
        mean = lambda key: sum(r[key] for r in replies) / len(replies)
        return max(r["us"] for r in replies), mean("first"), mean("loss")

    def losses(self, name, threads, count):
        replies = self._ask(f"losses {name} {threads} {count}")
        return [sum(step) / len(step) for step in zip(*(r["losses"] for r in replies))]

    def close(self):
        for process in self.ranks:
            try:
                process.stdin.write("quit\n")
                process.stdin.close()
            except OSError:
                pass  # the process has ended already
        for process in self.ranks:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.folder.cleanup()


def work(rank, store):
    # before torch starts threads, so that gloo's threads stay on the same core
    pin(pinned_cores())
    import rows
    import torch
    import torch.distributed as dist
    from datetime import timedelta
    from torch.nn.parallel import DistributedDataParallel

    options = {"rank": rank, "world_size": WORLD, "timeout": timedelta(seconds=120)}
    dist.init_process_group("gloo", init_method=f"file://{store}", **options)
    made = {}

    def row(name):
        if name not in made:
            made.clear()
            first = lambda size: rank * size
            made[name] = rows.sized_row(name, "ddp", first, DistributedDataParallel, WORLD)
        if made[name] is None:
            raise ValueError(f"unknown row {name}")
        return made[name]

    for line in sys.stdin:
        words = line.split()
        if words[0] == "quit":
            break
        try:
            command, name, threads, count = words[0], words[1], int(words[2]), int(words[3])
            torch.set_num_threads(threads)
            if command == "run":
                us, first, last = rows.measure(row(name), count, before=dist.barrier)
                reply = {"us": us, "first": first, "loss": last}
            else:
                reply = {"losses": rows.losses(row(name), count)}
        except Exception as error:  # the other side waits for a line
            reply = {"error": f"rank {rank}: {type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    work(int(sys.argv[1]), sys.argv[2])
