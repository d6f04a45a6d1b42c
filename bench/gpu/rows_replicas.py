"""Rows of the layer for several devices, on one GPU: G15 and G16. Their bars are the column "must"
of the table of goals."""

import json
import os
import subprocess
import sys

DEVICES = 4
HERE = os.path.dirname(os.path.abspath(__file__))


def g15(t):
    """The overhead of the layers for several devices where there is one, beside the same step
    without them. Neither copies a gradient then or calls NCCL."""
    rows, width = (6, 5) if t.dry else (4096, 1024)
    operands = [t.library.normal(rows, width), t.library.labels(rows, 10)]
    plain = t.library.work("plain_step", operands)
    losses = [plain.result().item() for _ in range(3)]
    for kind in ("data_parallel", "distributed"):
        name, work = f"G15.{kind}", t.library.work(kind + "_step", operands)
        apart = max(abs(work.result().item() - want) / abs(want) for want in losses)
        if t.table.check(name, apart, 1e-5):
            overhead(t, name, t.clock.interleave({"plain": plain.wall, "layer": work.wall}))


def overhead(t, name, series):
    """Compares the part by which the layer makes a step longer with the bar."""
    plain, layer = (series[n].time() for n in ("plain", "layer"))
    noise = max(s.noise() for s in series.values())
    more = layer / plain - 1
    text = f"{100 * more:+.1f} % +-{100 * noise:.1f}: {layer:.2f} us, {plain:.2f} us without it"
    t.table.at_most(name, more, 0.05, text, noise=noise)


def g16(t):
    """The time of a step that DataParallel splits over 2 to 4 logical devices of this GPU, beside
    what the cost model of the other steps predicts. Logical devices have to exist before the
    library is loaded, so this is another process."""
    name = "BRAID_SIMT_DEVICES" if t.dry else "BRAID_CUDA_DEVICES_PER_GPU"
    # devices, width, rows, rounds, steps in a turn
    sizes = (DEVICES, 8, 16, 1, 1) if t.dry else (DEVICES, 1024, 8192, 5, 20)
    command = [sys.executable, os.path.join(HERE, "rows_replicas.py"), t.library.path]
    done = subprocess.run([*command, *map(str, sizes)], env={**os.environ, name: str(DEVICES)},
                          capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
        raise RuntimeError(last[:200])
    predictions(t, json.loads(done.stdout.splitlines()[-1]))


def predictions(t, steps):
    """Prints a row for each step over several devices."""
    for step in steps:
        if step["devices"] == 1:
            continue
        name = f"G16.n{step['devices']}.{step['rows']}"
        if step["predicted_us"] <= 0:
            t.table.error(name, RuntimeError("the model predicts nothing"))
            continue
        wrong = step["predicted_us"] / step["us"] - 1
        text = (f"predicted {step['predicted_us']:.0f} us, {100 * wrong:+.0f} % of the measured "
                f"{step['us']:.0f} us +-{step['noise']:.3f}")
        t.table.at_most(name, abs(wrong), 0.35, text, noise=step["noise"])


if __name__ == "__main__":
    from library import Library

    print(json.dumps(Library(sys.argv[1]).predicted_steps(*map(int, sys.argv[2:]))))
