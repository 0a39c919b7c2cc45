"""Summaries as pages: one file each, whole in itself, that opens with no network."""

from __future__ import annotations

import base64
import hashlib
from datetime import datetime
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from bnca.files import replacing
from bnca.report.cards import card, overview
from bnca.report.markup import Content, Markup, element
from bnca.report.pieces import command, facts, figure, tree
from bnca.report.tables import methods_table, paper_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    Record = Mapping[str, Any]

QUICK = (
    "A quick run: small data sets that come with scikit-learn, and few repeats. "
    "Its verdicts are about those, not about the paper's tables."
)

NO_FIGURE = element("p", "No figure was drawn.", class_="missing")


def render(summary: Record) -> str:
    """The page of `bnca reproduce`: verdicts, tables, figures, what was skipped, how it was made.

    Parameters
    ----------
    summary : mapping
        What `bnca.report.summarize.summarize` returns, with figures drawn.

    Returns
    -------
    str
        HTML, all in one.
    """
    claims, tables = summary.get("claims") or [], summary.get("tables") or []
    seen, unseen_ = _drawn(summary.get("figures") or [])
    return _page(
        summary,
        _intro(summary, element("p", QUICK, class_="warning") if summary.get("quick") else None),
        [
            _section("verdicts", "Verdicts", overview(claims), *map(card, claims)),
            _section("tables", "Tables", _views(tables), *map(paper_table, tables)),
            _section(
                "figures",
                "Figures",
                *(map(figure, seen) if seen else [NO_FIGURE]),
                _undrawn(unseen_),
            ),
            _section("skipped", "Skipped", _skipped(summary.get("skipped") or [])),
            _section("making", "How this was made", *_making(summary)),
        ],
    )


def render_compare(summary: Record) -> str:
    """The page of `bnca compare`: who is best, the table of methods, figures, data, notes.

    Parameters
    ----------
    summary : mapping
        With "title", "headline", "command", "made", "versions", "machine", "data", "table",
        "figures" and "notes".

    Returns
    -------
    str
        HTML, all in one.
    """
    notes = [element("li", str(note)) for note in summary.get("notes") or []]
    seen, unseen_ = _drawn(summary.get("figures") or [])
    table = methods_table(summary["table"], "methods", str(summary["command"]))
    return _page(
        summary,
        _intro(summary, element("p", str(summary["headline"]), class_="headline")),
        [
            _section("methods", str(summary["table"].get("title") or "Methods"), table),
            _section("figures", "Figures", *map(figure, seen), _undrawn(unseen_)),
            _section("data", "Data", facts(summary.get("data") or {})),
            _section("notes", "Notes", element("ul", *notes)) if notes else None,
            _section("making", "How this was made", *_making(summary)),
        ],
    )


def write(summary: Record, path: Path) -> None:
    """Write the page of `bnca reproduce`; an old file is replaced only by a whole new one."""
    _save(render(summary), path)


def write_compare(summary: Record, path: Path) -> None:
    """Write the page of `bnca compare`; an old file is replaced only by a whole new one."""
    _save(render_compare(summary), path)


def _save(page: str, path: Path) -> None:
    with replacing(path) as new:
        new.write_text(page, encoding="utf-8", newline="\n")


def _page(
    summary: Record, intro: Markup, sections: Sequence[tuple[str, str, Markup] | None]
) -> str:
    css, js = _data("page.css"), _data("page.js")
    shown = [section for section in sections if section]
    links = [element("li", element("a", title, href=f"#{name}")) for name, title, _ in shown]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(js)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", str(summary["title"])),
        element("style", Markup(css)),
    )
    body = element(
        "body",
        element("a", "Skip to the results", href="#results", class_="skip"),
        element(
            "nav",
            element("ul", *links),
            element("button", "Theme: auto", type="button", id="theme"),
            aria_label="Parts of this page",
        ),
        element("main", intro, *(part for _, _, part in shown), id="results"),
        _provenance(),
        element("p", id="status", class_="unseen", role="status"),
        element("script", Markup(js)),
    )
    html = element("html", head, body, lang="en", class_="without-scripts")
    return f"<!DOCTYPE html>\n{html}\n"


def _policy(script: str) -> str:
    """Nothing is fetched, and no script runs but the page's own, whatever a label may hold."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _intro(summary: Record, extra: Content) -> Markup:
    return element(
        "header",
        element("h1", str(summary["title"])),
        extra,
        command(str(summary["command"]), "page", "Made by"),
        element("p", "Made on ", _time(str(summary["made"])), ".", class_="quiet")
        if summary["made"]
        else None,
        class_="intro",
    )


def _time(text: str) -> Markup:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return element("time", text)
    zone = moment.tzname() or ""
    return element("time", f"{moment.day} {moment:%B %Y, %H:%M} {zone}".strip(), datetime=text)


def _section(name: str, title: str, *content: Content) -> tuple[str, str, Markup]:
    heading = element("h2", title, id=f"{name}-title")
    part = element(
        "section", heading, *content, id=name, class_="part", aria_labelledby=f"{name}-title"
    )
    return name, title, part


def _views(tables: Sequence[Record]) -> Markup:
    if not tables:
        return element("p", "No table was run.", class_="missing")
    boxes = [
        element(
            "label",
            element("input", type="checkbox", checked=True, data_shows=name),
            f" {said}",
        )
        for name, said in (("intervals", "intervals"), ("published", "published numbers"))
    ]
    legend = element("legend", "Show in tables")
    return element("fieldset", legend, *boxes, class_="views")


def _drawn(figures: Sequence[Record]) -> tuple[list[Record], list[Record]]:
    return [f for f in figures if f.get("svg")], [f for f in figures if not f.get("svg")]


def _undrawn(figures: Sequence[Record]) -> Markup | None:
    names = [element("li", str(f["title"]), id=str(f["id"])) for f in figures]
    said = element("p", "Not drawn, as there are no rows for them:")
    return element("div", said, element("ul", *names), class_="missing") if names else None


def _skipped(skipped: Sequence[Record]) -> Markup:
    if not skipped:
        return element("p", "Nothing: every experiment that was asked for ran.")
    rows = [
        element("div", element("dt", str(s["experiment"])), element("dd", str(s["reason"])))
        for s in skipped
    ]
    return element("dl", *rows, class_="facts")


def _making(summary: Record) -> list[Content]:
    parts: list[Content] = [
        element("p", "Every number on this page was computed by these commands, none was typed."),
        command(str(summary["command"]), "all", "The whole page"),
    ]
    for key in ("versions", "code versions", "machine"):
        if summary.get(key):
            parts += [element("h3", key.capitalize()), facts(summary[key])]
    if summary.get("references"):
        parts += [element("h3", "References"), _references(summary["references"])]
    return parts


def _references(references: Any) -> Content:
    if isinstance(references, (str, dict)):
        return tree(references)
    return element("ul", *(element("li", tree(reference)) for reference in references))


def _provenance() -> Markup:
    """What a click on a number opens; the script fills it."""
    return element(
        "dialog",
        element("h2", "Where this number is from", id="provenance-title"),
        element("div", class_="said"),
        element("div", class_="made"),
        element("button", "Close", type="button", class_="close"),
        id="provenance",
        aria_labelledby="provenance-title",
    )


def _data(name: str) -> str:
    return files("bnca.report").joinpath(name).read_text(encoding="utf-8")
