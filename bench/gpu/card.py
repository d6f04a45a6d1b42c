"""Describes the machine on which figures were measured. Reads nvidia-smi and changes nothing."""

import json
import os
import platform
import re
import subprocess

FIELDS = ("name", "driver_version", "compute_cap", "memory.total")
FIELDS += ("clocks.sm", "clocks.mem", "clocks.max.sm")
FIELDS += ("power.limit", "temperature.gpu", "utilization.gpu")


def run(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def query(fields):
    """Returns one line for each GPU, with the values of the fields."""
    command = ("nvidia-smi", "--query-gpu=" + ",".join(fields), "--format=csv,noheader,nounits")
    return run(*command).splitlines()


def slug(name):
    """NVIDIA H100 80GB HBM3 → h100."""
    match = re.search(r"\b([A-Z]{1,3}\d{1,4}[A-Za-z]?)\b", name)
    return re.sub(r"[^a-z0-9]+", "-", (match[1] if match else name).lower()).strip("-") or "gpu"


def now():
    """Returns the clocks and power after work, and the bit mask of reasons that limit the clocks.
    A value that this driver does not report is ""."""
    fields = ("clocks.sm", "power.draw", "clocks_event_reasons.active")
    values = query(fields)[:1]
    values = values[0].split(",") if values else ["", "", ""]
    names = ("clock_sm_mhz", "power_w", "clocks_event_reasons")
    return dict(zip(names, [v.strip() for v in values]))


def read():
    """Returns the description of the machine, or None without a GPU."""
    lines = query(FIELDS)
    if not lines:
        return None
    values = dict(zip(FIELDS, [v.strip() for v in lines[0].split(",")]))
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    commit = os.environ.get("BRAID_COMMIT") or run("git", "-C", top, "rev-parse", "--short", "HEAD")
    changed = run("git", "-C", top, "status", "--porcelain", "--untracked-files=no")
    return {
        "gpu": values["name"],
        "slug": slug(values["name"]),
        "gpus": len(lines),
        "driver": values["driver_version"],
        "compute_capability": values["compute_cap"],
        "memory_mib": values["memory.total"],
        "clock_sm_mhz": values["clocks.sm"],
        "clock_memory_mhz": values["clocks.mem"],
        "clock_sm_max_mhz": values["clocks.max.sm"],
        "power_limit_w": values["power.limit"],
        "temperature_c": values["temperature.gpu"],
        "utilization": values["utilization.gpu"],
        "nvcc": (run("nvcc", "--version").splitlines() or ["none"])[-1],
        "kernel": platform.release(),
        "cores": os.cpu_count(),
        "commit": (commit or "unknown") + ("+changes" if changed else ""),
    }


if __name__ == "__main__":
    found = read()
    print(json.dumps(found) if found else "")
