"""Figures 3 to 5: what NCA and BNCA say about digits that are easy, and about difficult ones.

Difficult are the test digits on which an expert hesitates most: the smallest gaps between its two
largest class probabilities.  Normal digits are drawn at random from all the others.  Test rows
whose label most of five people reject are left out of both.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bnca.bayesian_nca import BayesianNCA
from bnca.datasets import load_arrays
from bnca.experiments import paper
from bnca.experiments.draw import prepare
from bnca.experiments.figures.common import DIGITS, image_columns, tuned
from bnca.experiments.metrics import METRICS, predicted
from bnca.experiments.paper import published_model
from bnca.experiments.spec import Method, Study
from bnca.experiments.tuning import choose, quiet
from bnca.rivals import NCA

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bnca.core.arrays import Doubles, Integers
    from bnca.datasets import Dataset
    from bnca.experiments.spec import DataSpec, Part

TAU = 0.01
"""A class of less probability does not count as an answer."""

SHARP = 0.99
"""From this probability on a prediction is called sharp."""

TO_THE_END = 200
"""Steps that NCA may take where nothing stops it early."""


class Pools(NamedTuple):
    """Rows of a set of digits, by what they may be used for.

    Attributes
    ----------
    train : (a,)
        Positions of rows to train on.
    test : (b,)
        Positions of rows to test on.
    margin : (b,)
        The expert's largest class probability less its second largest, on the test rows.
    """

    train: Integers
    test: Integers
    margin: Doubles


class DigitDraw(NamedTuple):
    """Training digits and two groups of test digits.

    Attributes
    ----------
    X, y : (n, d), (n,)
        Training rows, prepared, and labels.
    groups : dict of str to (positions, rows, margins)
        "normal" and "difficult": positions in the set, prepared rows, the expert's margins.
    """

    X: Doubles
    y: Integers
    groups: dict[str, tuple[Integers, Doubles, Doubles]]


def modified_map(probabilities: Doubles, truth: Integers, tau: float = TAU) -> float:
    """Modified mean average precision: Σ_i Σ_k p_i(k) 1{y_i = k} 1{P(k | x_i) > tau} / N.

    One answer is right, so the precision p_i(k) at its place in the ranking is 1 / place.  Equal
    probabilities are ranked by class number, as `predict` settles them.

    Parameters
    ----------
    probabilities : (n, n_classes)
        Rows sum to one.
    truth : (n,)
        Column of the true class.
    tau : float
        A true class of no more probability counts nothing.

    Returns
    -------
    float
        0 to 1.
    """
    own = probabilities[np.arange(len(truth)), truth]
    return float(np.mean((own > tau) / truth_ranks(probabilities, truth)))


def truth_ranks(probabilities: Doubles, truth: Integers) -> Integers:
    """Place of the true class in each row's ranking, 1 for the most probable."""
    order = np.argsort(-probabilities, axis=1, kind="stable")
    return np.asarray((order == truth[:, None]).argmax(axis=1) + 1)


def expert_pools(data: Dataset, place: Path | None, seed: int, n_test: int) -> Pools:
    """Rows to train and to test on, with the margins of an expert that never saw the test rows.

    For MNIST the expert is a network whose cross-validated probabilities lie beside the set as
    `mnist_test_hardness`.  For others it is fitted here: a third of the rows, drawn anew for each
    seed, teaches a support vector machine, a third is to train on and the last to test on.
    """
    if data.name != "mnist":
        return _own_expert(data, seed, n_test)
    found = load_arrays("mnist_test_hardness", place)
    test = np.arange(60_000, 70_000) if data.is_test is None else np.flatnonzero(data.is_test)
    rejected = found["mturk_id"][found["mturk_given"] < 3]
    keep = np.setdiff1d(np.arange(len(test)), rejected)
    margin = _margins(np.asarray(found["cv_proba"], dtype=np.float64)[keep])
    return Pools(np.setdiff1d(np.arange(len(data.y)), test), test[keep], margin)


def _own_expert(data: Dataset, seed: int, n_test: int) -> Pools:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    order = np.random.default_rng([seed, 3]).permutation(len(data.y))
    third = (len(order) - 2 * n_test) // 2
    learn, train, test = np.split(order, [third, 2 * third])
    expert = make_pipeline(StandardScaler(), SVC()).fit(data.X[learn], data.y[learn])
    decision = np.sort(expert.decision_function(data.X[test]), axis=1)
    return Pools(train, test, decision[:, -1] - decision[:, -2])


def _margins(probabilities: Doubles) -> Doubles:
    best = np.sort(probabilities, axis=1)
    return np.asarray(best[:, -1] - best[:, -2])


def draw_digits(part: Part, data: Dataset, place: Path | None) -> DigitDraw:
    """Training rows in equal numbers of each class, and both groups, by the study's settings."""
    settings = part.experiment.settings
    n_test, size = settings["n_test"], settings["size"]
    pools = expert_pools(data, place, part.seed, n_test)
    rng = np.random.default_rng([part.seed, 4])
    shuffled = rng.permutation(pools.train)
    train = np.concatenate([shuffled[data.y[shuffled] == c][:size] for c in np.unique(data.y)])
    order = np.argsort(pools.margin, kind="stable")
    chosen = {
        "normal": rng.permutation(order[n_test:])[:n_test],
        "difficult": order[:n_test],
    }
    test = np.concatenate(list(chosen.values()))
    X, rows = prepare(data.X[train], data.X[pools.test[test]], part.experiment.data)
    halves = dict(zip(chosen, np.split(rows, [len(chosen["normal"])]), strict=True))
    groups = {
        name: (pools.test[which], halves[name], pools.margin[which])
        for name, which in chosen.items()
    }
    return DigitDraw(X, data.y[train], groups)


def predictions(
    X: Doubles, y: Integers, queries: list[Doubles], seed: int
) -> Iterator[tuple[str, Any, list[Doubles]]]:
    """Class probabilities of each method: its name, its settings, one array for each of `queries`.

    NCA predicts by its own model, in which every training row votes in proportion to exp(-d²);
    cross-validation of its KNN accuracy says where to stop.  BNCA votes among K neighbours,
    averaged over the posterior.  Both are tuned with the grids of the tables.
    """
    by_name = {method.name: method for method in paper.paper_methods()}
    chosen = choose(by_name["NCA"], X, y, seed=seed)
    tuned_nca = {name: chosen[name] for name in ("n_components", "max_iter")}
    whole = {"n_components": None, "max_iter": TO_THE_END}
    for name, settings in (("NCA", tuned_nca), ("NCA, to the end", whole)):
        model = NCA(init="auto", vote="softmax", n_voters=None, n_jobs=1, **settings)
        with quiet():
            model.fit(X, y)
        yield name, settings, [model.predict_proba(Q) for Q in queries]
    averaged = Method(
        "BNCA", published_model(), by_name["BNCA"].fits, {"vote": ["posterior"], "n_voters": [None]}
    )
    bnca, chosen = tuned(averaged, X, y, seed)
    yield "BNCA", chosen, [bnca.predict_proba(Q) for Q in queries]
    with quiet():
        default = BayesianNCA().set_params(n_jobs=1).fit(X, y)
    yield "BNCA+", {}, [default.predict_proba(Q) for Q in queries]


def summary(probabilities: Doubles, truth: Integers) -> dict[str, Any]:
    """Columns that say how sure and how right a method is on one group of digits."""
    own = probabilities[np.arange(len(truth)), truth]
    top = probabilities.max(axis=1)
    wrong = probabilities.argmax(axis=1) != truth
    said = predicted(probabilities, np.arange(probabilities.shape[1]), truth)
    return {
        "n_test": len(truth),
        "tau": TAU,
        "modified_map": modified_map(probabilities, truth),
        "accuracy": float(1 - wrong.mean()),
        "mean_top": float(top.mean()),
        "truth_mass": float(own.mean()),
        "sharp": float((top > SHARP).mean()),
        "sharp_wrong": float((wrong & (top > SHARP)).mean()),
        "wrong": float(wrong.mean()),
        "wrong_truth_mass": float(own[wrong].mean()) if wrong.any() else None,
        "candidates": float((probabilities > TAU).sum(axis=1).mean()),
        "truth_kept": float((own > TAU).mean()),
        "log_loss": METRICS["log_loss"](said),
    }


def work_images(part: Part, data: Dataset, place: Path | None) -> list[dict[str, Any]]:
    """Figure 3: some digits of each group."""
    drawn = draw_digits(part, data, place)
    out = []
    for group, (positions, _, margins) in drawn.groups.items():
        for position, margin in _shown(positions, margins, part.experiment.settings["n_images"]):
            truth = int(data.y[position])
            row = {"group": group, "position": position, "truth": truth, "margin": margin}
            out.append(row | image_columns(data, position))
    return out


def work_bars(part: Part, data: Dataset, place: Path | None) -> list[dict[str, Any]]:
    """Figure 4: what each method says about some digits of each group, and about all of them."""
    drawn = draw_digits(part, data, place)
    out = []
    names, queries = list(drawn.groups), [rows for _, rows, _ in drawn.groups.values()]
    for method, chosen, answers in predictions(drawn.X, drawn.y, queries, part.seed):
        for group, probabilities in zip(names, answers, strict=True):
            positions, _, margins = drawn.groups[group]
            truth = data.y[positions]
            both = {"method": method, "group": group}
            told = {"n_train": len(drawn.y), "chosen": json.dumps(chosen)}
            out.append({"kind": "summary", **both, **told, **summary(probabilities, truth)})
            line = {position: i for i, position in enumerate(positions.tolist())}
            ranks = truth_ranks(probabilities, truth)
            for position, margin in _shown(
                positions, margins, part.experiment.settings["n_images"]
            ):
                p = probabilities[line[position]]
                ranking = np.argsort(-p, kind="stable")
                out.append(
                    {
                        "kind": "digit",
                        **both,
                        "position": position,
                        "truth": int(data.y[position]),
                        "margin": margin,
                        "probabilities": p.tolist(),
                        "ranking": ranking[p[ranking] >= TAU].tolist(),
                        "top": float(p.max()),
                        "top_class": int(ranking[0]),
                        "truth_rank": int(ranks[line[position]]),
                        **image_columns(data, position),
                    }
                )
    return out


def work_map(part: Part, data: Dataset, place: Path | None) -> list[dict[str, Any]]:
    """Figure 5: modified mean average precision of each method on each group."""
    drawn = draw_digits(part, data, place)
    names, queries = list(drawn.groups), [rows for _, rows, _ in drawn.groups.values()]
    return [
        {
            "kind": "summary",
            "method": method,
            "group": group,
            "n_train": len(drawn.y),
            "chosen": json.dumps(chosen),
            **summary(probabilities, data.y[drawn.groups[group][0]]),
        }
        for method, chosen, answers in predictions(drawn.X, drawn.y, queries, part.seed)
        for group, probabilities in zip(names, answers, strict=True)
    ]


def _shown(positions: Integers, margins: Doubles, n: int) -> list[tuple[int, float]]:
    """First n of a group: the most difficult ones, or those that were drawn first."""
    return list(zip(positions[:n].tolist(), margins[:n].tolist(), strict=True))


def studies(repeats: int = 30) -> list[Study]:
    """MNIST: 300 training digits, 300 normal and 300 difficult ones to test."""
    return _all("mnist", paper.MNIST, 300, repeats)


def quick(repeats: int = 10) -> list[Study]:
    """Digits of scikit-learn: 300 to train, 100 of each group to test."""
    return _all("digits", DIGITS, 100, repeats)


def _all(name: str, data: DataSpec, n_test: int, repeats: int) -> list[Study]:
    common = {"size": 30, "n_test": n_test}
    return [
        Study(f"figure3/{name}", data, work_images, (0,), {**common, "n_images": 40}),
        Study(f"figure4/{name}", data, work_bars, (0,), {**common, "n_images": 8}),
        Study(f"figure5/{name}", data, work_map, tuple(range(repeats)), common),
    ]
