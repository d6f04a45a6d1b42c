"""The cores that a peer's processes run on, from the environment."""

import os


def pinned_cores():
    """Returns the cores that BRAID_PIN_CORES lists; none if it is not set."""
    return [int(c) for c in os.environ.get("BRAID_PIN_CORES", "").split(",") if c]


def pin(cores):
    """Restricts this process to the cores. An empty list changes nothing."""
    if cores:
        os.sched_setaffinity(0, cores)
