#!/usr/bin/env python3
"""No file uses a word that docs/glossary.md replaces: not in comments, strings, names or pages.

The words are the left column of the glossary's first table; what stands in parentheses there only
explains. A hit is the whole word, or its plural, in any case, with spaces, hyphens or underscores
between its parts; a part of a name counts as a word, and a part of CamelCase too.
Left out: the glossary, CHANGELOG.md, docs/decisions, recorded results, and tests of what must not
compile, which have the names of older versions.

  format_glossary.py [FILE...]
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEFT_OUT = re.compile(r"^(docs/glossary\.md|CHANGELOG\.md|docs/decisions/|tests/check/all\.txt"
                      r"|bench/results/)|/must_not_compile/|internal/removed\.hpp$|goldens?\b")
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def replaced_words():
    """Each word of the first table's left column, with the word that replaces it."""
    words, in_table = {}, False
    for line in (ROOT / "docs/glossary.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            if in_table:
                break
        elif set(cells[0]) <= {"-", ":"}:
            in_table = True
        elif in_table:
            for word in re.sub(r"\(.*?\)", "", cells[0]).split(","):
                word = word.strip().lower()
                words[word] = f"{words[word]}, or {cells[1]}" if word in words else cells[1]
    if not words:
        sys.exit("docs/glossary.md: expected a table of replaced words, got none")
    return words


def pattern_of(words):
    spelled = [r"[\s_-]+".join(map(re.escape, re.split(r"[ -]", word))) for word in words]
    return re.compile(r"(?<![^\W_])(" + "|".join(sorted(spelled, key=len, reverse=True))
                      + r")(?:s|es)?(?![^\W_])", re.IGNORECASE)


def plain(text):
    """The text without the marks of a comment's lines, which would part a phrase; a capital inside
    a name begins a new word."""
    text = re.sub(r"(?m)^(\s*)(///?<?|#)", lambda m: m[1] + " " * len(m[2]), text)
    return HUMP.sub("_", text)


def main():
    files = sys.argv[1:] or subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True,
                                           text=True, check=True).stdout.split("\n")
    words = replaced_words()
    pattern = pattern_of(words)
    hits = searched = 0
    for name in files:
        path = ROOT / name
        if not name or LEFT_OUT.search(name) or not path.is_file():
            continue
        try:
            text = plain(path.read_text())
        except UnicodeDecodeError:
            continue
        searched += 1
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start(1)) + 1
            word = re.sub(r"[\s_-]+", " ", match.group(1)).lower()
            but = words.get(word) or words.get(word.replace(" ", "-")) or words.get(
                word.replace("-", " "), "")
            print(f"{name}:{line}: '{word}': docs/glossary.md has: {but}")
            hits += 1
    if not searched:
        sys.exit("format_glossary.py: no file was searched")
    if hits:
        sys.exit(f"{hits} words that docs/glossary.md replaces")


main()
