"""Pieces that every page is built from: commands, figures, facts, sortable tables, numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from bnca.report.markup import Content, Markup, element, join
from bnca.report.pictures import inline_svg

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NOTHING = "–"
MINUS = "−"


class Column(NamedTuple):
    """One column of a table; `kind` is "text" or "number"."""

    title: str
    unit: str = ""
    kind: str = "number"
    hint: str = ""


class Entry(NamedTuple):
    """One field of a table: what it shows, what it is sorted by, and how it stands in its row.

    `sort` is None where there is nothing: such rows come last in both directions.
    """

    content: Content
    sort: float | str | None
    standing: str = ""


def decimal(value: float | None, digits: int = 1) -> str:
    """A number with a fixed count of decimals and a true minus sign."""
    if value is None:
        return NOTHING
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text.replace("-", MINUS)


def signed(value: float, digits: int = 1) -> str:
    """A difference: with its sign, unless it rounds to nothing."""
    text = decimal(value, digits)
    return text if float(text.replace(MINUS, "-")) <= 0 else f"+{text}"


def significant(value: float, digits: int = 3) -> str:
    """A number with so many digits that matter, never as a power of ten within 1e-4 to 1e6."""
    text = f"{value:.{digits}g}"
    if "e" in text and 1e-4 <= abs(value) < 1e6:
        text = f"{float(text):.0f}"
    return text.replace("-", MINUS)


def anchor(text: str) -> str:
    """An identifier that a link can lead to."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-") or "part"


def unseen(text: str) -> Markup:
    """Words for those who listen to the page."""
    return element("span", text, class_="unseen")


def command(text: str, name: str, lead: str = "Made by") -> Markup:
    """A command to be read, linked to and copied."""
    copy = element(
        "button", "Copy", unseen(" the command"), type="button", class_="copy", data_copy=text
    )
    said = element("span", lead, class_="lead")
    return element(
        "div", said, element("code", text), copy, class_="command", id=f"command-{anchor(name)}"
    )


def scrolling(content: Content, label: str, class_: str = "scroll") -> Markup:
    """A box that scrolls by itself, by keyboard too, where its content is wider."""
    return element("div", content, class_=class_, role="region", aria_label=label, tabindex="0")


def figure(record: Mapping[str, Any], level: int = 3) -> Markup:
    """A figure with its caption and, where it has one of its own, its command."""
    name, title = anchor(str(record["id"])), str(record["title"])
    caption = element("p", record.get("caption") or None)
    made = record.get("command")
    return element(
        "figure",
        element(f"h{level}", title),
        _drawing(record, name),
        element("figcaption", caption, command(str(made), name) if made else None),
        id=name,
        class_="picture",
    )


def _drawing(record: Mapping[str, Any], name: str) -> Markup:
    if not record.get("svg"):
        return element("p", "Not drawn: there are no rows for it.", class_="missing")
    alternative = str(record.get("alt") or record["title"])
    picture = inline_svg(str(record["svg"]), name, alternative)
    return scrolling(picture, f"{record['title']}, picture", "drawing")


def facts(pairs: Mapping[str, Any], class_: str = "facts") -> Markup:
    """Names and what they are."""
    return element(
        "dl",
        *(
            element("div", element("dt", words(key)), element("dd", tree(value)))
            for key, value in pairs.items()
        ),
        class_=class_,
    )


def tree(value: Any) -> Content:
    """Whatever JSON holds, in the plainest form that shows all of it."""
    if isinstance(value, dict):
        if value and all(isinstance(v, dict) and flat(v.values()) for v in value.values()):
            return _small_table([{"": words(key), **v} for key, v in value.items()])
        return facts(value)
    if isinstance(value, list):
        if value and all(isinstance(v, dict) and flat(v.values()) for v in value):
            return _small_table(value)
        if flat(value):
            return ", ".join(str(scalar(v)) for v in value) or NOTHING
        return element("ul", *(element("li", tree(v)) for v in value))
    return scalar(value)


def scalar(value: Any) -> str:
    """A single value as text."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return significant(value, 4) if isinstance(value, float) else str(value)


def flat(values: Any) -> bool:
    """Whether none of the values holds others."""
    return not any(isinstance(v, (dict, list)) for v in values)


def words(key: str) -> str:
    """A key of a dictionary as a person would write it."""
    return str(key).replace("_", " ")


def _small_table(rows: Sequence[Mapping[str, Any]]) -> Markup:
    keys = list(dict.fromkeys(key for row in rows for key in row))
    head = element("tr", *(element("th", words(key), scope="col") for key in keys))
    body = [
        element("tr", *(element("td", scalar(row[k]) if k in row else NOTHING) for k in keys))
        for row in rows
    ]
    table = element("table", element("thead", head), element("tbody", *body), class_="small")
    return scrolling(table, "numbers")


def sortable(
    caption: Content,
    columns: Sequence[Column],
    rows: Sequence[Sequence[Entry]],
    label: str,
    **attributes: str | int | bool | None,
) -> Markup:
    """A table that a click on a column's name sorts; the first column names the rows.

    Without scripts it is a table as good as any.

    Parameters
    ----------
    caption : Content
        What the table says, above it.
    columns : sequence of Column
        Names, left to right.
    rows : sequence of sequence of Entry
        One entry for each column.
    label : str
        Name of the box that scrolls.
    **attributes : str, int, bool or None
        Of the table.

    Returns
    -------
    Markup
        The table within a box that scrolls.
    """
    head = element("tr", *(_header(column) for column in columns))
    body = [
        element(
            "tr", *(_field(e, c, i == 0) for i, (e, c) in enumerate(zip(row, columns, strict=True)))
        )
        for row in rows
    ]
    table = element(
        "table",
        element("caption", element("span", caption)),
        element("thead", head),
        element("tbody", *body),
        **({"class_": "sortable"} | attributes),
    )
    return scrolling(table, label)


def _header(column: Column) -> Markup:
    unit = element("span", column.unit, class_="unit") if column.unit else None
    hint = unseen(f" {column.hint}") if column.hint else None
    button = element(
        "button",
        element("span", column.title, unit, hint),
        element("span", class_="arrow", aria_hidden="true"),
        type="button",
        class_="sort",
    )
    return element("th", button, scope="col", aria_sort="none", data_kind=column.kind)


def _field(entry: Entry, column: Column, names_row: bool) -> Markup:
    sort = "" if entry.sort is None else str(entry.sort)
    kind = f"{column.kind} {entry.standing}".strip()
    if names_row:
        return element("th", entry.content, scope="row", data_sort=sort, class_=kind)
    return element("td", entry.content, data_sort=sort, class_=kind)


def mark(standing: str) -> Markup | None:
    """What shows without colour that a value is the best of its row or column, or tied with it."""
    if standing not in MARKS:
        return None
    sign, said = MARKS[standing]
    return join(element("span", sign, class_="mark", aria_hidden="true"), unseen(f" ({said})"))


MARKS = {"best": ("●", "best"), "tied": ("○", "tied with the best")}


def strip(
    low: float | None,
    mean: float | None,
    high: float | None,
    other: float | None,
    *,
    scale: tuple[float, float],
) -> Markup | None:
    """A value with its interval on a line from one end of `scale` to the other, to be seen only.

    `other` is the published value, drawn as a stroke.
    """
    if mean is None or scale[1] <= scale[0]:
        return None
    places = {"low": low, "mean": mean, "high": high, "paper": other}
    style = ";".join(
        f"--{name}:{100 * (value - scale[0]) / (scale[1] - scale[0]):.1f}%"
        for name, value in places.items()
        if value is not None
    )
    parts = [element("span", class_="at-mean")]
    if low is not None and high is not None:
        parts.insert(0, element("span", class_="span"))
    if other is not None:
        parts.append(element("span", class_="at-paper"))
    return element("span", *parts, class_="strip", style=style, aria_hidden="true")
