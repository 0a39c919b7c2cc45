"""Claims about what learning does: rescaled axes, overfitting, the prior (C7, C10, C11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bnca.report.claims.series import all_seeds, best_of_others, series
from bnca.report.claims.verdicts import (
    Evidence,
    Judgement,
    Part,
    Question,
    answers,
    few,
    part,
    tally,
)

if TYPE_CHECKING:
    from bnca.core.arrays import Doubles
    from bnca.report.claims.series import Series

SETTLED = 10
"""Steps after which accuracy has to stay as it is, if a few iterations are enough."""

MARGIN = 1.0
"""Points by which accuracy may differ and still be called the same."""

HELPS = range(-4, 1)
"""log10 sigma for which the prior is said to help."""

FLAT = 4
"""log10 sigma of a prior that says nothing."""


def closer(evidence: Evidence) -> Judgement:
    """C7: on the rescaled axes same-class neighbours come closer than others."""
    found = series(evidence, "figure1", kind="ratio")
    if not found:
        return Judgement([Part("closer", None, {})], evidence.reason("figure1"))
    parts, told = [], []
    for where, rows in (("train", "training"), ("test", "test")):
        asked = answers(
            [
                Question(
                    s.title,
                    {"before": _shrinkage(s, where)},
                    s.train_overlap if where == "train" else s.overlap,
                )
                for s in found
            ]
        )
        name = f"same-class neighbours come closer than others, for {rows} rows"
        parts.append(part(name, asked))
        told.append(f"For {rows} rows: {tally(asked, ' %')}.{few(asked)}")
    why = (
        "Measured by the mean distance to same-class neighbours over that to the others, by how "
        f"much it falls. {' '.join(told)}"
    )
    return Judgement(parts, why, all_seeds(found))


def _shrinkage(one: Series, where: str) -> Doubles:
    """By how many per cent the ratio of distances falls."""
    before, after = (one.of(f"ratio_{when}", where=where) for when in ("before", "after"))
    return 100 * (1 - after / before)


def overfitting(evidence: Evidence) -> Judgement:
    """C10: NCA's training error falls while its test error rises; BNCA settles, does not."""
    found = series(evidence, "figure6", kind="curve")
    if not found:
        return Judgement([Part("overfitting", None, {})], evidence.reason("figure6"))

    def ask(name: str, leads: dict[str, Doubles], more: str) -> Part:
        asked = answers([Question(s.title, {more: leads[s.title]}, s.overlap) for s in found])
        told.append(f"{name}: {tally(asked)}.{few(asked)}")
        return part(name, asked)

    told: list[str] = []
    parts = [
        ask(
            "NCA's accuracy on training labels rises from its best step on",
            {s.title: _from_peak(s, "NCA", "train_accuracy") for s in found},
            "the best step for the test",
        ),
        ask(
            "NCA's accuracy on the test falls from its best step on",
            {s.title: -_from_peak(s, "NCA", "test_accuracy") for s in found},
            "the last step",
        ),
        ask(
            f"BNCA is within {MARGIN:g} point of its end after {SETTLED} steps",
            {s.title: MARGIN - np.abs(_after(s, SETTLED)) for s in found},
            f"{MARGIN:g} point",
        ),
        ask(
            f"BNCA loses less than {MARGIN:g} point on the test from its best step on",
            {s.title: MARGIN + _from_peak(s, "BNCA", "test_accuracy") for s in found},
            f"a loss of {MARGIN:g} point",
        ),
    ]
    return Judgement(parts, f"At 30 % noise. {' '.join(told)}", all_seeds(found))


def _curve(one: Series, method: str, value: str) -> Doubles:
    """Accuracy in points, (repeats, steps)."""
    steps = one.entries("step")
    return 100 * np.stack([one.of(value, method=method, step=step) for step in steps], axis=1)


def _from_peak(one: Series, method: str, value: str) -> Doubles:
    """What is gained from the best step for the test, as the other repeats have it, to the last."""
    test, wanted = _curve(one, method, "test_accuracy"), _curve(one, method, value)
    others = (test.sum(axis=0) - test) / max(len(test) - 1, 1)
    return np.asarray(wanted[:, -1] - wanted[np.arange(len(test)), others.argmax(axis=1)])


def _after(one: Series, step: int) -> Doubles:
    """Test accuracy at the end less that at a step, for BNCA."""
    last = one.entries("step")[-1]
    end, then = (one.of("test_accuracy", method="BNCA", step=s) for s in (last, step))
    return 100 * (end - then)


def prior_width(evidence: Evidence) -> Judgement:
    """C11: the prior helps for sigma from 1e-4 to 1, and no more above."""
    found = series(evidence, "figure7", kind="sweep")
    if not found:
        return Judgement([Part("prior", None, {})], evidence.reason("figure7"))
    asked = [
        (f"{one.title}, {100 * noise:.0f} % noise", one, noise)
        for one in found
        for noise in one.entries("noise")
    ]
    parts, told = [], []
    for scale, said in (("raw", "m0 = 0.1 as published"), ("data", "a prior in units of the data")):
        helps = answers(
            [
                Question(
                    label,
                    {
                        f"the flat prior, at 1e{power}": _gain(one, noise, scale, power)
                        for power in HELPS
                    },
                    one.overlap,
                )
                for label, one, noise in asked
            ]
        )
        best = answers(
            [
                Question(label, {"the flat prior": _best_gain(one, noise, scale)}, one.overlap)
                for label, one, noise in asked
            ]
        )
        stops = answers(
            [
                Question(label, {"the mean above 1": _falls(one, noise, scale)}, one.overlap)
                for label, one, noise in asked
            ]
        )
        if scale == "raw":  # the paper's own; the other is told beside it
            parts = [
                part("every sigma from 1e-4 to 1 is better than 1e4", helps),
                part("sigma up to 1 is better than above, on average", stops),
            ]
        told.append(
            f"With {said}: every sigma up to 1 against 1e4, {tally(helps)}; the best of them, "
            f"{tally(best)}; their mean against that above 1, {tally(stops)}.{few(helps)}"
        )
    return Judgement(parts, " ".join(told), all_seeds(found))


def _accuracy(one: Series, noise: float, scale: str, power: int) -> Doubles:
    return 100 * one.of("accuracy", noise=noise, scale=scale, log10_sigma=power)


def _gain(one: Series, noise: float, scale: str, power: int) -> Doubles:
    return _accuracy(one, noise, scale, power) - _accuracy(one, noise, scale, FLAT)


def _best_gain(one: Series, noise: float, scale: str) -> Doubles:
    return best_of_others(np.stack([_gain(one, noise, scale, p) for p in HELPS], axis=1))


def _falls(one: Series, noise: float, scale: str) -> Doubles:
    above = [_accuracy(one, noise, scale, power) for power in range(1, FLAT + 1)]
    within = [_accuracy(one, noise, scale, power) for power in HELPS]
    return np.asarray(np.mean(within, axis=0) - np.mean(above, axis=0))
