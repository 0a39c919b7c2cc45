"""Claim about retrieval: distances with a variance, and what ranking by both is worth (C14)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bnca.report.claims.series import all_seeds, series
from bnca.report.claims.verdicts import (
    Evidence,
    Judgement,
    Part,
    Question,
    answers,
    few,
    part,
    signed,
    tally,
)

if TYPE_CHECKING:
    from bnca.core.arrays import Doubles
    from bnca.report.claims.series import Series

JUDGED_AT = 10
"""k of mAP@k that decides."""


def ranking(evidence: Evidence) -> Judgement:
    """C14: ranking by mean and standard deviation finds more than ranking by the mean."""
    found = series(evidence, "retrieval", kind="ranking")
    kept = series(evidence, "retrieval", kind="kept")
    if not found:
        return Judgement([Part("retrieval", None, {})], evidence.reason("retrieval"))
    better = answers([Question(s.title, {"the mean alone": _gain(s)}, s.overlap) for s in found])
    surer = answers([Question(s.title, {"distance alone": _surer(s)}, s.overlap) for s in kept])
    learned = answers(
        [
            Question(s.title, {"equal weights": _gain(s, "equal weights", "mean")}, s.overlap)
            for s in found
        ]
    )
    multiples = "; ".join(
        f"{s.title} {np.nanmedian(s.of('multiple', ranking='mean and std', k=JUDGED_AT)):g}"
        for s in found
    )
    sets = "; ".join(f"{a.label} {signed(a, '', 2)}" for a in better if a.lead is not None)
    why = (
        f"mAP@{JUDGED_AT} in points, mean and multiple of the standard deviation against the mean "
        f"alone: {sets}; median multiple {multiples}. Dropping the least certain queries by both "
        f"against by distance alone, mean accuracy of what is kept: {tally(surer, digits=2)}. The "
        f"learned mean against equal weights: {tally(learned, digits=2)}.{few(better)}"
    )
    parts = [
        part(f"ranking by both has a higher mAP@{JUDGED_AT}", better),
        part("certainty by both keeps more of the right answers", surer),
    ]
    return Judgement(parts, why, all_seeds(found))


def _gain(one: Series, less: str = "mean", more: str = "mean and std") -> Doubles:
    high, low = (one.of("map", ranking=name, k=JUDGED_AT) for name in (more, less))
    return 100 * (high - low)


def _surer(one: Series) -> Doubles:
    """Mean accuracy over all shares kept, by both less by distance alone, in points."""
    means = [
        np.mean([one.of("accuracy", certainty=name, kept=k) for k in one.entries("kept")], axis=0)
        for name in ("both", "distance")
    ]
    return 100 * np.asarray(means[0] - means[1])
