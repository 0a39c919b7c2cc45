"""Each claim on rows that bear it out, on rows that do not, and on too few of them."""

import math
from statistics import fmean

import numpy as np
import pytest
import verdict_rows as made
from scipy import stats
from tolerances import ROUNDING

from bnca.report.claims.catalogue import CLAIMS
from bnca.report.claims.verdicts import (
    ENOUGH,
    FAILS,
    HOLDS,
    UNTESTED,
    Evidence,
    Question,
    answers,
    few,
    part,
    signed,
    verdict,
)

BY_ID = {claim.id: claim for claim in CLAIMS}
IDS = [f"C{i}" for i in range(1, 15)]


def judged(name, rows, skipped=None):
    return BY_ID[name].record(Evidence(rows, skipped or {}))


def by(rows, value, **wanted):
    """Values of the rows that have the wanted entries, by seed."""
    found = [row for row in rows if all(row.get(k) == v for k, v in wanted.items())]
    return [row[value] for row in sorted(found, key=lambda row: row["seed"])]


def points(rows, more, less, value="accuracy", **wanted):
    """Mean lead of one over another, in points; both are entries that rows must have."""
    a, b = by(rows, value, **wanted, **more), by(rows, value, **wanted, **less)
    return fmean(100 * (x - y) for x, y in zip(a, b, strict=True))


def method(name):
    return {"method": name}


def share(rows):
    a, b = (
        by(rows, "fit_cpu_seconds", table="table3", title="MNIST", method=m)
        for m in ("BNCA", "NCA")
    )
    return math.exp(fmean(math.log(x / y) for x, y in zip(a, b, strict=True)))


def shrinkage(rows):
    before, after = (by(rows, f"ratio_{w}", where="train") for w in ("before", "after"))
    return fmean(100 * (1 - y / x) for x, y in zip(before, after, strict=True))


def fall(rows):
    """NCA's test accuracy at its peak, the first step, less that at the last."""
    ends = {"kind": "curve", "method": "NCA"}
    return points(rows, {"step": 1}, {"step": 50}, "test_accuracy", **ends)


def width(rows):
    """Mean accuracy up to 1 less that above."""
    within = [x for p in range(-4, 1) for x in by(rows, "accuracy", scale="raw", log10_sigma=p)]
    above = [x for p in range(1, 5) for x in by(rows, "accuracy", scale="raw", log10_sigma=p)]
    return 100 * (fmean(within) - fmean(above))


BALANCE = {"table": "table1", "title": "Balance", "size": 10}
DIFFICULT = {"table": "figure5", "group": "difficult"}
END = method("NCA, to the end")
NCA, BNCA, BML, PCA = (method(m) for m in ("NCA", "BNCA", "BML", "PCA"))

# Where a number stands in the record, the same by a naive loop, and a row's column that it is of.
NUMBERS = {
    "C1": ((0, "cells", 0, "lead"), lambda r: points(r, BNCA, BML, **BALANCE), "accuracy"),
    "C2": ((0, "cells", 0, "lead"), lambda r: points(r, PCA, NCA, **BALANCE), "accuracy"),
    "C3": ((0, "cells", 0, "lead"), lambda r: points(r, BNCA, BML, **BALANCE), "accuracy"),
    "C4": (
        (0, "cells", 1, "lead"),
        lambda r: points(r, BNCA, BML, title="Caltech-10 (SURF)", noise=0.1),
        "accuracy",
    ),
    "C5": (
        (1, "cells", 1, "lead"),
        lambda r: points(r, BNCA, BML, title="MNIST", noise=0.3),
        "accuracy",
    ),
    "C6": ((0, "share", 4, "mean"), share, "fit_cpu_seconds"),
    "C7": ((0, "cells", 0, "lead"), shrinkage, "ratio_after"),
    "C8": (
        (2, "cells", 0, "lead"),
        lambda r: points(r, END, BNCA, "sharp_wrong", **DIFFICULT),
        "sharp_wrong",
    ),
    "C9": (
        (1, "cells", 0, "lead"),
        lambda r: points(r, BNCA, NCA, "modified_map", **DIFFICULT) - 5,
        "modified_map",
    ),
    "C10": ((1, "cells", 0, "lead"), fall, "test_accuracy"),
    "C11": ((1, "cells", 0, "lead"), width, "accuracy"),
    "C12": ((0, "largest"), lambda r: max(by(r, "difference", kind="diagonal")), "difference"),
    "C13": (
        (1, "cells", 0, "lead"),
        lambda r: 10 - fmean(by(r, "n_iter", prior="as published", tol=1e-3)),
        "n_iter",
    ),
    "C14": (
        (0, "cells", 0, "lead"),
        lambda r: points(r, {"ranking": "mean and std"}, {"ranking": "mean"}, "map", k=10),
        "map",
    ),
}


def dig(record, path):
    found = record["numbers"]["parts"]
    for step in path:
        found = found[step]
    return found


@pytest.fixture(scope="module")
def true_rows():
    return made.everything()


def test_there_is_a_claim_for_each_of_the_paper():
    assert [claim.id for claim in CLAIMS] == IDS


@pytest.mark.parametrize("name", IDS)
def test_holds(name, true_rows):
    found = judged(name, true_rows)
    assert found["verdict"] == HOLDS, found["why"]
    assert all(part["holds"] is True for part in found["numbers"]["parts"])
    assert found["seeds"] == list(made.SEEDS)
    assert found["why"].endswith(".")
    assert ".." not in found["why"]


@pytest.mark.parametrize("name", IDS)
def test_does_not_hold(name):
    found = judged(name, made.everything(truth=False))
    assert found["verdict"] == FAILS, found["why"]
    assert False in [part["holds"] for part in found["numbers"]["parts"]]


@pytest.mark.parametrize("name", [name for name in IDS if name != "C12"])
@pytest.mark.parametrize("truth", [True, False])
def test_one_repeat_decides_nothing(name, truth):
    found = judged(name, made.everything(truth, seeds=[0]))
    assert found["verdict"] == UNTESTED
    assert "1 repeat decides nothing here; 10 are needed." in found["why"]
    assert ".." not in found["why"]


@pytest.mark.parametrize("name", IDS)
def test_no_rows_give_their_reason(name):
    table = BY_ID[name].needs[-1]
    found = judged(name, [], {f"{table}/x": "There is no such file."})
    assert found["verdict"] == UNTESTED
    assert "There is no such file." in found["why"]
    assert judged(name, [])["why"].endswith("they were not part of this run.")


@pytest.mark.parametrize("name", IDS)
def test_numbers_are_those_of_the_rows(name, true_rows):
    path, naive, column = NUMBERS[name]
    first = naive(true_rows)
    assert dig(judged(name, true_rows), path) == pytest.approx(first, rel=ROUNDING, abs=0)
    changed = [dict(row) for row in true_rows]
    for row in changed:
        if row["seed"] == 11 and row.get(column) is not None:
            row[column] *= 1.01
            if "group" in row or row.get("method") in {"BNCA", "PCA"} or "step" in row:
                row[column] *= 1.02
    second = naive(changed)
    assert second != pytest.approx(first, rel=1e-6, abs=0)
    assert dig(judged(name, changed), path) == pytest.approx(second, rel=ROUNDING, abs=0)


def test_c12_names_the_largest_difference(true_rows):
    changed = [dict(row) for row in true_rows]
    for row in changed:
        if "difference" in row and row["seed"] == 5:
            row["difference"] = 3e-7
    found = judged("C12", changed)
    assert found["verdict"] == FAILS
    assert found["numbers"]["parts"][0] == {
        "part": "with H = I / 2 the diagonal is eq. vii's sum",
        "holds": False,
        "largest": 3e-7,
    }
    assert "differ by 3e-07" in found["why"]


@pytest.mark.parametrize("name", ["C1", "C2", "C3", "C4", "C5"])
def test_missing_cells_leave_open_what_the_others_bear_out(name, true_rows):
    gone = {"C1": "Spambase", "C2": "Spambase", "C3": "Spambase"}.get(name, "FRGC-2 (UMIST)")
    table = BY_ID[name].needs[0]
    skipped = {f"{table}/x": "It is not in the data folder."}
    found = judged(name, [r for r in true_rows if r["title"] != gone], skipped)
    assert found["verdict"] == UNTESTED
    assert f"({gone.partition(' (')[0]}): It is not in the data folder." in found["why"]
    # What is there still refutes.
    false = [r for r in made.table1(BNCA=0.5) if r["title"] != gone]
    false += made.cell("table2", "mnist", "MNIST", (30, 0.3), WORST)
    if name != "C2":
        assert judged(name, false)["verdict"] == FAILS


WORST = {**made.RIVALS, "BNCA": 0.5}


def test_a_method_without_numbers_leaves_its_cells_open(true_rows):
    rows = [dict(row) for row in true_rows]
    for row in rows:
        if row.get("method") == "LMNN" and row["title"] == "Ionosphere":
            row["accuracy"] = None
    found = judged("C1", rows)
    cells = {cell["label"]: cell for cell in found["numbers"]["parts"][0]["cells"]}
    assert cells["Ionosphere, 10 per class"]["lead"] is None
    assert cells["Balance, 10 per class"]["holds"] is True
    assert found["verdict"] == UNTESTED


def test_ranks_and_their_intervals_are_told_for_each_cell(true_rows):
    for name, count in (("C1", 9), ("C4", 12)):
        ranks = judged(name, true_rows)["numbers"]["ranks"]
        assert len(ranks) == count
        assert {(r["rank"], r["low"], r["high"], r["of"]) for r in ranks} == {(1, 1, 1, 6)}
    low = judged("C1", made.table1(BNCA=0.5))["numbers"]["ranks"]
    assert {(r["rank"], r["low"], r["high"]) for r in low} == {(6, 6, 6)}


def noisy(behind, spread):
    """Table 2 with BNCA so far behind LMNN, which goes up and down from repeat to repeat."""
    rows = made.table2()
    for row in rows:
        swings = spread * (1 if row["seed"] % 2 else -1)
        means = {"BNCA": 0.8 - behind, "LMNN": 0.8 + swings}
        row["accuracy"] = means.get(row["method"], 0.7)
    return rows


@pytest.mark.parametrize(
    ("behind", "spread", "said", "refuted"),
    [
        (0.002, 0.02, HOLDS, False),  # less than half a point, and not shown
        (0.02, 0.05, FAILS, False),  # two points, and not shown
        (0.002, 0.0, FAILS, True),  # less than half a point, but certain
    ],
)
def test_ties_of_c4(behind, spread, said, refuted):
    found = judged("C4", noisy(behind, spread))
    assert found["verdict"] == said, found["why"]
    assert {cell["refuted"] for cell in found["numbers"]["parts"][0]["cells"]} == {refuted}
    assert f"within 0.5 points of the best in {12 if said == HOLDS else 0}" in found["why"]


def test_c5_asks_for_one_in_a_thousand():
    rows = noisy(-0.02, 0.0)
    for row in rows:
        if row["method"] == "LMNN":
            row["accuracy"] += 0.02 * math.cos(3 * row["seed"])
    cells = judged("C5", rows)["numbers"]["parts"][1]["cells"]
    assert all(0.001 < cell["p_holm"] < 0.05 for cell in cells)
    assert {cell["holds"] for cell in cells} == {False}


@pytest.mark.parametrize(
    ("name", "place", "overlap", "values"),
    [
        ("C1", 0, 100 / 1000, lambda r: (r, BALANCE | BNCA, BALANCE | BML, "accuracy")),
        ("C9", 0, 100 / 1000, lambda r: (r, NORMAL | BNCA, NORMAL | NCA, "modified_map")),
        ("C14", 0, 5 / 20, lambda r: (r, FOUND | {"ranking": "mean and std"}, MEAN, "map")),
    ],
)
def test_intervals_allow_for_rows_or_people_that_repeats_share(
    true_rows, name, place, overlap, values
):
    rows, more, less, value = values(true_rows)
    leads = 100 * np.subtract(by(rows, value, **more), by(rows, value, **less))
    error = np.std(leads, ddof=1) * (1 / len(leads) + overlap / (1 - overlap)) ** 0.5
    cell = judged(name, true_rows)["numbers"]["parts"][place]["cells"][0]
    half = stats.t.ppf(0.975, len(leads) - 1) * error
    assert cell["high"] - cell["lead"] == pytest.approx(half)
    assert cell["p"] > cell["p_plain"]


NORMAL = {"table": "figure5", "group": "normal"}
FOUND = {"table": "retrieval", "kind": "ranking", "k": 10}
MEAN = FOUND | {"ranking": "mean"}


@pytest.mark.parametrize(
    ("name", "place", "share"), [("C7", 0, 30), ("C7", 1, 100), ("C13", 1, 30)]
)
def test_training_rows_are_shared_too(true_rows, name, place, share):
    """Of 1000 rows; what is measured on training rows is corrected by their share."""
    cell = judged(name, true_rows)["numbers"]["parts"][place]["cells"][0]
    if name == "C13":
        values = [10 - x for x in by(true_rows, "n_iter", prior="as published", tol=1e-3)]
    else:
        where = ("train", "test")[place]
        values = [100 * (1 - x / 0.9) for x in by(true_rows, "ratio_after", where=where)]
    wider = (1 / len(values) + (share / 1000) / (1 - share / 1000)) ** 0.5
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) * wider
    assert cell["high"] - cell["lead"] == pytest.approx(half)


def test_sets_that_are_not_the_papers_decide_nothing(true_rows):
    other = made.cell("table1", "wine", "Wine", (10, 0.0), WORST)
    found = judged("C1", [*true_rows, *other])
    assert found["verdict"] == HOLDS
    assert "not the paper's (Wine) it is first in 0 of 1." in found["why"]


def test_c6_names_how_much_faster(true_rows):
    found = judged("C6", true_rows)
    assert "It is 100 % [100, 100] faster than NCA" in found["why"]
    assert "its own table 49 to 59 %" in found["why"]
    slow = [dict(row) for row in true_rows]
    for row in slow:
        if row["table"] == "table3" and row["method"] == "BNCA":
            row["fit_cpu_seconds"] *= 1.5
    again = judged("C6", slow)
    assert again["verdict"] == FAILS  # faster than each, but not by 61.2 %
    assert again["numbers"]["parts"][0]["holds"] is True


def test_verdict_takes_all_parts():
    assert verdict([True, True]) == HOLDS
    assert verdict([True, None]) == UNTESTED
    assert verdict([None, False]) == FAILS
    assert verdict([]) == UNTESTED


def test_questions_are_adjusted_together():
    clear, doubtful = np.array([1.0, 1.1, 0.9, 1.0]), np.array([0.6, 0.0, 0.5, 0.4])
    one = answers([Question("a", {"x": doubtful})])[0]
    both = answers([Question("a", {"x": doubtful}), Question("b", {"x": doubtful[::-1]})])[0]
    assert one.p_holm == one.p < 0.05
    assert both.p_holm == pytest.approx(2 * one.p)
    assert (one.holds, both.holds) == (True, None)
    found = answers([Question("a", {"x": clear, "y": doubtful}), Question("empty", {})])
    assert (found[0].over, found[0].lead) == ("y", pytest.approx(0.375))
    assert found[1].holds is None
    assert part("all", found).holds is None
    assert part("all", found[:1]).holds is True
    assert part("all", found[:1], complete=False).holds is None


def test_what_is_not_shown_by_enough_repeats_does_not_hold():
    flat = np.array([0.1, -0.1] * (ENOUGH // 2))
    assert answers([Question("a", {"x": flat})])[0].holds is False
    fewer = answers([Question("a", {"x": flat[:-1]})])
    assert fewer[0].holds is None
    assert few(fewer) == " 9 repeats decide nothing here; 10 are needed."
    lost = answers([Question("a", {"x": np.array([-1.0, -1.1, -0.9])})])[0]
    assert (lost.holds, lost.refuted) == (False, True)
    assert signed(lost) == "−1.0 points [−1.2, −0.8]"
