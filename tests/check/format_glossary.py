#!/usr/bin/env python3
"""No comment and no page uses a word that docs/glossary.md replaces.

The words are the left column of the glossary's first table; what stands in parentheses there only
explains. A hit is the whole word, or its plural, in any case, with a space or a hyphen between its
parts. Searched are the comments of C++, CUDA, Python, shell and CMake files, and Markdown, without
code in backticks. Left out: the glossary, CHANGELOG.md, docs/decisions, and tests of what must not
compile.

  format_glossary.py [FILE...]
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEFT_OUT = re.compile(r"^(docs/glossary\.md|CHANGELOG\.md|docs/decisions/)|/must_not_compile/")
CXX = (".cpp", ".hpp", ".cu", ".cuh")
# A string or a character comes first, so that what looks like a comment in it is none.
CXX_TOKEN = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
                       r"|//[^\n]*|/\*.*?\*/", re.DOTALL)
HASH_COMMENT = re.compile(r"(?:^|(?<=\s))#[^\n]*", re.MULTILINE)
CODE_IN_TEXT = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


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
    spelled = [r"[\s-]+".join(map(re.escape, re.split(r"[ -]", word))) for word in words]
    return re.compile(r"(?<![\w-])(" + "|".join(sorted(spelled, key=len, reverse=True))
                      + r")(?:s|es)?(?![\w-])", re.IGNORECASE)


def blank(text):
    """As many lines, without their text."""
    return re.sub(r"[^\n]", " ", text)


def comments(text, suffix):
    """The text with everything blanked but its comments (Markdown: but what is not code)."""
    if suffix == ".md":
        return CODE_IN_TEXT.sub(lambda match: blank(match.group(0)), text)
    if suffix in CXX:
        kept = [m.span() for m in CXX_TOKEN.finditer(text) if m.group(0)[:2] in ("//", "/*")]
    else:
        kept = [m.span() for m in HASH_COMMENT.finditer(text)]
        if suffix == ".py":
            kept += [m.span() for m in re.finditer(r'""".*?"""', text, re.DOTALL)]
    out, end = [], 0
    for begin, stop in sorted(kept):
        if begin < end:
            continue
        # The marks of a comment's lines would part a phrase.
        comment = re.sub(r"(?m)^(\s*)(///?<?|#)", lambda m: m[1] + " " * len(m[2]),
                         CODE_IN_TEXT.sub(lambda match: blank(match.group(0)), text[begin:stop]))
        out += [blank(text[end:begin]), comment]
        end = stop
    return "".join(out) + blank(text[end:])


def main():
    files = sys.argv[1:] or subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True,
                                           text=True, check=True).stdout.split("\n")
    words = replaced_words()
    pattern = pattern_of(words)
    hits = searched = 0
    for name in files:
        suffix = pathlib.Path(name).suffix
        if LEFT_OUT.search(name) or not (
                suffix in (*CXX, ".py", ".sh", ".cmake", ".in", ".supp", ".md")
                or name in ("dev", ".ci/run") or name.endswith("CMakeLists.txt")):
            continue
        path = ROOT / name
        if not path.is_file():
            continue
        searched += 1
        text = comments(path.read_text(), suffix)
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start(1)) + 1
            word = re.sub(r"\s+", " ", match.group(1)).lower()
            but = words.get(word) or words.get(word.replace(" ", "-")) or words.get(
                word.replace("-", " "), "")
            print(f"{name}:{line}: '{word}': docs/glossary.md has: {but}")
            hits += 1
    if not searched:
        sys.exit("format_glossary.py: no file was searched")
    if hits:
        sys.exit(f"{hits} words that docs/glossary.md replaces")


main()
