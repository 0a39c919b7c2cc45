import numpy as np
import pandas as pd
import pytest

from bnca.exceptions import InputError
from bnca.experiments.plan import plan, split
from bnca.experiments.problem import Choices, built_in, from_table, prepare


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    n = 120
    kind = rng.choice(["a", "b", "c"], n)
    return pd.DataFrame(
        {
            "number": rng.normal(size=n) + (kind == "a"),
            "holes": np.where(rng.random(n) < 0.2, np.nan, rng.normal(3, 2, n)),
            "color": rng.choice(["red", "green", "blue"], n),
            "kind": kind,
        }
    )


def problem(frame, label="kind", **choices):
    return from_table(frame, Choices(label, **choices), "mine.csv")


def test_table_becomes_numbers_and_classes(frame):
    found = problem(frame)
    assert found.X.shape == (120, 1 + 2 + 3)
    assert found.blocks.tolist() == [0, 1, 2, 3, 3, 3]
    assert np.array(found.class_names)[found.y].tolist() == frame["kind"].tolist()
    assert [c.kind for c in found.columns] == ["number", "number", "category"]


def test_rows_say_where_they_stand_in_the_table(frame):
    frame.loc[[0, 7], "kind"] = None
    found = problem(frame)
    np.testing.assert_array_equal(found.rows, np.delete(np.arange(120), [0, 7]))
    np.testing.assert_array_equal(found.X[:, 0], frame["number"].drop([0, 7]))


def test_columns_may_be_chosen_and_left_out(frame):
    assert problem(frame, use=["NUMBER"]).X.shape == (120, 1)
    left = problem(frame, drop=["color"])
    assert left.X.shape == (120, 3)
    assert ("color", "dropped", "not asked for") in left.columns


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"drop": ["colour"]}, "--drop: there is no column 'colour'. Is it 'color'?"),
        ({"use": ["kind"]}, "'kind' is the column of labels"),
        ({"drop": ["number", "holes", "color"]}, "no column is left to learn 'kind' from"),
    ],
)
def test_choices_that_cannot_be(frame, choices, words):
    with pytest.raises(InputError) as error:
        problem(frame, **choices)
    assert words in str(error.value)


def test_columns_that_give_the_label_away_are_named(frame):
    frame["code"] = frame["kind"].map({"a": 1, "b": 2, "c": 3})
    assert any("'code' alone tells the class" in note for note in problem(frame).notes)
    assert not any("alone tells" in note for note in problem(frame, drop=["code"]).notes)


def test_copies_of_rows_are_named(frame):
    twice = pd.concat([frame, frame.iloc[:30]])
    assert any("30 rows are copies" in note for note in problem(twice).notes)


def test_what_is_fitted_is_fitted_on_training_rows(frame):
    found = problem(frame)
    train, test = np.arange(80), np.arange(80, 120)
    X, X_test = prepare(found, train, test, 50)
    assert np.isfinite(X).all()
    assert np.isfinite(X_test).all()
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    found.X[80:, 0] += 1000
    np.testing.assert_array_equal(prepare(found, train, test, 50)[0], X)
    missing = np.isnan(found.X[:80, 1])
    # The median of the training rows stands in: the same number for all.
    assert np.ptp(X[missing, 1]) == 0


def test_categories_weigh_as_much_as_numbers(frame):
    found = problem(frame)
    X, _ = prepare(found, np.arange(120), np.arange(1), 0)
    variance = np.zeros(4)
    np.add.at(variance, found.blocks, X.var(axis=0))
    np.testing.assert_allclose(variance, 0.5)  # all together 2: mean squared distance 4


def test_wide_tables_are_reduced(frame):
    found = problem(frame)
    assert prepare(found, np.arange(80), np.arange(80, 120), 2)[0].shape == (80, 2)


def test_built_in_digits():
    found = built_in()
    assert found.X.shape == (1797, 64)
    assert found.class_names == tuple("0123456789")


def test_plan_has_sensible_sizes(frame):
    found = plan(problem(frame))
    assert (found.n_train, found.n_test) == (84, 36)
    assert plan(problem(frame), size=0.5).n_train == 60
    # Test rows stay a small part of the table, or splits would share most of them.
    assert plan(built_in(), size=300).n_test == 539
    assert plan(built_in()).n_train == 1000


def test_plan_that_cannot_be_is_refused(frame):
    with pytest.raises(InputError, match="Try from 6 to 117"):
        plan(problem(frame), size=119)
    with pytest.raises(InputError, match="--size: 2 of 120"):
        plan(problem(frame), size=2)


def test_methods_are_found_by_name(frame):
    assert plan(problem(frame), methods=["svm", "Bnca+", "knn"]).methods == ("KNN", "BNCA+", "SVM")
    with pytest.raises(InputError, match="no method 'forest'; there are KNN, PCA"):
        plan(problem(frame), methods=["forest"])


def test_splits_keep_the_shares_of_classes_and_differ(frame):
    found = problem(frame)
    settled = plan(found)
    train, test = split(found.y, settled, 0)
    assert not set(train) & set(test)
    shares = [np.bincount(found.y[part]) / len(part) for part in (train, test)]
    np.testing.assert_allclose(*shares, atol=0.03)
    assert set(split(found.y, settled, 1)[0]) != set(train)
