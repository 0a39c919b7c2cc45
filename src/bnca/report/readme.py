"""The README's table of verdicts, written from a summary: ``python -m bnca.report.readme``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bnca.files import replacing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

START, END = "<!-- verdicts -->", "<!-- end of verdicts -->"
"""What is between these lines is written by the command."""


def verdicts(summary: Mapping[str, Any]) -> str:
    """Markdown of all verdicts, with how they were made."""
    lines = [
        "| Claim | Where | What | Verdict | Parts shown | refuted |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {c['id']} | {c['where']} | {c['short']} | {c['verdict']} | {_shown(c)} |"
        for c in summary["claims"]
    ]
    tables = [table for table in summary["tables"] if table["id"] in {"table1", "table2"}]
    ranks = [row["rank"] for table in tables for row in table["rows"] if row["rank"]]
    first = sum(rank["rank"] == 1 for rank in ranks)
    told = sum(rank["high"] == 1 for rank in ranks)
    said = (
        f"From {summary['rows']} rows of `{summary['command']}`. In {len(ranks)} cells of Tables 1 "
        f"and 2 the published method has the highest mean {first} times, and is shown to be first "
        f"{told} times."
    )
    return "\n".join([*lines, "", said])


def _shown(claim: Mapping[str, Any]) -> str:
    """How many of the cells that a claim speaks of show it, and how many show the opposite."""
    parts = claim["numbers"]["parts"]
    cells = [cell for part in parts for cell in part.get("cells") or [part]]
    shown = sum(cell["holds"] is True for cell in cells)
    refuted = sum(bool(cell.get("refuted", cell["holds"] is False)) for cell in cells)
    return f"{shown} of {len(cells)} | {refuted}"


def filled(text: str, summary: Mapping[str, Any]) -> str:
    """Text with the table between its two marks."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise ValueError(f"The text has no lines {START} and, below it, {END}.")
    return f"{before}{START}\n{verdicts(summary)}\n{END}{after}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table, or say whether it is fresh; return the exit status."""
    parser = argparse.ArgumentParser(description="Write the README's table of verdicts.")
    parser.add_argument("summary", type=Path, help="reproduce.json")
    parser.add_argument("text", type=Path, help="README.md")
    parser.add_argument("--check", action="store_true", help="only say whether it is fresh")
    options = parser.parse_args(arguments)
    old = options.text.read_text(encoding="utf-8")
    try:
        new = filled(old, json.loads(options.summary.read_text(encoding="utf-8")))
    except ValueError as error:
        parser.error(f"{options.text}: {error}")
    if options.check:
        print("fresh" if new == old else "stale: run it without --check")
        return int(new != old)
    with replacing(options.text) as path:
        path.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
