#!/usr/bin/env python3
"""Compares the resources that every CUDA kernel uses on sm_90, read from the machine code in the
objects of a build, with the committed report.

    cuda_resources.py --objects FOLDER --report FILE --toolkit VERSION --cuobjdump PROGRAM [--write]

FOLDER holds name.cu.o for every .cu file. docs/notes/cuda_resources.md explains the report. Fails
on: a kernel of which an SM holds fewer warps than the report says; a stack frame, a load or store
of local memory, or an atomic, unless EXCEPTIONS or COUNTERS has it; a kernel that lacks accesses
of 16 bytes that its rule in WIDTHS requires, or that has no rule; a row of the table of main loops
in docs/notes/kernels_gpu.md that is not of this build. Other differences from the report are
printed: an addition need not write it again. The figures, widths and loops are compared only if the
toolkit is the one of the report. --write writes the report and the rows."""
import argparse
import collections
import concurrent.futures
import difflib
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOOPS = ROOT / "docs/notes/kernels_gpu.md"
# in the order of braid::DType
DTYPES = ["bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
SIZES = {**dict(zip(DTYPES, [1, 1, 4, 8, 2, 2, 4, 8])), "char": 1, "short": 2, "int": 4, "long": 8}

# (kernel, why it may have a stack frame and local memory)
EXCEPTIONS = [
    (r"map_\w+<Map1<(float\d\d|bfloat16), \w+, (Sin|Cos|Function)>>",
     "the toolkit reduces large angles (of tan too) through a small array; "
     "angles below 1e5 never reach it"),
]

# The kernels that report an error to the host (device/report.cuh). Only they may exchange 64 bits
# atomically. They need a system-wide fence between the fields of the record and its state.
REPORTS = re.compile(r"map_\w+<Map2<.*\bDivideIntegers<.*|map_\w+<.*\bIntegerFunction<.*|"
                     r"cross_entropy_\w+<.*|(gather|scatter)_\w+<.*|check_indices|"
                     r"(row|scatter)_keys")

# (kernel, the atomics of a counter that it may have). They count blocks, in integers of 32 bits:
# which block is the last one (device/tickets.cuh), which part comes next. The result does not
# depend on who counts first.
COUNTERS = [
    (r"(reduce_\w+|norm_parts|cross_entropy_(warps|blocks)|sum_(columns|runs)|"
     r"norm_rows_gradients_\w+)<.*", {"ATOMG.E.INC.STRONG.GPU"}),
    (r"scan_parts<.*", {"ATOMG.E.ADD.STRONG.GPU"}),
]

# (kernel, the accesses that must be 16 bytes wide: load (global), store (global), async (global to
# shared), read (shared); or the reason why none are). The first rule that matches applies. A kernel
# without wide accesses may have its reason in its file: rules_in_sources.
WIDTHS = [
    (r"map_dense<Map\d<.*\bDivideIntegers<.*",
     "an integer division is dozens of instructions: packs of two keep the code short"),
    (r"map_dense<Map2<uint8, uint8, IntegerFunction<.*",
     "packs of eight: the code is not unrolled, and longer packs would leave the registers"),
    (r"map_dense<Fill<.*", {"store"}),
    (r"map_dense<Select<.*", {"load", "store"}),
    (r"map_dense<Map1<Bits<.*", {"load", "store"}),
    (r"map_dense<Map1<(uint8|int32), int64, .*", "of an int64 its low half is needed, and read"),
    (r"map_dense<Map\d<(\w+), (\w+), .*",
     lambda to, x: {"load"} if SIZES[to] < SIZES[x]
     else {"store"} if SIZES[to] > SIZES[x] else {"load", "store"}),
    (r"map_strided<.*", "the operands lie apart"),
    (r"copy_transposed<.*",
     "both sides are read and written along their dense dim, a warp's 32 elements side by side"),
    (r"softmax_.*", {"load", "store"}),
    (r"cross_entropy_backward_rows<.*", {"load", "store"}),
    (r"cross_entropy_.*", {"load"}),
    (r"reduce_columns<1, .*", "outputs that do not lie in packs; a warp's are side by side"),
    (r"reduce_\w+<IndexReducer<float>, LoadDense<.*",
     "of 16 bytes of a chunk's result, four are padding and not read"),
    (r"reduce_\w+<.*", {"load"}),
    (r"(sgd|adam|rare)_step<.*|step_recorded<.*", {"load", "store"}),
    (r"norm_parts<.*", {"load"}),
    (r"scale_items<.*", {"load", "store"}),
    (r"random_.*", {"store"}),
    (r"rnn_step.*",
     "a thread has one cell: a step is small, and comes out of the caches from the product "
     "before it"),
    (r"norm_rows_join<.*", "partial sums of columns; a warp's 32 columns lie side by side"),
    (r"norm_rows_gradients_\w+<.*, true>", {"load", "async", "read", "store"}),
    (r"norm_(rows_\w+|by_channel)<.*", {"load", "store"}),
    (r"sum_columns<.*", "a warp's 32 channels lie side by side, and may be all there are"),
    (r"sum_runs<.*",
     "a run has any length and begins anywhere; a warp's 32 elements lie side by side"),
    (r"dropout_run<.*", {"load", "store"}),
    (r"dropout_rows<.*", "the rows are in the middle: elements of one Philox block may lie apart"),
    (r"attention_dots<.*",
     "rows of at most 128 numbers that begin anywhere; a warp's 32 lie side by side"),
    (r"attention_starts", "a start for each thread, side by side"),
    # operands are copied to shared memory 32 numbers at a time, adjacent for the lanes of a warp
    (r"attention_\w+_mma<.*", {"async", "read", "store"}),
    (r"attention_\w+<.*", {"read"}),
    (r"conv_\w+_mma<.*", {"async", "read"}),  # the results are 4 x 2 bytes
    (r"conv_columns<uint4>", {"load", "store"}),
    (r"conv_columns<.*", "for groups whose channels are no whole numbers of 16 bytes"),
    (r"max_pool_at_index<.*", "an element lies where its index says"),
    (r"(max_pool_\w+|resample_sums)<.*",
     "windows overlap, begin anywhere and lie a step apart; a warp's lie side by side"),
    (r"scan_threads<.*", "a thread a line: lines are short, or a warp's 32 lie side by side"),
    # one kernel for four dtypes: a thread reads its four adjacent elements one by one
    (r"scan_(blocks|parts)<.*", {"read"}),
    (r"sort_tiles", {"read", "store"}),
    (r"merge_runs", {"load", "store"}),
    (r"write_sorted", "an element lies where its key was"),
    (r"gather_units<uint4>", {"load", "store"}),
    (r"gather_units<.*", "for rows that are no whole numbers of 16 bytes"),
    (r"check_indices", "indices are looked at one by one"),
    (r"row_keys", "indices are looked at one by one"),
    (r"add_runs<.*, 1>",
     "rows that are no whole numbers of 16 bytes; a warp's columns lie side by side"),
    (r"add_runs<.*", {"load", "store"}),
    (r"gather_elements<.*", "an element lies where its index says"),
    (r"scatter_elements<.*",
     "a thread follows the indices one by one: the elements lie where they say"),
    (r"scatter_add<.*",
     "a thread owns columns, a warp's side by side, and adds in the order of the indices"),
    (r"(linear|matmul)_\w+_tiny<.*", "a product of one block: its operands come from the caches"),
    (r"gemm_join<(float16|bfloat16|float32|float64|int32|int64)>", {"load"}),
    (r"(linear|matmul)_\w+<float32, Tf32Tile<.*", {"async", "read", "store"}),
    (r"linear_backward_weight<float32, .*", {"async", "read", "store"}),
    (r"(linear|matmul)_\w+<float32, .*", {"async", "load", "read", "store"}),
    # the results are 4 x 2 bytes
    (r"(linear|matmul)_\w+<(bfloat16|float16), MmaTile<.*", {"async", "read"}),
    (r"(linear|matmul)_\w+<.*", {"load", "read", "store"}),
]


WIDE = {"LDG": "load", "LD": "load", "STG": "store", "ST": "store", "LDGSTS": "async",
        "LDS": "read"}


class Kernel:
    def __init__(self, file, name):
        self.file, self.name = file, name
        self.threads = self.registers = self.shared = self.stack = self.loads = self.stores = 0
        self.wide, self.atomics, self.code = set(), set(), {}
        self.exchanges = self.fences = 0  # of 64 bits; of the whole system
        self.loop = None  # the counts of the loop with the most multiplies

    def warps(self):
        """Returns the warps that an SM of sm_90 can hold. Its limits are 64 warps, 32 blocks, 64 Ki
        registers (allocated to a warp in steps of 256), and 228 KiB of shared memory (in steps of
        128 bytes, plus 1 KiB per block for the system)."""
        warps = -(-self.threads // 32)
        a_warp = -(-self.registers * 32 // 256) * 256
        by_registers = 65536 // a_warp // warps
        by_shared = 228 * 1024 // (1024 + -(-self.shared // 128) * 128)
        return min(32, 64 // warps, by_registers, by_shared) * warps

    def line(self):
        return (
            f"{self.file:22} {self.threads:7} {self.registers:9} {self.shared:6} {self.stack:5} "
            f"{self.stores:6} {self.loads:5} {self.warps():8}  {self.name}"
        )


HEAD = (
    f"{'file':22} {'threads':>7} {'registers':>9} {'shared':>6} {'stack':>5} "
    f"{'stores':>6} {'loads':>5} {'warps/64':>8}  kernel"
)


def short_name(demangled):
    """Returns map_dense<Map2<float32, …>> for void braid::cuda::map_dense<…>(…)."""
    element = r"braid::cuda::Element<[^<>]*, \(braid::DType\)(\d)>"
    name = re.sub(element, lambda m: DTYPES[int(m.group(1))], demangled)
    name = re.sub(r"braid::(cuda::)?|^void |unsigned (?=char|short|int|long)", "", name)
    depth = 0
    # the parameters begin at the first parenthesis outside the template arguments
    for at, c in enumerate(name):
        depth += (c == "<") - (c == ">")
        if c == "(" and depth == 0:
            name = name[:at]
            break
    return name.replace(" >", ">")


def main_loop(text):
    """Returns the counts of the instructions of the shortest loop with the most multiplies. A loop
    is what is between a branch back and its target."""
    lines = re.findall(r"/\*([0-9a-f]{4,})\*/ +(?:@!?U?P\w+ )?([A-Z][A-Z0-9_.]*)([^;]*);", text)
    code = [(int(at, 16), operation, rest) for at, operation, rest in lines]
    best = None
    for at, operation, rest in code:
        target = re.search(r"0x([0-9a-f]+)", rest) if operation.startswith("BRA") else None
        if target is None or int(target.group(1), 16) >= at:
            continue
        body = [c for where, c, _ in code if int(target.group(1), 16) <= where <= at]
        counts = collections.Counter(c.split(".")[0] for c in body)
        key = (counts["HMMA"], counts["FFMA"], -len(body))
        if best is None or key > best[0]:
            best = (key, counts)
    return best[1] if best else None


def read_object(path, cuobjdump):
    """Returns the sm_90 kernels of an object."""
    options = {"check": True, "capture_output": True, "text": True}

    def dump(what):
        command = [cuobjdump, "-arch", "sm_90", what, str(path)]
        return subprocess.run(command, **options).stdout

    kernels, file, current = {}, path.name[: -len(".o")], None
    usage = re.compile(r" Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+)")
    for name, registers, stack, shared in usage.findall(dump("-res-usage")):
        current = kernels[name] = Kernel(file, name)
        shared = max(0, int(shared) - 1024)  # without the system's part
        current.registers, current.stack, current.shared = int(registers), int(stack), shared
    limit = r"EIATTR_MAX_THREADS\s+Format:\s+EIFMT_SVAL\s+Value:\s+(\S+) (\S+) (\S+)"
    for name, info in re.findall(r"^\.nv\.info\.(\S+)\n(.*?)(?=^\.)", dump("-elf"), re.M | re.S):
        x, y, z = re.search(limit, info).groups()
        kernels[name].threads = int(x, 16) * int(y, 16) * int(z, 16)
    operation = re.compile(r"/\*[0-9a-f]{4,}\*/ +(?:@!?U?P\w+ )?([A-Z][A-Z0-9_.]*)")
    for text in dump("-sass").split("Function : ")[1:]:
        current = kernels[text[: text.index("\n")].strip()]
        current.loop = main_loop(text)
        for code, count in collections.Counter(operation.findall(text)).items():
            kind = code.split(".")[0]
            current.code[kind] = current.code.get(kind, 0) + count
            current.loads += count * (kind == "LDL")
            current.stores += count * (kind == "STL")
            if ".128" in code and kind in WIDE:
                current.wide.add(WIDE[kind])
            # An error's record is written with exchanges of 64 bits, and counters count (COUNTERS).
            # Any other atomic could combine numbers in an order that depends on the threads'
            # timing.
            if "ATOM" in kind or kind in ("RED", "REDG", "REDUX", "SURED"):
                if re.match(r"ATOMG?\.E\.(EXCH|CAS)\.64\.STRONG", code):
                    current.exchanges += count
                else:
                    current.atomics.add(code)
            current.fences += count * bool(re.match(r"MEMBAR\.\w+\.SYS", code))
    names = subprocess.run(["c++filt"], input="\n".join(kernels), **options).stdout.splitlines()
    for kernel, name in zip(kernels.values(), names):
        kernel.name = short_name(name)
    return list(kernels.values())


def rules_in_sources(folder):
    """Returns the rules of WIDTHS that are in a .cu file: `// accesses of KERNEL: REASON`."""
    line = re.compile(r"^// accesses of (\S+): (.+)$", re.M)
    return [
        (re.escape(name) + r"(<.*)?", reason)
        for path in sorted(folder.glob("*.cu"))
        for name, reason in line.findall(path.read_text())
    ]


def rule_of(kernel, rules):
    for pattern, what in rules:
        match = re.fullmatch(pattern, kernel.name)
        if match:
            return what(*match.groups()) if callable(what) else what
    return None


def faults_of(kernel, same_toolkit):
    where = f"{kernel.file}: {kernel.name}: "
    if (kernel.stack or kernel.loads or kernel.stores) and not rule_of(kernel, EXCEPTIONS):
        yield where + (
            f"expected no local memory, got a stack of {kernel.stack} bytes, "
            f"{kernel.stores} stores and {kernel.loads} loads"
        )
    if atomics := kernel.atomics - (rule_of(kernel, COUNTERS) or set()):
        yield where + f"expected no atomics, got {', '.join(sorted(atomics))}"
    if kernel.exchanges and not REPORTS.fullmatch(kernel.name):
        yield where + "expected no atomic exchange of 64 bits in a kernel that reports nothing"
    if kernel.exchanges and not kernel.fences:
        yield where + "expected a fence of the system before the state of a report, got none"
    wanted = rule_of(kernel, WIDTHS) if same_toolkit else set()
    if wanted is None:
        yield where + "expected a rule in WIDTHS, got none"
    elif isinstance(wanted, set) and not wanted <= kernel.wide:
        yield where + (
            f"expected 16 bytes at once in {' '.join(sorted(wanted))}, "
            f"got {' '.join(sorted(kernel.wide)) or 'none'}"
        )


def loop_line(kernel):
    """Returns the row of the table of main loops, or None for a kernel without a loop."""
    loop = kernel.loop
    if loop is None:
        return None
    multiplies = loop["HMMA"] or loop["FFMA"]
    plain = loop["LDS"] if "Tf32Tile" in kernel.name or not loop["LDSM"] else 0
    loads, all_of_them = loop["LDSM"] + plain, sum(loop.values())
    return (f"| `{kernel.name}` | {multiplies} | {loads} | {loop['LDGSTS']} | {all_of_them} "
            f"| {multiplies / max(loads, 1):.1f} | {multiplies / all_of_them:.2f} |")


def stale_loops(kernels, write):
    """Compares the table of main loops in LOOPS with the kernels, and returns the faults. write:
    corrects the table."""
    rows = {kernel.name: loop_line(kernel) for kernel in kernels}
    lines, faults, found = LOOPS.read_text().split("\n"), [], 0
    for i, line in enumerate(lines):
        named = re.match(r"\| `(\w+<[^`]*)` \| \d+ \|", line)
        if not named:
            continue
        found += 1
        row = rows.get(named[1])
        if row != line and write and row:
            lines[i] = row
        elif row != line:
            faults.append(f"{LOOPS.name}: expected {row or 'no row of ' + named[1]}, got {line}; "
                          "tests/check/cuda_resources.sh --write corrects the table")
    if write:
        LOOPS.write_text("\n".join(lines))
    return faults if found else [f"{LOOPS.name}: expected a table of main loops, got none"]


def warps_of(lines):
    """The warps that the report's lines give for each file and kernel."""
    found = {}
    for line in lines:
        cells = line.split(None, 8)
        found[cells[0], cells[8]] = int(cells[7])
    return found


def main():
    parser = argparse.ArgumentParser()
    for name in ("--objects", "--report", "--toolkit", "--cuobjdump"):
        parser.add_argument(name, required=True)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--loops", help="print the main loops of the kernels that match")
    parser.add_argument("--sass", help="print the counts of instructions of the kernels that match")
    args = parser.parse_args()
    objects = sorted(pathlib.Path(args.objects).glob("*.cu.o"))
    if not objects:
        sys.exit(f"{args.objects}: expected objects of .cu files, got none")
    with concurrent.futures.ProcessPoolExecutor() as pool:
        read = pool.map(read_object, objects, [args.cuobjdump] * len(objects))
        kernels = sorted((k for found in read for k in found), key=lambda k: (k.file, k.name))
    if args.sass:
        for kernel in kernels:
            if re.search(args.sass, kernel.name):
                most = sorted(kernel.code.items(), key=lambda i: -i[1])[:16]
                counts = " ".join(f"{c}:{n}" for c, n in most)
                print(kernel.line(), " ".join(sorted(kernel.wide)), counts)
        return
    if args.loops:
        print("| kernel | multiplies | shared loads | copies | instructions | multiplies per "
              "shared load | per instruction |\n|---|---|---|---|---|---|---|")
        for kernel in kernels:
            if kernel.loop and re.search(args.loops, kernel.name):
                print(loop_line(kernel))
        return
    WIDTHS.extend(rules_in_sources(ROOT / "kernels/cuda"))
    report = pathlib.Path(args.report)
    toolkit = (
        f"# nvcc {args.toolkit}, sm_90. Written by: tests/check/cuda_resources.sh --write. "
        "How to read it: docs/notes/cuda_resources.md"
    )
    new = [toolkit, HEAD, *(k.line() for k in kernels)]
    if args.write:
        report.write_text("\n".join(new) + "\n")
    old = report.read_text().splitlines()
    same_toolkit = old[0] == toolkit
    faults = [fault for kernel in kernels for fault in faults_of(kernel, same_toolkit)]
    if same_toolkit:
        faults += stale_loops(kernels, args.write)
        diff = list(difflib.unified_diff(old, new, str(report), "this build", n=0, lineterm=""))
        if diff:
            print("\n".join(diff))
            changed = sum(d[0] == "+" for d in diff) - 1
            print(f"NOTE: {changed} kernels are new or changed, see above; "
                  "tests/check/cuda_resources.sh --write records them")
        recorded = warps_of(old[2:])
        for kernel in kernels:
            before = recorded.get((kernel.file, kernel.name), 0)
            if kernel.warps() < before:
                faults.append(f"{kernel.file}: {kernel.name}: expected {before} warps of 64 on an "
                              f"SM, got {kernel.warps()}; where that is meant: "
                              "tests/check/cuda_resources.sh --write")
    else:
        print(
            f"NOTE: the report is of {old[0][2:].split(',')[0]}, this build of nvcc "
            f"{args.toolkit}: local memory and atomics were checked, figures and widths were not"
        )
    for fault in faults:
        print("FAIL: " + fault)
    print(f"{len(kernels)} kernels of {len(objects)} files: {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
