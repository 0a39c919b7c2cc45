"""Claims about work: seconds to fit, steps, and what adds to the curvature (C6, C12, C13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bnca.experiments.figures.curvature import NONE, SAME_AXES, SAME_DISTANCE
from bnca.experiments.published import FASTER, TABLES
from bnca.report.cells import cells, is_stand_in
from bnca.report.claims.series import all_seeds, series
from bnca.report.claims.verdicts import (
    Evidence,
    Judgement,
    Part,
    Question,
    answers,
    few,
    part,
)
from bnca.report.statistics import mean_interval, ratio_interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bnca.core.arrays import Doubles
    from bnca.report.cells import CellRows
    from bnca.report.claims.series import Series

SECONDS = "fit_cpu_seconds"
RIVALS = ("NCA", "NCM", "LMNN", "BML")

FEW_STEPS = 10
"""What counts as "a few iterations"; the paper does not say."""

EXACT = 1e-9
"""Below this share a difference is rounding."""


def fastest(evidence: Evidence) -> Judgement:
    """C6: BNCA trains fastest, by 61.2 % on NCA and 41.0 % on BML."""
    found = cells(evidence.rows, "table3")
    known = [c for c in found if c.key in TABLES["table3"]] or found
    timed = [(cell, cell.measured(SECONDS, ("BNCA", *RIVALS))) for cell in known]
    timed = [(cell, times) for cell, times in timed if len(times) == 1 + len(RIVALS)]
    if not timed:
        return Judgement(_unknown("BNCA is the fastest"), evidence.reason("table3"))
    first = answers(
        [
            Question(cell.label, {rival: _longer(times, rival) for rival in RIVALS})
            for cell, times in timed
        ]
    )
    parts = [part("BNCA takes less time than each of the others", first, share=_shares(timed))]
    told = [f"BNCA is fastest on {sum(bool(a.holds) for a in first)} of {len(first)} sets."]
    for rival, percent in FASTER.items():
        longer = _by_repeat([_longer(times, rival) for _, times in timed])
        asked = Question("all sets", {f"{percent} %": longer - np.log1p(percent / 100)})
        parts.append(part(f"{percent} % faster than {rival} on average", answers([asked])))
        mean, low, high = (x and 100 * np.expm1(x) for x in mean_interval(longer))
        within = "" if low is None else f" [{low:.0f}, {high:.0f}]"
        told.append(
            f"It is {mean:.0f} %{within} faster than {rival} on average over sets; the paper says "
            f"{percent} %, and its own table {_own_speed(rival)}."
        )
    names = ", ".join(dict.fromkeys(c.title for c, _ in timed if is_stand_in(c.title)))
    stand_ins = f" In place of sets that are not to be had: {names}." if names else ""
    return Judgement(parts, " ".join(told) + stand_ins + few(first), _cell_seeds(known))


def _longer(times: Mapping[str, Doubles], rival: str) -> Doubles:
    """Logarithm of how many times longer a rival takes."""
    return np.asarray(np.log(times[rival] / times["BNCA"]))


def _by_repeat(found: Sequence[Doubles]) -> Doubles:
    least = min(len(x) for x in found)
    return np.asarray(np.mean([x[:least] for x in found], axis=0))


def _shares(timed: Sequence[tuple[CellRows, Mapping[str, Doubles]]]) -> list[dict[str, Any]]:
    """BNCA's time as a share of each rival's, with its interval."""
    return [
        {
            "set": cell.label,
            "over": rival,
            **ratio_interval(times["BNCA"], times[rival])._asdict(),
        }
        for cell, times in timed
        for rival in RIVALS
    ]


def _own_speed(rival: str) -> str:
    """By how much the published table says that BNCA is faster, in words."""
    found = [100 * (row[rival].mean / row["BNCA"].mean - 1) for row in TABLES["table3"].values()]
    return f"{min(found):.0f} to {max(found):.0f} %"


def _cell_seeds(known: Sequence[CellRows]) -> set[int]:
    return {seed for cell in known for seed in cell.seeds}


def _unknown(claim: str) -> list[Part]:
    return [Part(claim, None, {})]


def contrasts(evidence: Evidence) -> Judgement:
    """C12: only contrasts with same-class neighbours count; some anchors add nothing."""
    diagonal = series(evidence, "curvature", kind="diagonal")
    anchors = series(evidence, "curvature", kind="anchor")
    if not diagonal:
        return Judgement(_unknown("eq. vii"), evidence.reason("curvature"))
    gap = max(float(np.nanmax(one.of("difference"))) for one in diagonal)
    shares = {
        case: max(float(np.nanmax(one.of("share", case=case))) for one in anchors)
        for case in (NONE, SAME_AXES, SAME_DISTANCE)
    }
    ratio = [float(np.nanmean(one.of("ratio"))) for one in diagonal]
    parts = [
        Part("with H = I / 2 the diagonal is eq. vii's sum", gap < EXACT, {"largest": gap}),
        *(
            Part(f"an anchor adds nothing where {case}", share < EXACT, {"largest_share": share})
            for case, share in shares.items()
        ),
    ]
    why = (
        f"Eq. vii and eq. 22 with H = I / 2 differ by {gap:.0e} of the largest entry at most. An "
        f"anchor adds nothing where none of its neighbours agrees, nor where all agree at one "
        f"distance along every axis. Where all agree at one distance, but in different "
        f"directions, it adds {100 * shares[SAME_DISTANCE]:.0f} % of what it adds otherwise. The "
        f"sum with H = I / 2 is {min(ratio):.2f} to {max(ratio):.2f} times that of the bound's own "
        "H."
    )
    return Judgement(parts, why, all_seeds(diagonal), {"times_the_bound": ratio})


def few_steps(evidence: Evidence) -> Judgement:
    """C13: curvature once, no gradient iterations, a few iterations to converge."""
    found = series(evidence, "figure6", kind="convergence")
    if not found:
        return Judgement(_unknown("a few iterations"), evidence.reason("figure6"))
    moved = max(
        float(np.nanmax(one.of("covariance_moved", solver="published", prior=prior, tol=1e-6)))
        for one in found
        for prior in one.entries("prior")
        if prior != "none"
    )
    steps = _steps(found)
    questions = [
        Question(
            f"{one.title}, {prior} prior",
            {f"{FEW_STEPS} steps": FEW_STEPS - _published(one, prior, 1e-3)},
            one.train_overlap,
        )
        for one in found
        for prior in ("as published", "data-scaled")
    ]
    reached = answers(questions)
    wrong = [a for a in reached if a.lead is not None and a.lead < 0]
    worst = min(reached, key=lambda a: a.lead or 0.0)
    told = ", ".join(
        f"{line['solver']} {line['low']:.0f} to {line['high']:.0f} at {line['tol']:.0e}"
        for line in steps
    )
    why = (
        f"The covariance after the last step is the one of the first (largest change {moved:.0e}). "
        f"Each step is a closed formula. Mean steps to a relative change, over sets and priors: "
        f"{told}. The published update needs more than {FEW_STEPS} steps for 1e-3, on average, in "
        f"{len(wrong)} of {len(reached)} cases, most on {worst.label}.{few(reached)}"
    )
    parts = [
        Part("the curvature is computed once", moved < EXACT, {"covariance_moved": moved}),
        part(f"at most {FEW_STEPS} steps to a relative change of 0.001", reached),
    ]
    return Judgement(parts, why, all_seeds(found), {"steps": steps})


def _published(one: Series, prior: str, tol: float) -> Doubles:
    return one.of("n_iter", solver="published", prior=prior, tol=tol)


def _steps(found: Sequence[Series]) -> list[dict[str, Any]]:
    """Least and largest mean number of steps, over sets and priors, of each solver."""
    out = []
    for solver in ("published", "anderson", "newton", "L-BFGS"):
        for tol in sorted({t for one in found for t in one.entries("tol")}, reverse=True):
            means = [
                mean_interval(one.of("n_iter", solver=solver, prior=prior, tol=tol)).mean
                for one in found
                for prior in one.entries("prior")
            ]
            known = [m for m in means if np.isfinite(m)]
            if known:
                name = "NCA's L-BFGS" if solver == "L-BFGS" else solver
                line = {"solver": name, "tol": tol, "low": min(known), "high": max(known)}
                out.append(line)
    return out
