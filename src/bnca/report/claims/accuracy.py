"""Claims about Tables 1 and 2: who is more accurate than whom (C1 to C5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bnca.experiments.published import METHODS, TABLES
from bnca.report.cells import cells, is_stand_in
from bnca.report.claims.verdicts import (
    ENOUGH,
    Answer,
    Evidence,
    Judgement,
    Question,
    answers,
    few,
    part,
    points,
    signed,
    tally,
)
from bnca.report.statistics import rank_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bnca.core.arrays import Doubles
    from bnca.report.cells import CellRows

OURS = "BNCA"
RIVALS = METHODS[:-1]
BAYESIAN, POINT = ("BNCA", "BML"), ("NCA", "NCM", "LMNN")

TIE = 0.5
"""Points that a tied method may be behind, if no more is shown."""


def most_accurate(evidence: Evidence) -> Judgement:
    """C1: BNCA is the most accurate in all nine cells of Table 1."""
    known, others = _split(evidence, "table1")
    found = answers([_lead(cell, OURS, RIVALS) for cell in known])
    missing = _missing(evidence, "table1", known)
    lead = [a for a in found if (a.lead or -1) > 0]
    why = (
        f"BNCA has the highest mean in {len(lead)} of {len(found)} cells; its lead on every rival "
        f"is {tally(found)}.{few(found)}"
        if found
        else "No cell of Table 1 has rows."
    )
    return Judgement(
        [part("BNCA leads each of the other five in every cell", found, complete=not missing)],
        why + missing + _elsewhere(others),
        _seeds(known),
        {"highest_mean": len(lead), "cells": len(found), "ranks": _ranks(known)},
    )


def below_plain(evidence: Evidence) -> Judgement:
    """C2: with 10 per class NCA is worse than PCA on Balance and Spambase."""
    wanted = {("Balance", 10), ("Spambase", 10)}
    known = [c for c in _split(evidence, "table1")[0] if c.key in wanted]
    found = answers([_lead(cell, "PCA", ("NCA",)) for cell in known])
    missing = _missing(evidence, "table1", known, wanted)
    why = "PCA's lead on NCA: " + _list(found) + "." + few(found) if found else "No rows."
    return Judgement(
        [part("PCA leads NCA", found, complete=not missing)], why + missing, _seeds(known)
    )


def ahead_of_pairs(evidence: Evidence) -> Judgement:
    """C3: BNCA beats BML in every cell; Bayesian and point methods come together at 30."""
    known, _ = _split(evidence, "table1")
    missing = _missing(evidence, "table1", known)
    beats = answers([_lead(cell, OURS, ("BML",)) for cell in known])
    small, large = ({c.paper: c for c in known if c.size == size} for size in (10, 30))
    gaps = {name: _gaps(small[name], large[name]) for name in small if name in large}
    closing = answers(
        [
            Question(
                str(name),
                {"nothing, at 10 per class": first, "the gap at 30 per class": first - last},
                small[name].overlap,
            )
            for name, (first, last) in gaps.items()
        ]
    )
    means = {
        name: [float(np.nanmean(gap)) for gap in pair]
        for name, pair in gaps.items()
        if all(np.isfinite(gap).any() for gap in pair)
    }
    told = ", ".join(f"{name} {points(a)} to {points(b)}" for name, (a, b) in means.items())
    why = (
        f"BNCA's lead on BML is {tally(beats)}. The mean lead of the Bayesian methods on NCA, NCM "
        f"and LMNN goes, from 10 to 30 per class, {told or 'unknown'} (shown to be positive and "
        f"to shrink on {sum(bool(a.holds) for a in closing)} of {len(closing)}).{few(beats)}"
        if beats
        else "No rows."
    )
    return Judgement(
        [
            part("BNCA leads BML in every cell", beats, complete=not missing),
            part(
                "the Bayesian methods lead the point methods at 10 per class, and less at 30",
                closing,
                complete=not missing,
                gaps={str(name): {"10": a, "30": b} for name, (a, b) in means.items()},
            ),
        ],
        why + missing,
        _seeds(known),
    )


def best_under_noise(evidence: Evidence) -> Judgement:
    """C4: BNCA is best or tied in all twelve cells of Table 2."""
    known, others = _split(evidence, "table2")
    missing = _missing(evidence, "table2", known)
    found = [_best_or_tied(a) for a in answers([_lead(cell, OURS, RIVALS) for cell in known])]
    best = sum((a.lead or -1) >= 0 for a in found)
    tied = sum(bool(a.holds) for a in found if (a.lead or 0) < 0)
    worst = min(found, key=lambda a: a.lead or 0.0, default=None)
    why = "No cell of Table 2 has rows."
    if worst is not None and worst.lead is not None:
        why = (
            f"Of {len(found)} cells BNCA is best in {best}, within {TIE} points of the best in "
            f"{tied}; least on {worst.label}: {signed(worst)} against {worst.over}.{few(found)}"
        )
    return Judgement(
        [part("BNCA is best or tied in every cell", found, complete=not missing)],
        why + missing + _stand_ins(known) + _elsewhere(others),
        _seeds(known),
        {"best": best, "tied": tied, "cells": len(found), "ranks": _ranks(known)},
    )


def most_noise(evidence: Evidence) -> Judgement:
    """C5: at 30 % noise NCA, NCM and LMNN fall below PCA; BNCA leads with p < 0.001."""
    wanted = {key for key in TABLES["table2"] if key[1] == 30}
    known, others = ([c for c in half if c.key[1] == 30] for half in _split(evidence, "table2"))
    missing = _missing(evidence, "table2", known, wanted)
    below = answers(
        [
            _lead(cell, "PCA", (name,))._replace(label=f"{cell.title}, {name}")
            for cell in known
            for name in POINT
        ]
    )
    ahead = answers([_lead(cell, OURS, RIVALS) for cell in known], level=0.001)
    why = (
        f"PCA's lead on the point methods at 30 % noise is {tally(below)}. BNCA's lead on all "
        f"five, at 0.001, is {tally(ahead)}.{few([*below, *ahead])}"
        if known
        else "No rows at 30 % noise."
    )
    return Judgement(
        [
            part("NCA, NCM and LMNN are below PCA", below, complete=not missing),
            part("BNCA leads the second best with p < 0.001", ahead, complete=not missing),
        ],
        why + missing + _stand_ins(known) + _elsewhere(others),
        _seeds(known),
    )


def _split(evidence: Evidence, table: str) -> tuple[list[CellRows], list[CellRows]]:
    """Cells of the paper's sets or their stand-ins, and those of other sets."""
    found = cells(evidence.rows, table)
    of_paper = [cell for cell in found if cell.key in TABLES[table]]
    return of_paper, [cell for cell in found if cell.key not in TABLES[table]]


def _lead(cell: CellRows, name: str, rivals: Sequence[str]) -> Question:
    """Lead of one method on others in points; no leads where one of them has no rows."""
    found = cell.measured("accuracy", (name, *rivals))
    leads: dict[str, Doubles] = {}
    if len(found) == 1 + len(rivals):
        leads = {rival: 100 * (found[name] - found[rival]) for rival in rivals}
    return Question(cell.label, leads, cell.overlap)


def _gaps(small: CellRows, large: CellRows) -> tuple[Doubles, Doubles]:
    """Mean lead of Bayesian over point methods at two sizes, by common repeats, in points."""
    common = [seed for seed in small.seeds if seed in large.seeds]
    out = []
    for cell in (small, large):
        found = cell.measured("accuracy", METHODS)
        if len(found) < len(METHODS):
            return np.full(len(common), np.nan), np.full(len(common), np.nan)
        gap = np.mean([found[m] for m in BAYESIAN], axis=0)
        gap = gap - np.mean([found[m] for m in POINT], axis=0)
        out.append(100 * gap[[cell.seeds.index(seed) for seed in common]])
    return out[0], out[1]


def _best_or_tied(answer: Answer) -> Answer:
    if answer.lead is None or answer.refuted:
        return answer._replace(holds=None if answer.lead is None else False)
    if answer.repeats < ENOUGH:
        return answer._replace(holds=None)
    return answer._replace(holds=answer.lead > -TIE)


def _missing(
    evidence: Evidence,
    table: str,
    known: Sequence[CellRows],
    wanted: set[tuple[str, int]] | None = None,
) -> str:
    """A sentence about cells of the paper that have no rows, or nothing."""
    keys = set(TABLES[table]) if wanted is None else wanted
    absent = keys - {cell.key for cell in known}
    if not absent:
        return ""
    names = ", ".join(sorted({name for name, _ in absent}))
    return f" No rows for {len(absent)} of {len(keys)} cells ({names}): {evidence.reason(table)}"


def _stand_ins(known: Sequence[CellRows]) -> str:
    titles = dict.fromkeys(c.title for c in known if is_stand_in(c.title))
    return f" In place of sets that are not to be had: {', '.join(titles)}." if titles else ""


def _elsewhere(others: Sequence[CellRows]) -> str:
    """A sentence about sets that the paper does not have; they decide nothing."""
    found = answers([_lead(cell, OURS, RIVALS) for cell in others])
    known = [a.lead for a in found if a.lead is not None]
    if not known:
        return ""
    titles = ", ".join(dict.fromkeys(cell.title for cell in others))
    first = sum(lead > 0 for lead in known)
    return f" On sets that are not the paper's ({titles}) it is first in {first} of {len(known)}."


def _ranks(known: Sequence[CellRows]) -> list[dict[str, object]]:
    out = []
    for cell in known:
        found = cell.measured("accuracy", METHODS)
        if OURS in found:
            rank = rank_interval(found, OURS, cell.overlap)
            out.append({"cell": cell.label, **rank._asdict()})
    return out


def _list(found: Sequence[Answer]) -> str:
    return "; ".join(f"{a.label}: {signed(a)}" for a in found if a.lead is not None) or "no rows"


def _seeds(known: Sequence[CellRows]) -> set[int]:
    return {seed for cell in known for seed in cell.seeds}
