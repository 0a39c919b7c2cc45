"""Files as people have them, and what is said where one cannot be read."""

import gzip

import numpy as np
import pandas as pd
import pytest

from bnca.exceptions import InputError
from bnca.experiments.table import read_table

PLAIN = "a,b,kind\n1,2.5,x\n2,3.5,y\n"


def written(tmp_path, content, name="table.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " "])
def test_separator_is_found_out(tmp_path, separator):
    frame = read_table(written(tmp_path, PLAIN.replace(",", separator)))
    assert list(frame.columns) == ["a", "b", "kind"]
    assert frame["kind"].tolist() == ["x", "y"]


def test_decimal_commas_do_not_cut(tmp_path):
    frame = read_table(written(tmp_path, "a;b\n1,5;x\n2,5;y\n3,5;x\n"))
    assert frame["a"].tolist() == ["1,5", "2,5", "3,5"]


def test_text_with_separators_and_line_breaks_in_quotes(tmp_path):
    frame = read_table(written(tmp_path, 'a,b\n"1, or so","two\nlines"\n2,x\n'))
    assert frame["a"].tolist() == ["1, or so", "2"]
    assert frame["b"].tolist() == ["two\nlines", "x"]


def test_single_column_is_a_table(tmp_path):
    assert list(read_table(written(tmp_path, "kind\nx\ny\n")).columns) == ["kind"]


def test_codes_keep_their_zeros(tmp_path):
    assert read_table(written(tmp_path, "code,b\n007,1\n"))["code"].tolist() == ["007"]


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (gzip.compress(PLAIN.encode()), "utf-8"),
        (b"\xef\xbb\xbf" + PLAIN.encode(), "utf-8"),
        (PLAIN.encode("utf-16"), "utf-16"),
        (PLAIN.replace("\n", "\r\n").encode(), "utf-8"),
    ],
)
def test_gzip_marks_and_line_ends(tmp_path, content, encoding):
    frame = read_table(written(tmp_path, content), encoding=encoding)
    assert list(frame.columns) == ["a", "b", "kind"]
    assert len(frame) == 2


def test_parquet_whatever_its_name(tmp_path):
    frame = pd.DataFrame({"a": [1.0, np.nan], "kind": pd.Categorical(["x", "y"])})
    frame.to_parquet(tmp_path / "table.csv")
    pd.testing.assert_frame_equal(read_table(tmp_path / "table.csv"), frame)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "empty"),
        ("a,b\n", "no rows"),
        ("a,a\n1,2\n", "more than one column is called 'a'"),
        ("a,b\n1,2\n3,4,5\n", "line 3 has 3 values where the first line names 2 columns"),
        (b"a,b\nM\xfcll,2\n", "Try --encoding cp1252"),
        (b"\xff\xfea\x00", "Try --encoding utf-16"),
        (b"PK\x03\x04rest", "save the sheet as CSV"),
        (b"PAR1 and nothing else", "cannot be read as Parquet"),
        (b"a\x00b", "no text, nor Parquet"),
        (b"\x1f\x8b\x08broken", "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, content, words):
    with pytest.raises(InputError, match=words) as error:
        read_table(written(tmp_path, content))
    assert "table.csv" in str(error.value)


def test_unknown_encoding_is_named(tmp_path):
    with pytest.raises(InputError, match="no encoding 'utf-9'"):
        read_table(written(tmp_path, PLAIN), encoding="utf-9")


def test_missing_file_names_its_neighbours(tmp_path):
    path = written(tmp_path, PLAIN, "flowers.csv")
    with pytest.raises(InputError, match=r"is it flowers\.csv\?"):
        read_table(path.with_name("flower.csv"))
    with pytest.raises(InputError, match="no folder"):
        read_table(tmp_path / "nowhere" / "x.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_table(tmp_path)
