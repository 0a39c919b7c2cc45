"""The summary that the page of `bnca compare` is rendered from, and that is saved as JSON."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bnca.experiments.contenders import MEANINGS
from bnca.experiments.labels import listed
from bnca.experiments.store import provenance
from bnca.report.comparison import duration, headline, meaning, remarks
from bnca.report.pieces import decimal, signed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bnca.displays import ComparisonDisplay
    from bnca.experiments.plan import Plan
    from bnca.experiments.problem import Problem
    from bnca.experiments.suspects import Suspects
    from bnca.report.comparison import Standing
    from bnca.report.statistics import Interval

COLUMNS = (
    ("accuracy", "Accuracy", "%", "high"),
    ("lead", "Lead", "points", "high"),
    ("log_loss", "Log loss", "", "low"),
    ("calibration_error", "Calibration error", "", "low"),
    ("fit", "Fit", "", "low"),
    ("tune", "Tune", "", "low"),
    ("chosen", "Chosen most often", "", None),
)

MOST_SUSPECTS = 50
"""Suspected labels that the page lists; the file lists all."""


def page(
    problem: Problem,
    plan: Plan,
    display: ComparisonDisplay,
    *,
    suspected: Suspects | None,
    command: str,
) -> dict[str, Any]:
    """All that `bnca.report.html.render_compare` needs.

    Parameters
    ----------
    problem : Problem
        Rows and classes.
    plan : Plan
        What was done with them.
    display : ComparisonDisplay
        How each method stands, to be told and drawn.
    suspected : Suspects or None
        Labels of the table that may be wrong, where they were looked for.
    command : str
        What a person types to have it again.

    Returns
    -------
    dict
        As JSON has it.
    """
    made, found = provenance(), display.standings
    machine = ("system", "cores", "cpu")
    reference = plan.methods[0]
    return {
        "title": f"Which method for {problem.title}?",
        "headline": headline(found, reference),
        "command": command,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {k: v for k, v in made.items() if k not in machine},
        "machine": {k: made[k] for k in machine},
        "data": facts(problem, plan),
        "table": {
            "title": "Methods",
            "caption": _caption(found),
            "columns": [
                {"key": key, "title": title, "unit": unit, "better": better}
                for key, title, unit, better in _columns(reference)
            ],
            "rows": [_method(s, found) for s in found],
        },
        "figures": figures(display),
        "notes": [
            *problem.notes,
            *remarks(found, plan),
            *meaning(plan, len(problem.y)),
            *_suspicions(suspected),
            *(f"{name}: {MEANINGS[name]}." for name in plan.methods),
            f"{reference} is what Lead compares with, on the same splits.",
            "Log loss counts a probability below 0.01 as 0.01.",
            "Fit and Tune are median times on one core. Tuning is choosing by cross-validation.",
        ],
    }


def facts(problem: Problem, plan: Plan) -> dict[str, Any]:
    """What was compared on: rows, classes, columns, splits."""
    counts = Counter(problem.y.tolist())
    sizes = [f"{name} ({counts[code]:,})" for code, name in enumerate(problem.class_names)]
    reduced = 0 < plan.components < problem.X.shape[1]
    return {
        "Rows": f"{len(problem.y):,}",
        "Classes": f"{len(sizes)}: {listed(sizes)}",
        "Splits": f"{len(plan.seeds)}, each with {plan.n_train:,} rows to train on and "
        f"{plan.n_test:,} to test on",
        "Wrong labels": f"{100 * plan.noise:.0f} % of the training labels, on purpose"
        if plan.noise
        else "none are added",
        "Preparation": ("each column by its mean and spread" if problem.standardize else "none")
        + (f", then {plan.components} principal components" if reduced else "")
        + "; all that is fitted is fitted on training rows",
        "Columns": columns(problem),
    }


def columns(problem: Problem) -> dict[str, str] | str:
    """What became of each column, or only how many there are where nothing is to be said."""
    kinds = Counter(column.kind for column in problem.columns)
    if len(problem.columns) > 30 and not any(column.note for column in problem.columns):
        return ", ".join(f"{count} {kind}s" for kind, count in kinds.items())
    said = {"dropped": "not used"}
    return {
        column.name: said.get(column.kind, column.kind)
        + (f": {column.note}" if column.note else "")
        for column in problem.columns
    }


def figures(display: ComparisonDisplay) -> list[dict[str, Any]]:
    """The two pictures, each with what it says in words."""
    present = [s for s in display.standings if s.n_splits]
    if not present:
        return []
    told = "; ".join(f"{s.method} {100 * s.accuracy.mean:.1f} %" for s in present)
    half = [f"{s.method} {100 * s.kept_accuracy[10]:.1f} %" for s in present]
    return [
        {
            "id": "accuracy",
            "title": "Accuracy",
            "caption": "Share of test rows that are classified rightly; bars are 95 % confidence "
            "intervals. Methods are compared on the same splits, so bars that overlap do not "
            "show that two methods are equal.",
            "alt": f"Test accuracy of each method: {told}.",
            "svg": display.svg("accuracy"),
        },
        {
            "id": "kept",
            "title": "Knowing when it does not know",
            "caption": "Accuracy on the rest when the predictions that a method is least certain "
            "of are left to a person. A method whose probabilities say which answers to trust "
            "rises to the right.",
            "alt": f"Accuracy on the more certain half of the predictions: {'; '.join(half)}.",
            "svg": display.svg("kept"),
        },
    ]


def _columns(reference: str) -> list[tuple[str, str, str, str | None]]:
    return [
        (key, f"Lead over {reference}" if key == "lead" else title, unit, better)
        for key, title, unit, better in COLUMNS
    ]


def _caption(found: Sequence[Standing]) -> str:
    if any(s.standing == "tied" for s in found):
        return "A hollow mark: not told apart from the best of its column."
    return ""


def _method(s: Standing, found: Sequence[Standing]) -> dict[str, Any]:
    if not s.n_splits:
        return {"label": s.method, "values": {"chosen": {"text": s.reason, "best": False}}}
    values = {
        "accuracy": _interval(s.accuracy, 100, 1) | _standing(s.standing),
        "log_loss": _interval(s.log_loss, 1, 3) | _standing(s.log_loss_standing),
        "calibration_error": _plain(s, found, "calibration_error", decimal(s.calibration_error, 3)),
        "fit": _plain(s, found, "fit_seconds", duration(s.fit_seconds)),
        "tune": {"text": duration(s.tune_seconds), "sort": s.tune_seconds, "best": False},
        "chosen": {"text": s.chosen, "best": False},
    }
    if s.lead is not None:
        values["lead"] = _interval(s.lead, 100, 1, with_sign=True) | {"best": False}
    return {"label": s.method, "values": values}


def _interval(
    interval: Interval,
    factor: float,
    digits: int,
    *,
    with_sign: bool = False,
) -> dict[str, Any]:
    mean, low, high = (None if v is None else factor * v for v in interval)
    write = signed if with_sign else decimal
    text = write(mean or 0.0, digits)
    if low is None or high is None:
        return {"text": text, "sort": mean}
    ends = f"{write(low, digits)} to {write(high, digits)}"
    return {"text": f"{text} ({ends})", "sort": mean, "low": low, "high": high}


def _standing(standing: str) -> dict[str, bool]:
    return {"best": standing == "best", "tied": standing == "tied"}


def _plain(s: Standing, found: Sequence[Standing], name: str, text: str) -> dict[str, Any]:
    """A value of which the least is best."""
    least = min(getattr(other, name) for other in found if other.n_splits)
    return {"text": text, "sort": getattr(s, name), "best": getattr(s, name) == least}


def _suspicions(suspected: Suspects | None) -> list[str]:
    if suspected is None:
        return []
    return [
        suspicion(suspected),
        *(
            f"Row {s.row + 1}: labelled {s.given!r}, more likely {s.likely!r} "
            f"(probability of {s.given!r}: {100 * s.probability:.0f} %)."
            for s in suspected.found[:MOST_SUSPECTS]
        ),
    ]


def suspicion(suspected: Suspects) -> str:
    """How many labels are more likely wrong than right, in a sentence."""
    n, rest = len(suspected.found), "more likely wrong than right, by BayesianNCA() on these rows"
    of = f"of the {suspected.n_rows:,} labels that the table gives"
    if not n:
        return f"None {of} is {rest}."
    return f"{n:,} {of} {'is' if n == 1 else 'are'} {rest}: suspects.csv names the rows."
