"""Claims about digits that are easy and digits that are not (C8, C9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bnca.experiments.published import PRECISION_GAIN
from bnca.report.claims.series import all_seeds, series
from bnca.report.claims.verdicts import (
    Answer,
    Evidence,
    Judgement,
    Part,
    Question,
    answers,
    few,
    part,
    signed,
)
from bnca.report.statistics import mean_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bnca.core.arrays import Doubles
    from bnca.report.claims.series import Series

END = "NCA, to the end"
METHODS = ("NCA", END, "BNCA", "BNCA+")
GROUPS = ("normal", "difficult")

SAME_DIGITS = (
    " The difficult digits are nearly the same in all repeats: intervals speak of other training "
    "rows, less of other difficult digits."
)


def peaks(evidence: Evidence) -> Judgement:
    """C8: both are sharp on normal digits; on difficult ones NCA stays so, and BNCA spreads.

    The paper's NCA is not stopped early, so it is judged as it is at the end.
    """
    found = series(evidence, "figure5", kind="summary")
    if not found:
        return Judgement([Part("sharp peaks", None, {})], evidence.reason("figure5"))

    def all_of(name: str, leads: Any) -> Part:
        asked = answers([Question(one.title, leads(one), one.overlap) for one in found])
        known.extend(asked)
        return part(name, asked)

    known: list[Answer] = []
    parts = [
        all_of(
            "on normal digits both give more than half their predictions over 0.99",
            lambda one: {
                f"one half, {m}": 100 * (_of(one, "sharp", m, "normal") - 0.5)
                for m in (END, "BNCA")
            },
        ),
        all_of(
            "on difficult digits NCA gives more than half its wrong answers over 0.99",
            lambda one: {"one half": 100 * (_sure_when_wrong(one, END) - 0.5)},
        ),
        all_of(
            "on difficult digits BNCA is less often wrong with over 0.99 than NCA",
            lambda one: {"BNCA": 100 * _gap(one, "sharp_wrong", END, "BNCA")},
        ),
        all_of(
            "on difficult digits BNCA keeps the truth among its candidates more often than NCA",
            lambda one: {END: 100 * _gap(one, "truth_kept", "BNCA", END)},
        ),
    ]
    one = found[0]
    names = [m for m in METHODS if np.isfinite(_of(one, "sharp", m, "normal")).any()]
    told = "; ".join(
        f"{m} {_percent(one, 'sharp', m, 'normal')} normal, "
        f"{_percent(one, 'sharp', m, 'difficult')} difficult, wrong among these "
        f"{_percent(one, 'sharp_wrong', m, 'difficult')}, truth over 0.01 in "
        f"{_percent(one, 'truth_kept', m, 'difficult')}"
        for m in names
    )
    why = f"{one.title}, predictions of over 0.99: {told} of difficult digits."
    why += few(known) + SAME_DIGITS
    return Judgement(parts, why, all_seeds(found), {"means": _means(found)})


def precision(evidence: Evidence) -> Judgement:
    """C9: modified MAP, BNCA about 1 point above NCA on normal digits, more than 5 on difficult."""
    found = series(evidence, "figure5", kind="summary")
    if not found:
        return Judgement([Part("modified MAP", None, {})], evidence.reason("figure5"))
    parts, told = [], []
    for group, gain in PRECISION_GAIN.items():
        threshold = gain if group == "difficult" else 0.0
        over = f"NCA by {gain:g} points" if threshold else "NCA"
        asked = answers(
            [
                Question(
                    one.title,
                    {over: 100 * _gap(one, "modified_map", "BNCA", "NCA", group) - threshold},
                    one.overlap,
                )
                for one in found
            ]
        )
        name = f"BNCA leads {over} on {group} digits"
        parts.append(part(name, asked))
        told += [
            f"{one.title}, {group}: {_interval(one, group, 'NCA')} (the paper: {gain:g}); over an "
            f"NCA run to the end {_interval(one, group, END)}."
            for one in found
        ]
        told[-1] += few(asked)
    why = f"BNCA's lead over NCA in modified MAP. {' '.join(told)}{SAME_DIGITS}"
    return Judgement(parts, why, all_seeds(found), {"means": _means(found)})


def _of(one: Series, value: str, method: str, group: str) -> Doubles:
    return one.of(value, method=method, group=group)


def _gap(one: Series, value: str, more: str, less: str, group: str = "difficult") -> Doubles:
    return _of(one, value, more, group) - _of(one, value, less, group)


def _sure_when_wrong(one: Series, method: str) -> Doubles:
    wrong = _of(one, "wrong", method, "difficult")
    sharp = _of(one, "sharp_wrong", method, "difficult")
    return np.divide(sharp, wrong, out=np.full_like(wrong, np.nan), where=wrong > 0)


def _percent(one: Series, value: str, method: str, group: str) -> str:
    return f"{100 * np.nanmean(_of(one, value, method, group)):.0f} %"


def _interval(one: Series, group: str, rival: str) -> str:
    lead = answers(
        [Question("", {rival: 100 * _gap(one, "modified_map", "BNCA", rival, group)}, one.overlap)]
    )[0]
    return signed(lead) if lead.lead is not None else "no rows"


def _means(found: Sequence[Series]) -> list[dict[str, Any]]:
    """Means of what is claimed, for each set, group and method."""
    values = ("modified_map", "accuracy", "mean_top", "sharp", "sharp_wrong", "truth_kept")
    return [
        {
            "set": one.title,
            "group": group,
            "method": method,
            **{v: mean_interval(_of(one, v, method, group)).mean for v in values},
        }
        for one in found
        for group in GROUPS
        for method in METHODS
        if np.isfinite(_of(one, "accuracy", method, group)).any()
    ]
