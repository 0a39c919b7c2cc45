import numpy as np
import pandas as pd
import pytest

from bnca.experiments.columns import MOST_LEVELS, encode

N = 40
NUMBER = np.linspace(-1, 1, N) ** 3


def only(values, name="x", **options):
    """What becomes of one column."""
    encoded = encode(pd.DataFrame({name: values}), **options)
    return encoded, encoded.columns[0]


def test_numbers_stay():
    encoded, column = only(NUMBER)
    np.testing.assert_array_equal(encoded.X[:, 0], NUMBER)
    assert column == ("x", "number", "")


def test_numbers_in_text_with_a_few_words_among_them():
    text = [f"{v:.4f}" for v in NUMBER]
    encoded, column = only([*text[:-2], "unknown", "?"])
    assert column.kind == "number"
    assert "1 entries are no numbers" in column.note
    assert "2 missing" in column.note
    assert np.isnan(encoded.X[-2:, 0]).all()
    np.testing.assert_allclose(encoded.X[:-2, 0], NUMBER[:-2], atol=1e-4)


def test_many_missing_numbers_are_marked_by_a_column():
    values = NUMBER.copy()
    values[:10] = np.nan
    encoded, column = only(values)
    assert encoded.names == ("x", "x is missing")
    assert encoded.X[:, 1].tolist() == [1] * 10 + [0] * (N - 10)
    assert encoded.blocks.tolist() == [0, 1]
    assert "10 missing: the median stands in, and a column marks them" in column.note


def test_infinite_numbers_count_as_missing():
    encoded, column = only([np.inf, *NUMBER[1:]])
    assert np.isnan(encoded.X[0, 0])
    assert "1 entries are no numbers" in column.note


def test_categories_have_a_column_for_each_level():
    encoded, column = only((["red", "green", "blue", None] * N)[:N])
    assert encoded.X.shape == (N, 4)
    np.testing.assert_array_equal(encoded.X.sum(axis=1), 1)
    assert encoded.blocks.tolist() == [0] * 4
    assert column == ("x", "category", "10 missing: a level of their own")


def test_two_levels_need_one_column():
    encoded, column = only((["no", "yes"] * N)[:N])
    assert encoded.X[:, 0].tolist() == ([0, 1] * N)[:N]
    assert column == ("x", "category", "2 levels")


def test_booleans_are_numbers():
    encoded, column = only(([True, False] * N)[:N])
    assert column.kind == "number"
    assert encoded.X[:2, 0].tolist() == [1, 0]


def test_rare_levels_are_taken_together():
    rng = np.random.default_rng(0)
    values = [f"level {i:02d}" for i in np.minimum(rng.geometric(0.08, 2000), 50)]
    encoded, column = only(values)
    assert encoded.X.shape[1] == MOST_LEVELS
    assert "the 29 most frequent, and all others together" in column.note
    np.testing.assert_array_equal(encoded.X.sum(axis=1), 1)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([3.0] * N, "all its values are the same"),
        (["x"] * N, "all its values are the same"),
        ([None] * N, "it is empty"),
        ([np.nan] * N, "it is empty"),
        (np.arange(1, N + 1), "it only counts the rows"),
        ([f"name {i}" for i in range(N)], "a value of its own"),
        (pd.date_range("2024-01-01", periods=N), "dates are not used"),
        ([f"2024-01-{1 + i % 28:02d}" for i in range(N)], "dates are not used"),
        ([[1, 2]] * N, "neither numbers nor words"),
        (np.full(N, 1j), "complex"),
    ],
)
def test_what_cannot_be_used_is_named(values, words):
    encoded, column = only(values)
    assert encoded.X.shape == (N, 0)
    assert column.kind == "dropped"
    assert words in column.note


@pytest.mark.parametrize("name", ["id", "PassengerId", "customer_no", "Key"])
def test_ids_are_known_by_name_and_values(name):
    ids = np.random.default_rng(0).permutation(10_000)[:N]
    assert only(ids, name)[1].kind == "dropped"
    assert only(ids, "income")[1].kind == "number"
    assert "--drop income" in only(ids, "income")[1].note
    assert only(ids, name, wanted=[name])[1].kind == "number"


@pytest.mark.parametrize("name", ["width", "valid", "november", "nitrogen"])
def test_words_that_hold_id_are_no_ids(name):
    ids = np.random.default_rng(0).permutation(10_000)[:N]
    assert only(ids, name)[1].kind == "number"


def test_numbers_may_be_codes():
    encoded, column = only(([10115, 80331, 20095, 50667] * N)[:N], categories=["x"])
    assert column.kind == "category"
    assert encoded.X.shape[1] == 4


def test_blocks_go_on_from_column_to_column():
    frame = pd.DataFrame({"a": NUMBER, "b": (["x", "y", "z"] * N)[:N], "c": NUMBER[::-1]})
    assert encode(frame).blocks.tolist() == [0, 1, 1, 1, 2]
