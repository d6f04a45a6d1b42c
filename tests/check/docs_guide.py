#!/usr/bin/env python3
"""Follows docs/guides/add_an_op.md in a copy of the tree: docs_guide.py GUIDE COPY.

Every place of the form "In `FILE`, below `TEXT`:" (or above), followed by a block of code, is
applied: the block is inserted below (above) the only line of FILE that contains TEXT. "The new file
`FILE`:" is followed by its contents. Prints the sources that the guide says contain the additions:
"These sources contain it: `FILE`, …"."""
import pathlib
import re
import sys

NAMED = r"(?:In\s+`(?P<file>[^`]+)`,\s+(?P<where>below|above)\s+`(?P<text>[^`]+)`:"
NAMED += r"|The\s+new\s+file\s+`(?P<new>[^`]+)`:)"
PLACE = re.compile(
    NAMED + r"\n\n"
    r"(?P<indent> *)```c\+\+\n(?P<code>.*?)^ *```$",
    re.M | re.S,
)


def code_of(place):
    depth = len(place["indent"])
    return [line[depth:] for line in place["code"].removesuffix("\n").split("\n")]


def apply(copy, place):
    if place["new"]:
        path = copy / place["new"]
        if path.exists():
            sys.exit(f"{path}: expected a new file")
        path.write_text("\n".join(code_of(place)) + "\n")
        return
    path = copy / place["file"]
    lines = path.read_text().split("\n")
    # the text may be broken over two lines of the guide
    text = " ".join(place["text"].split("\n")).rstrip()
    found = [i for i, line in enumerate(lines) if text in line]
    if len(found) != 1:
        sys.exit(f"{path}: expected one line with `{text}`, got {len(found)}")
    at = found[0]
    if place["where"] == "below":
        # below the whole statement, which may continue on the following lines
        ends = (";", ")", "},", "{", ">")
        while not lines[at].rstrip().endswith(ends) and "  //" not in lines[at]:
            at += 1
        at += 1
    lines[at:at] = code_of(place)
    path.write_text("\n".join(lines))


def main():
    guide, copy = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(sys.argv[2])
    places = list(PLACE.finditer(guide))
    named = len(re.findall(r"\bIn\s+`[^`]+`,\s+(?:below|above)\s+`|\bnew\s+file\s+`", guide))
    if not places or len(places) != named:
        sys.exit(f"expected a block of code for each of {named} places, got {len(places)}")
    for place in places:
        apply(copy, place)
    sources = re.findall(r"These sources contain it: (.*?)\.\n\n", guide, re.S)
    if not sources:
        sys.exit("expected 'These sources contain it: ', got none")
    print("\n".join(name for text in sources for name in re.findall(r"`([^`]+)`", text)))
    changed = {place["file"] or place["new"] for place in places}
    print(f"{len(places)} blocks in {len(changed)} files", file=sys.stderr)


if __name__ == "__main__":
    main()
