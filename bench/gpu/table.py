"""The table of goals on a GPU: ceilings, then Braid against cuBLAS and PyTorch on the same memory.

Everything runs in one process.

    table.py --library libbraid_bench.so [--rows ceilings,G1] [--out FOLDER] [--results FOLDER]
             [--seconds N] [--no-compile] [--dry-run] [--list]
"""

import argparse
import itertools
import sys
import time

import card
import rows_attention
import rows_convolutions
import rows_host
import rows_kernels
import rows_linear
import rows_memory
import rows_models
import rows_one_pass
import rows_replicas
import rows_tensor_cores
from library import Failure, Library
from measure import Clock, During, Table
from peers import Peer

ROWS = {
    "ceilings": rows_kernels.ceilings,
    "G1": rows_kernels.g1,
    "G1s": rows_kernels.g1s,
    "G2": rows_tensor_cores.g2,
    "G3": rows_tensor_cores.g3,
    "G4": rows_tensor_cores.g4,
    "G5": rows_linear.g5,
    "G5h": rows_linear.g5h,
    "G6": rows_kernels.g6,
    "G6h": rows_tensor_cores.g6h,
    "G6s": rows_host.g6s,
    "G7": rows_host.g7,
    "G8": rows_memory.g8,
    "G8b": rows_memory.g8b,
    "G8c": rows_memory.g8c,
    "G9": rows_attention.g9,
    "scores": rows_attention.scores,
    "conv": rows_convolutions.conv,
    "tf32": rows_convolutions.tf32,
    "embedding": rows_one_pass.embedding,
    "clip": rows_one_pass.clip,
    "G12": rows_host.g12,
    "G13": rows_host.g13,
    "G14": rows_host.g14,
    "G15": rows_replicas.g15,
    "G16": rows_replicas.g16,
    "gpt2": rows_models.gpt2,
    "captured": rows_host.captured,
}


class Run:
    """The context that every row receives."""

    def __init__(self, library, peer, table, dry):
        self.library, self.peer, self.table, self.dry = library, peer, table, dry
        self.clock, self.host_clock = Clock(dry), Clock(dry)
        self.host_clock.most = 500  # few enough that the launch queue never fills up
        self.has_cublas = None

    def engine(self, name, work):
        """Work by an engine of matrix products; Braid's is the one outside of it."""
        engine = self.library.engine
        return During(lambda: engine(name), lambda: engine("braid"), work)

    def precision(self, name, work):
        """Work with a precision of float32; outside of it sums are exact."""
        precision = self.library.precision
        return During(lambda: precision(name), lambda: precision("exact"), work)

    def cublas(self, name):
        """Returns whether cuBLAS can be opened. If not, prints the reason once."""
        if self.has_cublas is None:
            try:
                self.library.engine("cublas")
                self.library.engine("braid")
                self.has_cublas = True
            except Failure as error:
                if self.dry:
                    raise
                self.has_cublas = False
                self.table.skip(name, str(error)[:200])
        return self.has_cublas

    def turns(self, sets, function):
        """Returns a function that calls `function` with the sets of operands in turn."""
        rotation = itertools.cycle(sets)
        return lambda: function(*next(rotation))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library")
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--out", default=".")
    parser.add_argument("--results", default=".")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list:
        print("\n".join(ROWS))
        return 0
    names = options.rows.split(",")
    unknown = [name for name in names if name not in ROWS]
    if unknown or not options.library:
        wrong = ", ".join(unknown) or "no library"
        parser.error(f"expected --library and rows of {', '.join(ROWS)}, got {wrong}")

    start, dry = time.monotonic(), options.dry_run
    found = card.read()
    if found is None:
        print("FAIL  table  expected nvidia-smi to name a GPU, got none")
        return 1
    peer = Peer(dry, not options.no_compile)  # before the library, which finds PyTorch's cuBLAS
    library = Library(options.library)
    table = Table(dry, found)
    if library.devices() < 1 or library.emulated != dry:
        wanted = "emulated devices" if dry else "a GPU"
        text = f"expected {wanted}, got {library.reason() or library.description()}"
        table.line("FAIL", "table", text, error=True)
        return 1
    found.update(device=library.description(), processors=library.processors())
    found.update(braid=library.version(), peer=peer.name if not peer.missing else None)
    exact = ""
    if not peer.missing:
        tf32, precision = peer.allows_tf32(), peer.precision()
        found.update(torch_allow_tf32=tf32, torch_matmul_precision=precision)
        exact = f" (allow_tf32 {tf32}, precision {precision})"
    name = peer.missing or peer.name
    print(f"the peer is {name}; products of float32 without TF32{exact}", flush=True)
    if not peer.missing:
        found.update(quack=peer.quack.said(), flash_attn=peer.flash_attn.said())
        print(f"beside it: {peer.quack.said()}; {peer.flash_attn.said()}", flush=True)
    run = Run(library, peer, table, dry)
    paths = []
    for name in names:
        if time.monotonic() - start > options.seconds:
            # the file keeps these rows from an earlier call
            print(f"SKIP(no time left: ./dev gpu --only {name})  {name}", flush=True)
            continue
        table.group = name
        for step in (lambda: ROWS[name](run), library.empty_cache):
            try:
                step()
            except Exception as error:  # the other rows still run
                table.error(name, error)
                if dry:
                    import traceback

                    traceback.print_exc()
        found["after"] = card.now()
        # after each row, so that an interrupted run keeps its rows
        paths = table.write(options.out, options.results)
    for path in paths:
        print(f"written: {path}")
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
