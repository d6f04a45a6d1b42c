"""Reads and writes the tables of tests/check/vocabulary/."""

import dataclasses

# the order of the page: file, title, what its names are in C++
TABLES = [
    ("cxx", "C++ forms", ()),
    ("tensor", "torch.Tensor", ("torch::Tensor",)),
    ("torch", "torch", ("torch",)),
    ("functional", "torch.nn.functional", ("torch::nn::functional", "torch")),
    ("nn", "torch.nn", ("torch::nn",)),
    ("optim", "torch.optim", ("torch::optim",)),
    ("data", "torch.utils.data", ("torch::data",)),
]
STATUSES = ("same", "differs", "other", "none")


@dataclasses.dataclass
class Row:
    file: str
    line: int
    name: str  # PyTorch's name
    status: str
    libtorch: str = ""  # the statement in LibTorch's C++; empty if that has none
    braid: str = ""  # the statement in Braid, for status other
    note: str = ""


@dataclasses.dataclass
class Topic:
    title: str
    headers: list
    rows: list


@dataclasses.dataclass
class Table:
    stem: str
    title: str
    spaces: tuple
    topics: list

    def rows(self):
        return [row for topic in self.topics for row in topic.rows]


def check(row):
    """What is wrong with the form of a row, or an empty text."""
    if row.status not in STATUSES:
        return f"expected a status of {', '.join(STATUSES)}, got {row.status!r}"
    if row.status in ("same", "differs") and not row.libtorch:
        return f"expected a line of C++ for {row.status}, got none"
    if (row.status == "other") != bool(row.braid):
        return "expected Braid's line for other, and only there"
    if row.status in ("differs", "none") and not row.note:
        return f"expected a reason for {row.status}, got none"
    return ""


def read(folder):
    tables = []
    for stem, title, spaces in TABLES:
        table = Table(stem, title, spaces, [])
        path = folder / f"{stem}.tsv"
        seen = {}
        for n, line in enumerate(path.read_text().splitlines(), 1):
            cells = line.split("\t")
            if line.startswith("## "):
                table.topics.append(Topic(cells[0][3:], cells[1].split() if cells[1:] else [], []))
                continue
            row = Row(path.name, n, *cells)
            wrong = check(row)
            key = (row.name, row.libtorch, row.braid)
            if not wrong and key in seen:
                wrong = f"expected a new row, got that of line {seen[key]}"
            if wrong:
                raise SystemExit(f"{path}:{n}: {wrong}")
            seen[key] = n
            table.topics[-1].rows.append(row)
        tables.append(table)
    return tables


def write(folder, tables):
    for table in tables:
        lines = []
        for topic in table.topics:
            lines.append("\t".join([f"## {topic.title}", " ".join(topic.headers)]).rstrip("\t"))
            for row in topic.rows:
                cells = (row.name, row.status, row.libtorch, row.braid, row.note)
                lines.append("\t".join(cells).rstrip("\t"))
        (folder / f"{table.stem}.tsv").write_text("\n".join(lines) + "\n")


def left_out(folder):
    """[(table, reason, names)] of the names that are no rows."""
    lines = (folder / "left_out.tsv").read_text().splitlines()
    cells = [line.split("\t") for line in lines]
    return [(stem, reason, names.split()) for stem, reason, names in cells]


def status_of_names(table):
    """{name: same, other or none} of a table's names of PyTorch: same if every line is."""
    statuses = {}
    for row in table.rows():
        statuses.setdefault(row.name, set()).add(row.status)
    return {
        name: "same" if of == {"same"} else "none" if of == {"none"} else "other"
        for name, of in statuses.items()
    }
