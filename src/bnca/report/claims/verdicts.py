"""From comparisons to verdicts: what every claim needs, whatever it is about.

A claim has parts, and a part has questions, one for each cell or data set, "is this difference
positive?".  The p-values of a part are adjusted together by Holm's method.  A part holds where
every difference is shown to be positive.  It does not hold where one is shown to be negative, or
is not shown to be positive by at least as many repeats as the paper has.  Otherwise nothing is
known: rows are missing, or repeats are too few.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from bnca.report.statistics import LEVEL, finite, holm, mean_interval, paired_test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy as np

    from bnca.core.arrays import Doubles

HOLDS, FAILS, UNTESTED = "holds", "does not hold", "cannot be tested here"

ENOUGH = 10
"""Repeats of the paper: with fewer, what is not shown is not refuted either."""

PAIRED = (
    "Paired one-tailed t tests over repeats, variance corrected for shared rows "
    "(Nadeau and Bengio), adjusted by Holm's method, level 0.05"
)
"""How differences are tested where nothing else is said."""


class Question(NamedTuple):
    """Whether all of some differences are positive.

    Attributes
    ----------
    label : str
        Of the cell or data set.
    leads : mapping of str to (J,)
        Differences by repeat, by what they are a lead over.  Each has to be positive, so that the
        largest p-value counts; a runner-up found in the same rows needs no other care.
    overlap : float
        Correlation between two repeats.
    """

    label: str
    leads: Mapping[str, Doubles]
    overlap: float = 0.0


class Answer(NamedTuple):
    """What the rows say to a question; numbers are those of the smallest of its leads.

    Attributes
    ----------
    label : str
        As in the question.
    holds : bool or None
        None where nothing is known.
    over : str
        What the smallest lead is over.
    lead, low, high : float or None
        Its mean, with the ends of its 95 % confidence interval.
    p, p_plain : float or None
        Of the question, with and without the correction for shared rows.
    p_holm : float or None
        Of the question, adjusted for all questions of the part.
    refuted : bool
        Whether a lead is shown to be negative.
    repeats : int
        How many there are.
    """

    label: str
    holds: bool | None
    over: str = ""
    lead: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_plain: float | None = None
    p_holm: float | None = None
    refuted: bool = False
    repeats: int = 0


class Part(NamedTuple):
    """A part of a claim with its own truth, None where nothing is known."""

    claim: str
    holds: bool | None
    numbers: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Rows, and why others are missing.

    Attributes
    ----------
    rows : sequence of mapping
        Tidy rows of tables and studies.
    skipped : mapping of str to str
        Experiment to the reason why it has no rows, or not all.
    """

    rows: Sequence[Mapping[str, Any]]
    skipped: Mapping[str, str] = field(default_factory=dict)

    def study(self, table: str, **wanted: Any) -> dict[str, list[Mapping[str, Any]]]:
        """Rows of a study that have the wanted entries, by experiment."""
        out: dict[str, list[Mapping[str, Any]]] = {}
        for row in self.rows:
            if row.get("table") == table and all(row.get(k) == v for k, v in wanted.items()):
                out.setdefault(str(row["experiment"]), []).append(row)
        return out

    def reason(self, table: str) -> str:
        """Why rows of a table are missing."""
        reasons = {r: None for name, r in self.skipped.items() if name.partition("/")[0] == table}
        return " ".join(reasons) or "they were not part of this run."


@dataclass(frozen=True)
class Claim:
    """What is claimed, and how it is judged.

    Attributes
    ----------
    id, where, claim : str
        Its name, its place in the paper, and what it says.
    short : str
        The same in a few words.
    needs : tuple of str
        Tables and figures that it is judged by.
    judge : callable
        ``judge(evidence)`` returns a `Judgement`.
    test : str
        How, in a few words.
    """

    id: str
    where: str
    claim: str
    short: str
    needs: tuple[str, ...]
    judge: Callable[[Evidence], Judgement]
    test: str = PAIRED

    def record(self, evidence: Evidence) -> dict[str, Any]:
        """Verdict, numbers and reason as the summary has them."""
        found = self.judge(evidence)
        parts = [{"part": part.claim, "holds": part.holds, **part.numbers} for part in found.parts]
        return {
            "id": self.id,
            "where": self.where,
            "claim": self.claim,
            "short": self.short,
            "verdict": verdict(part.holds for part in found.parts),
            "why": found.why,
            "numbers": {"parts": parts, **found.more},
            "test": self.test,
            "seeds": sorted({int(seed) for seed in found.seeds}),
            "command": f"bnca reproduce {self.id}",
        }


class Judgement(NamedTuple):
    """What a claim's function finds.

    Attributes
    ----------
    parts : list of Part
        The claim holds if all of them do.
    why : str
        The decisive numbers in a sentence.
    seeds : iterable of int
        Repeats that were used.
    more : mapping
        Numbers beside those of the parts.
    """

    parts: list[Part]
    why: str
    seeds: Iterable[int] = ()
    more: Mapping[str, Any] = {}


def verdict(truths: Iterable[bool | None]) -> str:
    """One false part refutes a claim; it takes all parts to hold."""
    known = list(truths)
    if False in known:
        return FAILS
    return HOLDS if known and all(known) else UNTESTED


def answers(questions: Sequence[Question], level: float = LEVEL) -> list[Answer]:
    """Answer the questions of a part, adjusted together."""
    asked = [q for q in questions if any(len(finite(x)) for x in q.leads.values())]
    p = [max(paired_test(x, q.overlap) for x in q.leads.values()) for q in asked]
    # Any negative lead refutes, so that this direction counts as many tests as there are leads.
    against = [
        min(1, len(q.leads) * min(paired_test(-x, q.overlap) for x in q.leads.values()))
        for q in asked
    ]
    found = {
        q.label: _answer(q, one, together, other < LEVEL, level)
        for q, one, together, other in zip(asked, p, holm(p), holm(against), strict=True)
    }
    return [found.get(q.label, Answer(q.label, None)) for q in questions]


def part(claim: str, found: Sequence[Answer], *, complete: bool = True, **more: Any) -> Part:
    """A part that holds if the answer to each of its questions is yes, and none is missing."""
    truths = [a.holds for a in found]
    holds: bool | None = None
    if False in truths:
        holds = False
    elif complete and truths and all(truths):
        holds = True
    return Part(claim, holds, {"cells": [a._asdict() for a in found], **more})


def tally(found: Sequence[Answer], unit: str = " points", digits: int = 1) -> str:
    """How many answers are yes, and the smallest lead of all, in words."""
    known = [a for a in found if a.lead is not None]
    if not known:
        return "no rows"
    least = min(known, key=lambda a: a.lead or 0.0)
    return (
        f"shown in {sum(bool(a.holds) for a in found)} of {len(found)}; "
        f"least on {least.label}: {signed(least, unit, digits)} against {least.over}"
    )


def signed(answer: Answer, unit: str = " points", digits: int = 1) -> str:
    """A lead with its interval, in words."""
    if answer.lead is None:
        return "unknown"
    text = f"{points(answer.lead, digits)}{unit}"
    if answer.low is None or answer.high is None:
        return text
    return f"{text} [{points(answer.low, digits)}, {points(answer.high, digits)}]"


def points(value: float, digits: int = 1) -> str:
    """A difference with its sign, a true minus."""
    return f"{value:+.{digits}f}".replace("-", "−")


def few(found: Sequence[Answer]) -> str:
    """A sentence where nothing can be decided for want of repeats, or nothing."""
    repeats = max((a.repeats for a in found if a.holds is None), default=0)
    if not repeats:
        return ""
    said = "1 repeat decides" if repeats == 1 else f"{repeats} repeats decide"
    return f" {said} nothing here; {ENOUGH} are needed."


def _answer(
    question: Question, p: float, adjusted: float, refuted: np.bool_, level: float
) -> Answer:
    over = min(question.leads, key=lambda name: _mean(question.leads[name]))
    lead = mean_interval(question.leads[over], question.overlap)
    repeats = min(len(finite(x)) for x in question.leads.values())
    holds: bool | None = None
    if adjusted < level:
        holds = True
    elif refuted or repeats >= ENOUGH:
        holds = False
    plain = max(paired_test(x) for x in question.leads.values())
    return Answer(
        question.label, holds, over, *lead, p, plain, float(adjusted), bool(refuted), repeats
    )


def _mean(values: Doubles) -> float:
    known = finite(values)
    return float(known.mean()) if len(known) else float("inf")
