"""Runs inside gdb, by follow_a_step.sh: the commands in the ```gdb blocks of the guide, in order.

The output must be what the block shows after each command. What differs between two runs is not
compared: the numbers of threads and processes, line numbers, and addresses; but where a block shows
one address twice, the output must too.
"""
import difflib
import os
import re
import sys
import tempfile

import gdb

GUIDE = "docs/guides/follow_a_step.md"
PROMPT = "(gdb) "
# Says nothing about the step; some of it depends on the machine.
LEFT_OUT = re.compile(r"$|Continuing|Starting program|\[Thread debugging using"
                      r"|Using host libthread_db|\[Thread .* exited\]|\[New process"
                      r"|warning: Source file is more recent than executable"
                      r"|warning: Error disabling address space randomization")
ID = re.compile(r"(?<=LWP )\d+|(?<=process )\d+")


def numbered(text, pattern, name):
    """Returns the text with each match replaced by a name and the number of the distinct match."""
    seen = {}
    return re.sub(pattern, lambda m: name(seen.setdefault(m[0], len(seen) + 1)), text)


def compared(block):
    """Returns the lines of a block, without what differs between two runs."""
    text = numbered("\n".join(block), r"0x[0-9a-f]+", lambda n: f"0x#{n}")
    text = ID.sub("#", text)
    text = re.sub(r"(\.[ch]pp):\d+|(\.[ch]pp, line) \d+", lambda m: f"{m[1] or m[2]}:#", text)
    text = re.sub(r"^\d+\t", "#\t", text, flags=re.MULTILINE)
    text = re.sub(r"braid::cpu::\w+::gemm", "braid::cpu::#::gemm", text)
    return re.sub(" +", " ", text).split("\n")


def run(commands):
    """Returns for each block of commands the lines that a terminal shows."""
    # What gdb prints goes to a file, and what the program prints too, because it inherits the file.
    terminal = os.dup(1), os.dup(2)
    file, end, blocks = tempfile.TemporaryFile(), 0, []
    for target in (1, 2):
        os.dup2(file.fileno(), target)
    for block in commands:
        lines = []
        for command in block:
            try:
                gdb.execute(command, from_tty=True)
            except gdb.error as error:
                gdb.write(f"{error}\n")
            gdb.flush(gdb.STDOUT)
            size = os.fstat(file.fileno()).st_size
            text = os.pread(file.fileno(), size - end, end).decode()
            end = size
            lines.append(PROMPT + command)
            lines += [line for line in text.splitlines() if not LEFT_OUT.match(line)]
        blocks.append(lines)
    for target in (1, 2):
        os.dup2(terminal[target - 1], target)
    return blocks


def main():
    with open(GUIDE, encoding="utf-8") as file:
        parts = re.split(r"(?<=^```gdb\n)(.*?)(?=^```$)", file.read(),
                         flags=re.MULTILINE | re.DOTALL)
    expected = [part.splitlines() for part in parts[1::2]]
    commands = [[line[len(PROMPT):] for line in block if line.startswith(PROMPT)]
                for block in expected]
    if sum(map(len, commands)) < 20:
        print(f"FAIL: {GUIDE}: expected at least 20 commands in ```gdb blocks, got {commands}")
        return 1
    got = run(commands)
    if os.environ.get("BRAID_TRANSCRIPT_UPDATE"):
        text = numbered("\0".join("".join(f"{line}\n" for line in block) for block in got), ID,
                        lambda n: str(10000 + n))
        parts[1::2] = text.split("\0")
        with open(GUIDE, "w", encoding="utf-8") as file:
            file.write("".join(parts))
        return 0
    differ = 0
    for number, (wanted, shown) in enumerate(zip(expected, got), 1):
        difference = list(difflib.unified_diff(compared(wanted), compared(shown), lineterm="",
                                               fromfile=f"{GUIDE}, block {number}", tofile="gdb"))
        if difference:
            differ += 1
            print("\n".join(difference))
    if differ:
        print(f"FAIL: {differ} of {len(got)} blocks of {GUIDE} show something else than gdb.\n"
              "If the guide is to change: BRAID_TRANSCRIPT_UPDATE=1 ./dev test tutorials")
    return 1 if differ else 0


status = main()
sys.stdout.flush()
gdb.execute(f"quit {status}")
