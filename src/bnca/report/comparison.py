"""Rows of `bnca compare` as a summary: how each method stands, in numbers and in sentences."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bnca.report.statistics import (
    LEVEL,
    Interval,
    finite,
    holm,
    mean_interval,
    overlap,
    paired_test,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bnca.core.arrays import Doubles
    from bnca.experiments.compare import Row
    from bnca.experiments.plan import Plan


FEWEST = 5
"""Splits that intervals and comparisons need: those of fewer say more about luck than methods."""


class Standing(NamedTuple):
    """One method over all splits.

    Attributes
    ----------
    method : str
        Its name.
    n_splits : int
        Splits that it has a result for.
    accuracy, log_loss : Interval
        Means with their intervals.
    lead : Interval or None
        Accuracy minus that of the reference on the same splits; None for the reference itself.
    calibration_error, fit_seconds, tune_seconds : float
        Means; of times, medians.
    kept_accuracy : (n_shares,)
        Mean accuracy on the most certain predictions, see `bnca.experiments.metrics.KEPT`.
    majority : float
        Mean accuracy of always answering the most frequent class.
    wrong_found, right_doubted : float or None
        Means of those in the rows.
    chosen : str
        The settings that were chosen most often, and how often.
    standing, log_loss_standing : {"best", "tied", ""}
        "tied" is not told apart from the best.
    reason : str
        Why there is no result for some split; nothing where there are all.
    """

    method: str
    n_splits: int
    accuracy: Interval
    log_loss: Interval
    lead: Interval | None
    calibration_error: float
    fit_seconds: float
    tune_seconds: float
    kept_accuracy: Doubles
    majority: float
    wrong_found: float | None
    right_doubted: float | None
    chosen: str
    standing: str
    log_loss_standing: str
    reason: str


def standings(rows: Sequence[Row], plan: Plan, n_rows: int) -> list[Standing]:
    """How each method stands, the most accurate first; those without any result are last.

    Parameters
    ----------
    rows : sequence of Row
        Of `bnca.experiments.compare.run`; the first method of the plan is the reference.
    plan : Plan
        What was done.
    n_rows : int
        Rows of the whole table.

    Returns
    -------
    list of Standing
        One for each method of the plan.
    """
    shared = overlap(plan.n_train, plan.n_test, n_rows)
    found = {(row.method, row.seed): row for row in rows}
    by_method = {
        name: [found[name, seed] for seed in plan.seeds if (name, seed) in found]
        for name in plan.methods
    }
    accuracy = _aligned(by_method, plan, "accuracy")
    log_loss = _aligned(by_method, plan, "log_loss")
    places = _places(accuracy, shared)
    loss_places = _places({name: -x for name, x in log_loss.items()}, shared)
    out = []
    for name, own in by_method.items():
        present = [row for row in own if not row.reason]
        lead = accuracy[name] - accuracy[plan.methods[0]]
        out.append(
            Standing(
                name,
                len(present),
                _clipped(_interval(accuracy[name], shared), 1.0),
                _clipped(_interval(log_loss[name], shared), np.inf),
                None if name == plan.methods[0] else _interval(lead, shared),
                _middle([row.calibration_error for row in present], np.mean),
                _middle([row.fit_seconds for row in present], np.median),
                _middle([row.tune_seconds for row in present], np.median),
                np.mean([row.kept_accuracy for row in present], axis=0) if present else np.empty(0),
                _middle([row.majority for row in own], np.mean),
                _told([row.wrong_found for row in present]),
                _told([row.right_doubted for row in present]),
                _usual([row.chosen for row in present]),
                places[name],
                loss_places[name],
                next((row.reason for row in own if row.reason), ""),
            )
        )
    return sorted(out, key=lambda s: -s.accuracy.mean if s.n_splits else np.inf)


def headline(found: Sequence[Standing], reference: str) -> str:
    """Who is best, by how much, and whether that is more than chance."""
    present = [s for s in found if s.n_splits]
    if not present:
        return "No method gave a result."
    best = present[0]
    said = f"{best.method} is the most accurate: {percent(best.accuracy)}."
    if len(present) == 1:
        return f"{best.method} is right in {percent(best.accuracy)} of test rows."
    if best.accuracy.low is None:
        few = "One split says" if best.n_splits == 1 else f"{best.n_splits} splits say"
        return f"{said} {few} too little about chance: try --repeats 10."
    tied = [s.method for s in present if s.standing == "tied"]
    if len(tied) == len(present) - 1:
        said += f" With {len(present)} methods compared, none is told apart from it."
    elif tied:
        said += f" Not told apart from it: {', '.join(tied)}."
    else:
        said += " Every other method is behind it by more than chance."
    if best.lead is not None and best.lead.low is not None and best.lead.high is not None:
        said += (
            f" It leads {reference} by {100 * best.lead.mean:z.1f} points (95 % interval "
            f"{100 * best.lead.low:.1f} to {100 * best.lead.high:.1f})."
        )
    return said


def remarks(found: Sequence[Standing], plan: Plan) -> list[str]:
    """What a person has to know to read the numbers."""
    out = []
    present = [s for s in found if s.n_splits]
    if present and present[0].accuracy.mean <= present[0].majority + 0.01:
        out.append(
            f"Always answering the most frequent class is right in {100 * present[0].majority:.1f} "
            "% of test rows, and no method does better: these columns hardly tell the classes."
        )
    elif present:
        out.append(
            f"Always answering the most frequent class would be right in "
            f"{100 * present[0].majority:.1f} % of test rows."
        )
    out += [
        f"{s.method} held {100 * s.wrong_found:.0f} % of the labels that were made wrong for "
        f"wrong, and {100 * s.right_doubted:.1f} % of the others."
        for s in present
        if s.wrong_found is not None and s.right_doubted is not None
    ]
    failed = f"of {len(plan.seeds)} splits"
    out += [
        f"{s.method} has no result for {len(plan.seeds) - s.n_splits} {failed}: {s.reason}"
        for s in found
        if s.reason
    ]
    return out


def meaning(plan: Plan, n_rows: int) -> list[str]:
    """What intervals and comparisons mean, where there are some."""
    if len(plan.seeds) < FEWEST:
        return []
    shared = (
        "Intervals and comparisons are for other rows of the same kind: they allow for the rows "
        f"that splits of these {n_rows:,} have in common (Nadeau and Bengio, 2003)."
    )
    several = (
        "Comparisons with the best allow for their number (Holm). A method that is not told apart "
        "from the best may still be worse: more rows would tell."
    )
    return [shared, several]


def percent(interval: Interval) -> str:
    """A share with its interval, as in a sentence."""
    text = f"{100 * interval.mean:.1f} %"
    if interval.low is None or interval.high is None:
        return text
    return f"{text} (95 % interval {100 * interval.low:.1f} to {100 * interval.high:.1f})"


def duration(seconds: float) -> str:
    """A time with two digits that matter, or more, in the unit that suits it."""
    if not np.isfinite(seconds):
        return ""
    if seconds < 5e-5:
        return "0"
    value, unit = (seconds, "s") if seconds >= 1 else (1000 * seconds, "ms")
    return f"{value:.0f} {unit}" if value >= 9.95 else f"{value:.1f} {unit}"


def _aligned(by_method: Mapping[str, Sequence[Row]], plan: Plan, value: str) -> dict[str, Doubles]:
    """One value of each method for each split, nan where there is none."""
    place = {seed: i for i, seed in enumerate(plan.seeds)}
    out = {}
    for name, rows in by_method.items():
        out[name] = np.full(len(place), np.nan)
        for row in rows:
            out[name][place[row.seed]] = getattr(row, value)
    return out


def _places(values: Mapping[str, Doubles], shared: float) -> dict[str, str]:
    """Which method has the highest mean, and which are not told apart from it."""
    means = {name: finite(x).mean() for name, x in values.items() if len(finite(x))}
    out = dict.fromkeys(values, "")
    if not means:
        return out
    best = max(means, key=lambda name: means[name])
    others = [name for name in means if name != best]
    adjusted = holm([paired_test(values[best] - values[name], shared) for name in others])
    enough = len(finite(values[best])) >= FEWEST
    for name, p in zip(others, adjusted, strict=True):
        out[name] = "tied" if enough and p >= LEVEL else ""
    return out | {best: "best"}


def _interval(values: Doubles, shared: float) -> Interval:
    found = mean_interval(values, shared)
    enough = len(finite(values)) >= FEWEST
    return found if enough else Interval(found.mean, None, None)


def _clipped(interval: Interval, most: float) -> Interval:
    """An interval without its part below 0 or above `most`, where nothing can be."""
    if interval.low is None or interval.high is None:
        return interval
    return Interval(interval.mean, max(interval.low, 0.0), min(interval.high, most))


def _middle(values: Sequence[float], how: Any) -> float:
    return float(how(values)) if values else float("nan")


def _told(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _usual(chosen: Sequence[Mapping[str, Any]]) -> str:
    """Settings that were chosen most often, and how often where not always."""
    said = [", ".join(f"{k}={_short(v)}" for k, v in setting.items()) for setting in chosen]
    if not said:
        return ""
    most, count = Counter(said).most_common(1)[0]
    often = f" ({count} of {len(said)} splits)" if count < len(said) else ""
    return most + often if most else "nothing to choose"


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
