"""Writes unicode_tables.cpp: the letters and numbers of Unicode, as the package regex has them.

    python3 data/text/make_unicode.py && ./dev format

GPT-2's splitting rule is an expression for that package.
"""

import importlib.metadata
import pathlib

import regex

HEAD = """// Written by make_unicode.py with regex {version} (Unicode 17): ranges of code points.
#include "text/unicode.hpp"

namespace braid::data::detail {{
"""


def ranges(pattern):
    match, found = regex.compile(pattern).match, []
    for code in range(0x80, 0x110000):
        if 0xD800 <= code < 0xE000 or not match(chr(code)):
            continue
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def table(name, pattern):
    rows = ", ".join(f"{{{first:#x}, {last:#x}}}" for first, last in ranges(pattern))
    return f"constexpr CodeRange {name}[] = {{{rows}}};\n"


def main():
    text = HEAD.format(version=importlib.metadata.version("regex"))
    text += "namespace {\n" + table("kLetterRanges", r"\p{L}") + table("kNumberRanges", r"\p{N}")
    text += "}  // namespace\n"
    for name in ("Letter", "Number"):
        text += f"const std::span<const CodeRange> k{name}s(k{name}Ranges);\n"
    text += "}  // namespace braid::data::detail\n"
    pathlib.Path(__file__).with_name("unicode_tables.cpp").write_text(text)


if __name__ == "__main__":
    main()
