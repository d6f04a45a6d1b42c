"""The generated parts of docs/guides/from_pytorch.md."""

import collections
import pathlib

import vocabulary_table

BEGIN, END = "<!-- generated: {} -->", "<!-- end: {} -->"


def code(text):
    return f"`{text}`"


def cell(text):
    """A cell of a table: | would end it, also between backticks."""
    return text.replace("|", "\\|")


def wrap(words, width=100):
    """Joins words, with line breaks before column `width`."""
    lines, line = [], ""
    for word in words:
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line] if line else lines


def listed(texts):
    """`a`, `b`, `c` as words to wrap."""
    return [code(text) + ("," if n + 1 < len(texts) else "") for n, text in enumerate(texts)]


def anchor(title):
    kept = "".join(c for c in title.lower() if c.isalnum() or c in "-_ ")
    return "#" + kept.replace(" ", "-")


def with_line(rows, *statuses):
    return [row for row in rows if row.status in statuses and row.libtorch]


def count(table):
    """The numbers of a table: its names by status, the lines of LibTorch for what Braid has, and
    how many of those compile. Names do not count for forms of C++."""
    names = collections.Counter(vocabulary_table.status_of_names(table).values())
    if not table.spaces:
        names.clear()
    there = with_line(table.rows(), "same", "differs", "other")
    compiles = with_line(table.rows(), "same")
    of_names = (sum(names.values()), names["same"], names["other"], names["none"])
    return (*of_names, len(there), len(compiles))


def all_counts(tables):
    """[(title, numbers)], the last one for all tables."""
    each = [(table.title, count(table)) for table in tables]
    return [*each, ("all", tuple(map(sum, zip(*(numbers for _, numbers in each)))))]


def counts(tables):
    """The counts as a table."""
    lines = [
        "| | names | spelled alike | otherwise | not in Braid | lines of C++ | of those compile |",
        "|---|---|---|---|---|---|---|",
    ]
    for title, numbers in all_counts(tables):
        link = title if title == "all" else f"[{title}]({anchor(title)})"
        cells = [str(n) if numbers[0] or k > 3 else "–" for k, n in enumerate(numbers)]
        lines.append(f"| {link} | {' | '.join(cells)} |")
    return lines


def notes(tables):
    """What the check prints."""
    for title, (names, same, other, none, there, compiles) in all_counts(tables):
        text = f"{compiles} of {there} lines of LibTorch compile ({100 * compiles / there:.1f} %)"
        if names:
            text = f"{names} names, {same} spelled alike, {other} otherwise, {none} not; {text}"
        yield f"{title}: {text}"


def note_of(row):
    return f" ({row.note})" if row.note else ""


def other_table(table, topic, rows):
    """The rows with a line of Braid, as a table. A form of C++ has no name of PyTorch, except
    those of indices."""
    named = bool(table.spaces) or topic.title == "Index"
    lines = ["| C++ of LibTorch | Braid |", "|---|---|"]
    if named:
        lines = ["| PyTorch | C++ of LibTorch | Braid |", "|---|---|---|"]
    for row in rows:
        cells = [code(row.name)] if named else []
        cells.append(code(row.libtorch) if row.libtorch else "")
        if row.status == "other":
            cells.append(code(row.braid) + note_of(row))
        else:
            cells.append(f"compiles, but: {row.note}")
        lines.append(f"| {' | '.join(map(cell, cells))} |")
    return lines


def none_list(topic):
    """The names that are not in Braid, by reason. Of a name that is there with other arguments, the
    line."""
    there = {row.name for row in topic.rows if row.status != "none"}
    reasons = collections.defaultdict(list)
    for row in topic.rows:
        if row.status == "none":
            form = row.libtorch if row.name in there else row.name
            if form not in reasons[row.note]:
                reasons[row.note].append(form)
    lines = []
    for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        text = wrap([*(reason + ":").split(" "), *listed(names)], 98)
        lines += [f"- {text[0]}", *(f"  {line}" for line in text[1:])]
    return lines


def topic_lines(table, topic):
    lines = [f"### {topic.title}", ""] if len(table.topics) > 1 else []
    if topic.headers:
        links = []
        for path in topic.headers:
            if not pathlib.Path(path).exists():
                raise SystemExit(f"{table.stem}.tsv: {topic.title}: there is no {path}")
            links.append(f"[{pathlib.PurePath(path).name}](../../{path})")
        lines += [*wrap(["Headers:", *", ".join(links).split(" ")]), ""]
    same = [row.libtorch for row in topic.rows if row.status == "same"]
    if same:
        lines += [*wrap(["Alike:", *listed(same)]), ""]
    rows = [row for row in topic.rows if row.status in ("other", "differs")]
    if rows:
        lines += [*other_table(table, topic, rows), ""]
    absent = none_list(topic)
    if absent:
        lines += ["Not in Braid:", "", *absent, ""]
    return lines


def tables_text(tables, left_out):
    lines = []
    for table in tables:
        lines += [f"## {table.title}", ""]
        for topic in table.topics:
            lines += topic_lines(table, topic)
        left = [(reason, names) for stem, reason, names in left_out if stem == table.stem]
        if left:
            words = [f"{reason} ({len(names)})" for reason, names in left]
            count = sum(len(names) for _, names in left)
            text = f"Left out of this page, {count} names: {', '.join(words)}."
            lines += [*wrap(text.split(" ")), ""]
    return lines[:-1]


def fill(text, tables, left_out):
    """Returns the page with its generated parts made again."""
    parts = {"counts": counts(tables), "tables": tables_text(tables, left_out)}
    for name, lines in parts.items():
        begin, end = BEGIN.format(name), END.format(name)
        if text.count(begin) != 1 or text.count(end) != 1:
            raise SystemExit(f"from_pytorch.md: expected one '{begin}' and one '{end}'")
        before, rest = text.split(begin)
        after = rest.split(end)[1]
        text = f"{before}{begin}\n\n" + "\n".join(lines) + f"\n\n{end}{after}"
    return text
