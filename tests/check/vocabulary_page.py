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


def counts(tables):
    """The counts as a table."""
    lines = [
        "| | names | spelled alike | otherwise | not in Braid | lines of C++ | of those compile |",
        "|---|---|---|---|---|---|---|",
    ]
    total = collections.Counter()
    for table in tables:
        names = collections.Counter(vocabulary_table.status_of_names(table).values())
        rows = table.rows()
        there = len(with_line(rows, "same", "differs", "other"))
        compile_now = len(with_line(rows, "same"))
        values = [sum(names.values()), names["same"], names["other"], names["none"]]
        values += [there, compile_now]
        total.update(dict(enumerate(values)))
        link = f"[{table.title}]({anchor(table.title)})"
        lines.append(f"| {link} | " + " | ".join(map(str, values)) + " |")
    lines.append("| all | " + " | ".join(str(total[n]) for n in range(6)) + " |")
    return lines


def notes(tables):
    """What the check prints: the rows of the page's table of counts."""
    for line in counts(tables)[2:]:
        cells = [text.strip() for text in line.strip("|").split("|")]
        title = cells[0].split("]")[0].lstrip("[")
        names, same, other, none, there, now = map(int, cells[1:])
        share = f"{100 * now / there:.1f} %" if there else "–"
        yield (
            f"{title}: {names} names, {same} spelled alike, {other} otherwise, {none} not in"
            f" Braid; {now} of {there} lines of LibTorch compile ({share})"
        )


def note_of(row):
    return f" ({row.note})" if row.note else ""


def topic_lines(table, topic):
    lines = [f"### {topic.title}", ""] if len(table.topics) > 1 else []
    if topic.headers:
        links = []
        for path in topic.headers:
            if not pathlib.Path(path).exists():
                raise SystemExit(f"{table.stem}.tsv: {topic.title}: there is no {path}")
            links.append(f"[{pathlib.PurePath(path).name}](../../{path})")
        lines += [*wrap(["Headers:", *" , ".join(links).replace(" ,", ",").split(" ")]), ""]
    same = [row.libtorch for row in topic.rows if row.status == "same"]
    if same:
        lines += [*wrap(["Alike:", *listed(same)]), ""]
    rows = [row for row in topic.rows if row.status in ("other", "differs")]
    if rows:
        lines += ["| PyTorch | C++ of LibTorch | Braid |", "|---|---|---|"]
        for row in rows:
            left = code(row.libtorch) if row.libtorch else ""
            if row.status == "other":
                right = code(row.braid) + note_of(row)
            else:
                right = f"compiles, but: {row.note}"
            lines.append(f"| {cell(code(row.name))} | {cell(left)} | {cell(right)} |")
        lines.append("")
    reasons = collections.defaultdict(list)
    for row in topic.rows:
        if row.status == "none":
            form = row.libtorch if any(r.name == row.name and r is not row and r.status != "none"
                                       for r in topic.rows) else row.name
            if form not in reasons[row.note]:
                reasons[row.note].append(form)
    if reasons:
        lines += ["Not in Braid:", ""]
        for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
            text = wrap([*(reason + ":").split(" "), *listed(names)], 98)
            lines += [f"- {text[0]}", *(f"  {line}" for line in text[1:])]
        lines.append("")
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
