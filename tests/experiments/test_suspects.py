"""Wrong labels in a person's own table."""

import numpy as np
import pytest
from sklearn.datasets import load_wine

from bnca.experiments import compare, suspects
from bnca.experiments.plan import plan
from bnca.experiments.problem import COMPONENTS, Choices, from_table

NAMES = np.array(["barolo", "grignolino", "barbera"])
UNLABELLED = [0, 50]


@pytest.fixture(scope="module")
def wines():
    """Wines of which twelve bear a wrong name; their places in the table."""
    frame = load_wine(as_frame=True).data.copy()
    y = load_wine().target.copy()
    rng = np.random.default_rng(0)
    wrong = rng.choice(np.setdiff1d(np.arange(len(y)), UNLABELLED), 12, replace=False)
    y[wrong] = (y[wrong] + rng.integers(1, 3, 12)) % 3
    frame["grape"] = NAMES[y]
    frame.loc[UNLABELLED, "grape"] = None
    return from_table(frame, Choices("grape"), "wines"), set(wrong.tolist())


def test_wrong_names_are_found_by_their_places_in_the_table(wines):
    problem, wrong = wines
    found = suspects.suspects(problem, COMPONENTS)
    rows = {s.row for s in found.found}
    assert found.n_rows == 176
    assert len(rows & wrong) >= 9
    assert len(rows - wrong) <= 2
    likely = [s.likely for s in found.found if s.row in wrong]
    truth = [NAMES[load_wine().target[s.row]] for s in found.found if s.row in wrong]
    assert likely == truth
    assert [s.probability for s in found.found] == sorted(s.probability for s in found.found)


def test_clean_names_are_left_alone(wines):
    frame = load_wine(as_frame=True).data.copy()
    frame["grape"] = NAMES[load_wine().target]
    problem = from_table(frame, Choices("grape"), "wines")
    assert len(suspects.suspects(problem, COMPONENTS).found) <= 1


def test_large_tables_are_looked_at_in_part(wines, monkeypatch):
    monkeypatch.setattr(suspects, "MOST_ROWS", 100)
    found = suspects.suspects(wines[0], COMPONENTS)
    assert found.n_rows == 100
    assert {s.row for s in found.found} & wines[1]


def test_labels_made_wrong_are_found_again(wines):
    problem, _ = wines
    settled = plan(problem, noise=0.2, seeds=[0], methods=["KNN", "BNCA+"])
    knn, ours = compare.run(problem, settled, n_jobs=1)
    assert knn.wrong_found is None
    assert ours.wrong_found > 5 * ours.right_doubted
