"""Tables of methods: the paper's, beside the published numbers, and a person's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bnca.report.markup import Content, Markup, element, join
from bnca.report.pieces import (
    NOTHING,
    Column,
    Entry,
    anchor,
    command,
    decimal,
    mark,
    signed,
    significant,
    sortable,
    strip,
    unseen,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Record = Mapping[str, Any]

# What a row is about, beside its name: key, title, unit, how it is written.
TRAITS: Sequence[tuple[str, str, str, Callable[[Any], str]]] = (
    ("size", "Training rows", "per class", str),
    ("noise", "Wrong labels", "%", lambda share: decimal(100 * share, 0)),
    ("seeds", "Seeds", "", str),
)

PAPER = element("span", class_="stroke", aria_hidden="true")
"""What stands for the paper: beside its number, and on the line of an interval."""


def paper_table(table: Record) -> Markup:
    """One table of the paper: our means and intervals, the published numbers, the differences."""
    name, rows, unit = anchor(str(table["id"])), table["rows"], str(table.get("unit", "%"))
    varying = [t for t in TRAITS if len({row.get(t[0]) for row in rows}) > 1]
    remarks = list(dict.fromkeys(row["remark"] for row in rows if row.get("remark")))
    ranked = next((row["rank"]["method"] for row in rows if row.get("rank")), None)
    columns = [
        Column("Data", kind="text"),
        *(Column(title, trait_unit) for _, title, trait_unit, _ in varying),
        *(Column(method, unit) for method in table["columns"]),
        *([Column(f"Rank of {ranked}")] if ranked else []),
    ]
    body = [
        [
            _row_name(row, remarks, name),
            *(_trait(row.get(key), write) for key, _, _, write in varying),
            *_paper_cells(row, table["columns"], unit, name),
            *([_rank(row.get("rank"), name)] if ranked else []),
        ]
        for row in rows
    ]
    return element(
        "section",
        element("h3", str(table["title"])),
        element("p", table["caption"]) if table.get("caption") else None,
        _constants(rows, varying),
        command(str(table["command"]), name),
        sortable(_legend(rows), columns, body, str(table["title"]), data_command=name),
        _footnotes(remarks, name),
        id=name,
        class_="results",
    )


def _row_name(row: Record, remarks: Sequence[str], name: str) -> Entry:
    note = None
    if row.get("remark"):
        place = remarks.index(row["remark"]) + 1
        link = element("a", unseen("note "), place, href=f"#{name}-note-{place}")
        note = element("sup", link)
    return Entry(join(str(row["label"]), note), str(row["label"]))


def _trait(value: Any, write: Callable[[Any], str]) -> Entry:
    return Entry(NOTHING if value is None else write(value), value)


def _constants(rows: Sequence[Record], varying: Sequence[Any]) -> Markup | None:
    """What is the same in all rows is said once."""
    said = [
        f"{title.lower()}: {write(rows[0][key])}{' ' + unit if unit else ''}"
        for key, title, unit, write in TRAITS
        if rows and (key, title, unit, write) not in varying and rows[0].get(key) is not None
    ]
    return element("p", f"In every row, {'; '.join(said)}.", class_="quiet") if said else None


def _paper_cells(row: Record, methods: Sequence[str], unit: str, name: str) -> list[Entry]:
    cells = [row["cells"].get(method) or {} for method in methods]
    scale = _scale([c.get(key) for c in cells for key in ("low", "mean", "high", "published")])
    return [_paper_cell(cell, unit, name, scale) for cell in cells]


def _paper_cell(cell: Record, unit: str, name: str, scale: tuple[float, float]) -> Entry:
    mean, low, high, published = (cell.get(k) for k in ("mean", "low", "high", "published"))
    standing = "best" if cell.get("best") else "tied" if cell.get("tied") else ""
    if mean is None:
        parts: list[Content] = [element("span", NOTHING), unseen("no result")]
    else:
        value = element("span", _link(_write(mean, unit), name), mark(standing), class_="value")
        parts = [value]
    if low is not None and high is not None:
        interval = join(_write(low, unit), unseen(" to "), _dash(), _write(high, unit))
        parts.append(element("span", interval, class_="interval"))
    parts.append(strip(low, mean, high, published, scale=scale))
    if published is not None:
        difference = cell.get("difference")
        by = None if difference is None else _difference(difference, unit)
        paper = join(PAPER, unseen("paper "), _write(published, unit, 2), by)
        parts.append(element("span", paper, class_="published"))
    return Entry(join(*parts), mean, standing)


def _difference(value: float, unit: str) -> Markup:
    text = signed(value) if unit == "%" else f"{'+' * (value > 0)}{significant(value)}"
    return join(" ", element("span", unseen("difference "), text, class_="difference"))


def _rank(rank: Record | None, name: str) -> Entry:
    if not rank or rank.get("rank") is None:
        return Entry(NOTHING, None)
    parts = [element("span", _link(significant(rank["rank"], 2), name), class_="value")]
    if rank.get("low") is not None and rank.get("high") is not None:
        low, high = significant(rank["low"], 2), significant(rank["high"], 2)
        interval = join(low, unseen(" to "), _dash(), high)
        parts.append(element("span", interval, class_="interval"))
    return Entry(join(*parts), rank["rank"])


def _link(text: str, name: str) -> Markup:
    """A number that leads to its command; not a stop of the tab key, as there are hundreds."""
    return element("a", text, href=f"#command-{name}", class_="number", tabindex="-1")


def _dash() -> Markup:
    return element("span", "–", aria_hidden="true")


def _write(value: float, unit: str, digits: int = 1) -> str:
    return decimal(value, digits) if unit == "%" else significant(value)


def _scale(values: Sequence[float | None]) -> tuple[float, float]:
    known = [v for v in values if v is not None]
    return (min(known), max(known)) if known else (0.0, 0.0)


def _legend(rows: Sequence[Record]) -> Markup:
    cells = [cell for row in rows for cell in row["cells"].values() if cell]
    said = [join(mark("best"), " best of its row")]
    if any(cell.get("tied") for cell in cells):
        said.append(join(mark("tied"), " not told apart from the best"))
    if any(cell.get("low") is not None for cell in cells):
        said.append(join("below a mean: its 95 % confidence interval"))
    if any(cell.get("published") is not None for cell in cells):
        said.append(join(PAPER, " the published number, and by how much ours differs"))
    return join(*said, by=" · ")


def _footnotes(remarks: Sequence[str], name: str) -> Markup | None:
    items = [element("li", r, id=f"{name}-note-{i + 1}") for i, r in enumerate(remarks)]
    return element("ol", *items, class_="notes") if items else None


def methods_table(table: Record, name: str, made: str) -> Markup:
    """A row for each method, a column for each thing that was measured."""
    columns = table["columns"]
    scales = {
        c["key"]: _scale(
            [(row["values"].get(c["key"]) or {}).get(k) for row in table["rows"] for k in SPAN]
        )
        for c in columns
    }
    body = [
        [
            Entry(str(row["label"]), str(row["label"])),
            *(_value(row["values"].get(c["key"]), scales[c["key"]], name) for c in columns),
        ]
        for row in table["rows"]
    ]
    return join(
        element("p", table["caption"]) if table.get("caption") else None,
        command(made, name),
        sortable(
            join(mark("best"), " best of its column"),
            [Column("Method", kind="text"), *(_column(c, table["rows"]) for c in columns)],
            body,
            str(table.get("title") or "Methods"),
            data_command=name,
            class_="sortable methods",
        ),
    )


SPAN = ("low", "sort", "high")
BETTER = {"high": "higher is better", "low": "lower is better"}


def _column(column: Record, rows: Sequence[Record]) -> Column:
    values = [(row["values"].get(column["key"]) or {}).get("sort") for row in rows]
    kind = "number" if any(isinstance(v, (int, float)) for v in values) else "text"
    hint = BETTER.get(str(column.get("better")), "")
    title = str(column.get("title") or words(column["key"]))
    return Column(title, str(column.get("unit") or ""), kind, hint)


def _value(value: Record | None, scale: tuple[float, float], name: str) -> Entry:
    if not value:
        return Entry(NOTHING, None)
    standing = "best" if value.get("best") else "tied" if value.get("tied") else ""
    text, sort = str(value["text"]), value.get("sort")
    if not isinstance(sort, (int, float)):
        return Entry(element("span", text, class_="words"), text if sort is None else sort)
    line = None
    if value.get("low") is not None:
        line = strip(value["low"], sort, value.get("high"), None, scale=scale)
    shown = element("span", _link(text, name), mark(standing), class_="value")
    return Entry(join(shown, line), sort, standing)
