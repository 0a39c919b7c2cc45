"""What `bnca compare` prints: words, and a table that fits 80 columns (rich, extra "app")."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from bnca.experiments.labels import listed
from bnca.report.comparison import duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bnca.experiments.plan import Plan
    from bnca.experiments.problem import Problem
    from bnca.report.comparison import Standing
    from bnca.report.statistics import Interval

NAMED_COLUMNS = 12
"""Columns with something to be said that are named; of more it says how many there are."""


def introduction(problem: Problem, plan: Plan) -> list[str]:
    """What is going to be compared on, line by line."""
    counts = Counter(problem.y.tolist())
    sizes = [f"{name} ({counts[code]:,})" for code, name in enumerate(problem.class_names)]
    lines = [
        f"{len(problem.y):,} rows, {len(sizes)} classes: {listed(sizes)}",
        _columns(problem),
        *(
            f"  {column.name}: {'not used, ' if column.kind == 'dropped' else ''}{column.note}"
            for column in _noted(problem)[:NAMED_COLUMNS]
        ),
    ]
    more = len(_noted(problem)) - NAMED_COLUMNS
    if more > 0:
        lines.append(f"  … and {more} more, which the report lists")
    return [*lines, *(f"Note: {note}" for note in problem.notes), task(plan)]


def task(plan: Plan) -> str:
    """What each split is."""
    noise = f", {100 * plan.noise:.0f} % of their labels wrong" if plan.noise else ""
    splits = "1 random split" if len(plan.seeds) == 1 else f"{len(plan.seeds)} random splits"
    return f"{splits}: {plan.n_train:,} training rows{noise}; {plan.n_test:,} test rows"


def methods_table(found: Sequence[Standing], reference: str) -> Any:
    """Return the table of methods, the most accurate first."""
    from rich import box
    from rich.table import Table

    several = any(s.accuracy.low is not None for s in found)
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        caption="±: 95 % confidence interval. tied: not told apart from the best."
        if several
        else None,
        caption_justify="left",
    )
    table.add_column("method", no_wrap=True)
    table.add_column("accuracy, %", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column(f"lead on {reference}", justify="right", no_wrap=True)
    for title in ("log\nloss", "calib.\nerror", "fit", "tuning"):
        table.add_column(title, justify="right", no_wrap=True)
    for s in found:
        style = "bold" if s.standing == "best" else None
        if not s.n_splits:
            table.add_row(s.method, "failed", style=style)
            continue
        table.add_row(
            s.method,
            _mean(s.accuracy, "{:.1f}"),
            s.standing if len(found) > 1 else "",
            "" if s.lead is None else _mean(s.lead, "{:+z.1f}"),
            f"{s.log_loss.mean:.3f}",
            f"{s.calibration_error:.3f}",
            duration(s.fit_seconds),
            duration(s.tune_seconds),
            style=style,
        )
    return table


def _noted(problem: Problem) -> list[Any]:
    """Columns about which more than their kind is to be said, those that are left out first."""
    noted = [
        column
        for column in problem.columns
        if column.note and not (column.kind == "category" and column.note.endswith(" levels"))
    ]
    return sorted(noted, key=lambda column: column.kind != "dropped")


def _columns(problem: Problem) -> str:
    kinds = Counter(column.kind for column in problem.columns)
    words = {
        "number": ("1 number", "{} numbers"),
        "category": ("1 category", "{} categories"),
        "dropped": ("1 not used", "{} not used"),
    }
    said = [
        one if kinds[kind] == 1 else many.format(kinds[kind])
        for kind, (one, many) in words.items()
        if kinds[kind]
    ]
    return f"{len(problem.columns)} columns: {', '.join(said)}"


def _mean(interval: Interval, form: str) -> str:
    text = form.format(100 * interval.mean)
    if interval.low is None or interval.high is None:
        return text
    # Where one end is cut off, at 0 or 100 %, the other one says it.
    half = max(interval.high - interval.mean, interval.mean - interval.low)
    return f"{text} ± {100 * half:.1f}"
