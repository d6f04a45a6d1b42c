"""Prints the last lines of ./dev test ops: sums the figures of the runs of the table of ops on all
devices, and fails if a cell was left out."""

import pathlib
import re
import sys

CELLS = re.compile(r"SHOWS: ops on ([\w:, ]+): (\d+) of (\d+) cells .*, (\d+) cases of (\d+) ops")
PYTORCH = re.compile(
    r"SHOWS: ops on ([\w:, ]+) against PyTorch's float64: (\d+) comparisons, largest error (\S+) "
    r"of the bound \((.*)\); (\d+) gradients, largest error (\S+) of the bound \((.*)\); "
    r"(\d+) differences on purpose, (\d+) cases without a like"
)
CHECKS = re.compile(
    r"SHOWS: gradients on (\S+) \(\d+ of \d+\): (\d+) cases, (\d+) gradchecks, "
    r"(\d+) gradgradchecks"
)
REFUSED = re.compile(r"SHOWS: bad inputs on (\S+): (\d+) calls")
LEAST = re.compile(r"SHOWS: bad inputs: (.*)")


def main():
    runs = [file.read_text() for file in sorted(pathlib.Path(sys.argv[1]).glob("*.txt"))]
    devices, ran, defined, compared, checked = [], 0, 0, 0, 0
    values, gradients, counts, refused = (0.0, ""), (0.0, ""), {}, {}
    for text in runs:
        cells, pytorch = CELLS.search(text), PYTORCH.search(text)
        if not cells or not pytorch:
            raise SystemExit("./dev test ops: a run says nothing of its cells")
        devices.append(cells[1])
        ran, defined = ran + int(cells[2]), defined + int(cells[3])
        cases, ops = cells[4], cells[5]
        compared, checked = compared + int(pytorch[2]), checked + int(pytorch[5])
        values = max(values, (float(pytorch[3]), pytorch[4]))
        gradients = max(gradients, (float(pytorch[6]), pytorch[7]))
        differences, without = pytorch[8], pytorch[9]
        for device, _, first, second in CHECKS.findall(text):
            a, b = counts.get(device, (0, 0))
            counts[device] = (a + int(first), b + int(second))
        for device, calls in REFUSED.findall(text):
            refused[device] = int(calls)
        least = LEAST.search(text)[1]
    print(f"cells run / cells defined (op x dtype x layout x device): {ran} / {defined} = "
          f"{100 * ran / defined:.4g} % ({cases} cases of {ops} ops; {', '.join(devices)})")
    print(f"against PyTorch's float64: {compared} comparisons, "
          f"largest error {values[0]:.3f} of R3's bound ({values[1]})")
    print(f"  gradients: {checked}, largest error {gradients[0]:.3f} of the bound "
          f"({gradients[1]}); {differences} differences on purpose, {without} cases without a like")
    checks = [f"{a} gradchecks and {b} gradgradchecks on {d}" for d, (a, b) in counts.items()]
    print("gradients: " + ", ".join(checks))
    print("bad inputs: " + ", ".join(f"{n} on {d}" for d, n in refused.items()) + "; " + least)
    if ran != defined:
        raise SystemExit("./dev test ops: cells were left out")


if __name__ == "__main__":
    main()
