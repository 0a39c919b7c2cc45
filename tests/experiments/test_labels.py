import numpy as np
import pandas as pd
import pytest

from bnca.exceptions import InputError
from bnca.experiments.labels import find_column, listed, read_labels, usual_label

NAMES = ["Width", "Height", "species"]


@pytest.mark.parametrize("wanted", ["species", "Species", " SPECIES "])
def test_column_is_found_whatever_its_capitals(wanted):
    assert find_column(NAMES, wanted, "--label") == "species"


def test_capitals_matter_where_two_columns_differ_by_them():
    assert find_column(["a", "A"], "A", "--label") == "A"


def test_unknown_column_names_what_is_like_it():
    with pytest.raises(InputError, match=r"--label: .*'spezies'\. Is it 'species'\?"):
        find_column(NAMES, "spezies", "--label")
    with pytest.raises(InputError, match="The columns are Width, Height, species"):
        find_column(NAMES, "zzz", "--label")


def test_usual_names_of_labels():
    assert usual_label(["x", "Target"]) == "Target"
    assert usual_label(["x", "z"]) is None


def test_long_lists_are_cut():
    assert listed([str(i) for i in range(15)]).endswith("11 and 3 more")


def test_classes_in_the_order_that_a_person_expects():
    labels = read_labels(pd.Series(["10", "9", "2"] * 5), "k")
    assert labels.class_names == ("2", "9", "10")
    assert labels.y[:3].tolist() == [2, 1, 0]
    labels = read_labels(pd.Series(["b", "A", "c"] * 5), "k")
    assert labels.class_names == ("A", "b", "c")


def test_rows_without_a_label_and_small_classes_are_left_out_and_named():
    labels = read_labels(pd.Series(["a", "b"] * 6 + ["", "?", "rare"]), "k")
    assert labels.rows.tolist() == list(range(12))
    assert labels.class_names == ("a", "b")
    assert labels.notes[0] == "2 rows without a label are left out."
    assert "classes of fewer than 5 rows: 'rare' (1)" in labels.notes[1]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([None] * 20, "is empty"),
        (["a"] * 20, "nothing but 'a'"),
        (["a"] * 20 + ["b"] * 2, r"1 has 5 rows or more, and two are needed.*'b' \(2\)"),
        (np.linspace(0, 1, 100), "a number to predict.*--bins 3"),
        (np.arange(100), "a number to predict"),
        ([f"name {i}" for i in range(100)], "names or ids of rows"),
        ([f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(100)], "dates"),
    ],
)
def test_what_is_no_label_is_refused_with_a_way_out(values, words):
    with pytest.raises(InputError, match=words):
        read_labels(pd.Series(values), "k")


def test_bins_cut_numbers_into_classes_of_like_size():
    values = pd.Series(np.random.default_rng(0).normal(size=300))
    labels = read_labels(values, "k", bins=3)
    assert np.bincount(labels.y).tolist() == [100, 100, 100]
    assert labels.class_names[0].startswith("up to -0.")
    assert values[labels.y == 0].max() < values[labels.y == 1].min()


def test_bins_of_words_or_of_one_number_are_refused():
    with pytest.raises(InputError, match="must hold numbers only; 3 entries are none"):
        read_labels(pd.Series(["x", "y", "z", "1"]), "k", bins=2)
    with pytest.raises(InputError, match="nearly nothing but one number"):
        read_labels(pd.Series([1] * 100), "k", bins=3)
