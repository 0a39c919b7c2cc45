"""Claims with their verdicts: an overview, and a card for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from bnca.report.markup import Content, Markup, element, join
from bnca.report.pieces import NOTHING, anchor, command, facts, flat, unseen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Record = Mapping[str, Any]

TRUTHS = {True: "holds", False: "does not hold", None: "not known"}

FEW = 6
"""So many numbers are shown at once; more of them behind a click."""


class Verdict(NamedTuple):
    """How a verdict is shown: a sign and words, not only a colour."""

    kind: str
    sign: str
    words: str
    one: str
    many: str


VERDICTS = {
    "holds": Verdict("holds", "✓", "Holds", "holds", "hold"),
    "does not hold": Verdict("fails", "✗", "Does not hold", "does not hold", "do not hold"),
    "cannot be tested here": Verdict(
        "open", "?", "Cannot be tested here", "cannot be tested here", "cannot be tested here"
    ),
}
"""By the word in the summary, in the order in which they are counted."""


def overview(claims: Sequence[Record]) -> Markup:
    """How many claims hold, and a sign for each that leads to its card."""
    counts = [
        (v, sum(claim["verdict"] == name for claim in claims)) for name, v in VERDICTS.items()
    ]
    said = [f"{count} {v.one if count == 1 else v.many}" for v, count in counts if count]
    tally = [
        element("li", element("b", count), f" {v.one if count == 1 else v.many}", class_=v.kind)
        for v, count in counts
    ]
    signs = [_sign(claim) for claim in claims]
    return join(
        element("p", f"Of {len(claims)} claims, {_listed(said)}.", class_="headline"),
        element("ul", *tally, class_="tally", aria_hidden="true"),
        element("ol", *signs, class_="overview", aria_label="Claims"),
    )


def card(claim: Record) -> Markup:
    """One claim: what the paper says, what came out, with numbers, test, seeds and command."""
    verdict, name = _verdict(claim), anchor(str(claim["id"]))
    sign = element("span", verdict.sign, class_="sign", aria_hidden="true")
    title = element(
        "h3",
        element("a", str(claim["id"]), href=f"#{name}", class_="id"),
        " ",
        element("span", claim.get("where", ""), class_="where"),
    )
    return element(
        "article",
        element("header", title, element("p", sign, verdict.words, class_="verdict")),
        element(
            "div",
            element("p", str(claim["why"]), class_="why"),
            element("blockquote", element("p", unseen("The paper: "), str(claim["claim"]))),
            _numbers(claim),
            _test(claim),
            command(str(claim["command"]), name),
            class_="body",
        ),
        id=name,
        class_=f"claim {verdict.kind}",
    )


def _sign(claim: Record) -> Markup:
    verdict = _verdict(claim)
    link = element(
        "a",
        element("span", verdict.sign, class_="sign", aria_hidden="true"),
        str(claim["id"]),
        unseen(f": {verdict.one}"),
        href=f"#{anchor(str(claim['id']))}",
        title=f"{verdict.words}: {claim['claim']}",
    )
    return element("li", link, class_=verdict.kind)


def _numbers(claim: Record) -> Content:
    numbers = claim.get("numbers") or {}
    if not numbers:
        return None
    if flat(numbers.values()) and len(numbers) <= FEW:
        return facts(numbers, "numbers")
    others = {key: value for key, value in numbers.items() if key != "parts"}
    parts = [_part(part) for part in numbers.get("parts", ())]
    return element(
        "details",
        element("summary", "All numbers"),
        *parts,
        facts(others, "wide") if others else None,
    )


def _part(part: Record) -> Markup:
    """A part of a claim: what it says, whether that holds, its numbers."""
    said = TRUTHS.get(part.get("holds"), NOTHING)
    numbers = {key: value for key, value in part.items() if key not in {"part", "holds"}}
    text = str(part["part"])
    title = element("h4", f"{text[:1].upper()}{text[1:]}: {said}")
    return element("div", title, facts(numbers, "wide") if numbers else None, class_="parts")


def _test(claim: Record) -> Markup | None:
    said = [str(claim["test"])] if claim.get("test") else []
    if claim.get("seeds"):
        said.append(f"Seeds {spans(claim['seeds'])}")
    return (
        element("p", ". ".join(s.rstrip(".") for s in said) + ".", class_="quiet") if said else None
    )


def spans(seeds: Sequence[int]) -> str:
    """Whole numbers with runs of them shortened: 0 to 29, 40."""
    runs: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if runs and seed == runs[-1][-1] + 1:
            runs[-1].append(seed)
        else:
            runs.append([seed])
    return ", ".join(f"{r[0]} to {r[-1]}" if len(r) > 1 else str(r[0]) for r in runs)


def _verdict(claim: Record) -> Verdict:
    said = str(claim["verdict"])
    return VERDICTS.get(said) or Verdict("open", "?", said.capitalize(), said, said)


def _listed(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)
