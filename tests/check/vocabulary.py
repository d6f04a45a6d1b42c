"""Checks the tables in tests/check/vocabulary/ against the headers, and
docs/guides/from_pytorch.md against the tables.

    vocabulary.py page      the page is what the tables give
    vocabulary.py all       also compiles every line: see vocabulary_lines.py
    vocabulary.py write     writes the generated parts of the page
    vocabulary.py update    changes the statuses to what the compiler says, and writes the page

vocabulary/README.md describes the tables."""

import os
import pathlib
import sys

import vocabulary_lines
import vocabulary_page
import vocabulary_table

FOLDER = pathlib.Path("tests/check/vocabulary")
PAGE = pathlib.Path("docs/guides/from_pytorch.md")


def compare_page(tables, write):
    text = PAGE.read_text()
    wanted = vocabulary_page.fill(text, tables, vocabulary_table.left_out(FOLDER))
    if write:
        PAGE.write_text(wanted)
        return 0
    if text == wanted:
        return 0
    for n, (got, expected) in enumerate(zip(text.split("\n"), wanted.split("\n")), 1):
        if got != expected:
            print(f"{PAGE}:{n}: expected\n  {expected}\ngot\n  {got}")
            break
    else:
        print(f"{PAGE}: expected {len(wanted)} characters, got {len(text)}")
    print("BRAID_VOCABULARY_WRITE=1 ./dev check vocabulary writes the page")
    return 1


def main():
    mode = sys.argv[1]
    tables = vocabulary_table.read(FOLDER)
    wrong = 0
    if mode in ("all", "update"):
        compiler = vocabulary_lines.compiler(FOLDER, pathlib.Path("build/check/vocabulary"))
        found = vocabulary_lines.compare(tables, compiler)
        if mode == "update":
            changed, found = vocabulary_lines.update(tables, found)
            vocabulary_table.write(FOLDER, tables)
            print(f"NOTE: {changed} statuses changed")
        for row, message in found:
            print(f"{FOLDER / row.file}:{row.line}: {row.name}: {message}")
        wrong += len(found)
    wrong += compare_page(tables, mode in ("write", "update"))
    for line in vocabulary_page.notes(tables):
        print(f"NOTE: {line}")
    if wrong:
        print(f"FAIL: {wrong} lines of the tables or the page are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    sys.exit(main())
