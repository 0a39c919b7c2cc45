import numpy as np
import pandas as pd
import pytest

from bnca.experiments.entries import are_dates, as_numbers, as_text


def numbers(*entries):
    return as_numbers(pd.Series(list(entries), dtype=object)).tolist()


@pytest.mark.parametrize("nothing", ["", " ", "?", "NA", "n/a", "NaN", "null", None, float("nan")])
def test_what_stands_for_nothing(nothing):
    assert as_text(pd.Series([nothing, "x"], dtype=object)).tolist() == [None, "x"]


def test_whole_floats_are_the_same_class_as_integers():
    assert as_text(pd.Series([1.0, 2.0, np.nan])).tolist() == ["1", "2", None]
    assert as_text(pd.Series([1.5, 2.0])).tolist() == ["1.5", "2.0"]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (["1.5", "-2e3"], [1.5, -2000]),
        (["1,5", "2"], [1.5, 2]),
        (["1.250,5", "3,0"], [1250.5, 3]),
        (["1,250", "12,000"], [1250, 12000]),
        (["5 %", "€ 7", "$8.5"], [5, 7, 8.5]),
    ],
)
def test_numbers_as_people_write_them(entries, expected):
    assert numbers(*entries) == expected


def test_words_underlines_and_infinity_are_no_numbers():
    assert np.isnan(numbers("x", "1_000", "inf", None)).all()


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("2024-01-31", True),
        ("2024-01-31 12:00", True),
        ("31.1.2024", True),
        ("1/31/24", True),
        ("1.5", False),
        ("x", False),
    ],
)
def test_dates(entry, expected):
    assert are_dates(pd.Series([entry, None], dtype=object)) is expected


def test_nothing_is_no_date():
    assert not are_dates(pd.Series([None, None], dtype=object))
