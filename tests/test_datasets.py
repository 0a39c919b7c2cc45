import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.datasets

from bnca.datasets import REGISTRY, Dataset, MissingData, load, load_arrays

FOLDER = os.environ.get("BNCA_DATA")
IN_FILES = [name for name, entry in REGISTRY.items() if entry.make is None]


def save(folder, name, **arrays):
    np.savez(folder / f"{name}.npz", **arrays)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(12, 3)).astype(np.float32), np.repeat([0, 1], 6)


@pytest.fixture(autouse=True)
def no_folder(monkeypatch):
    monkeypatch.delenv("BNCA_DATA", raising=False)


def test_balance_is_the_rule_on_all_states():
    data = load("balance_scale")
    expected = []
    for a in range(1, 6):
        for b in range(1, 6):
            for c in range(1, 6):
                for d in range(1, 6):
                    side = "L" if a * b > c * d else "R" if a * b < c * d else "B"
                    expected.append((a, b, c, d, side))
    found = [(*map(int, x), data.class_names[k]) for x, k in zip(data.X, data.y, strict=True)]
    assert found == expected
    assert data.as_expected
    assert data.source == "generated"


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits"])
def test_built_in_sets_need_neither_folder_nor_network(name):
    data = load(name)
    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    assert len(data.class_names) == y.max() + 1
    assert data.source == "scikit-learn"
    assert data.image_shape == ((8, 8) if name == "digits" else None)


def test_file_in_a_folder(tmp_path, rows, monkeypatch):
    X, y = rows
    save(
        tmp_path,
        "mine",
        X=X,
        y=y,
        class_names=["a", "b"],
        is_test=y == 1,
        image_shape=(3, 1),
        image_order="F",
        writer=np.arange(12),
    )
    data = load("mine", tmp_path)
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.is_test, y == 1)
    np.testing.assert_array_equal(data.extras["writer"], np.arange(12))
    assert data.class_names == ("a", "b")
    assert (data.image_shape, data.image_order) == ((3, 1), "F")
    assert (data.source, data.as_expected) == ("data folder", True)
    monkeypatch.setenv("BNCA_DATA", str(tmp_path))
    assert load("mine").checksum == data.checksum
    np.testing.assert_array_equal(load_arrays("mine")["writer"], np.arange(12))


def test_checksum_is_of_the_content(rows):
    X, y = rows
    data = Dataset("a", X, y, ("a", "b"))
    assert Dataset("b", X.astype(float), y.astype(np.int32), ("c", "d")).checksum == data.checksum
    changed = X.copy()
    changed[3, 1] += 1
    assert Dataset("a", changed, y, ("a", "b")).checksum != data.checksum
    assert Dataset("a", X, 1 - y, ("a", "b")).checksum != data.checksum
    assert Dataset("a", X.reshape(6, 6), y, ("a", "b")).checksum != data.checksum


def test_content_that_the_registry_does_not_know_is_said(tmp_path, rows):
    X, y = rows
    save(tmp_path, "spambase", X=X, y=y)
    assert not load("spambase", tmp_path).as_expected


def test_rows_without_an_order_are_sorted_with_all_that_belongs_to_them(tmp_path, rows):
    X, y = rows
    save(tmp_path, "spambase", X=X, y=y, is_test=y == 1, number=np.arange(12), version=[3])
    data = load("spambase", tmp_path)
    assert (np.diff(data.X[:, 0]) > 0).all()
    number = data.extras["number"]
    np.testing.assert_array_equal(data.X, X[number])
    np.testing.assert_array_equal(data.y, y[number])
    np.testing.assert_array_equal(data.is_test, y[number] == 1)
    np.testing.assert_array_equal(data.extras["version"], [3])
    shuffled = np.random.default_rng(1).permutation(12)
    save(tmp_path, "spambase", X=X[shuffled], y=y[shuffled])
    assert load("spambase", tmp_path).checksum == data.checksum


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": None}, "no array y"),
        ({"X": np.zeros((12, 2, 2))}, r"must have shape \(n, d\)"),
        ({"y": np.zeros(11, int)}, r"must have shape \(n, d\)"),
        ({"y": np.linspace(0, 1, 12)}, "y must hold integers"),
        ({"y": np.arange(12) - 1}, "y must hold integers from 0"),
        ({"X": np.full((12, 3), np.nan)}, "finite"),
        ({"X": np.full((12, 3), "a")}, "finite numbers"),
        ({"is_test": np.zeros(3, bool)}, "is_test must have shape"),
    ],
)
def test_bad_file_is_refused_with_its_reason(tmp_path, rows, change, message):
    arrays = {"X": rows[0], "y": rows[1]} | change
    save(tmp_path, "bad", **{key: a for key, a in arrays.items() if a is not None})
    with pytest.raises(MissingData, match=message):
        load("bad", tmp_path)


def test_file_that_is_no_archive(tmp_path):
    (tmp_path / "bad.npz").write_bytes(b"PK nonsense")
    with pytest.raises(MissingData, match=r"bad\.npz in the data folder cannot be read"):
        load("bad", tmp_path)
    save(tmp_path, "objects", X=np.array([[None]], dtype=object), y=[0])
    with pytest.raises(MissingData, match="cannot be read"):  # pickles are never opened
        load("objects", tmp_path)


def test_missing_set_says_how_to_get_it(tmp_path):
    with pytest.raises(MissingData, match=r"--data-dir or BNCA_DATA\. Or allow downloads: .* 59\)"):
        load("ionosphere")
    with pytest.raises(MissingData, match=r"there is no umist_faces\.npz") as raised:
        load("umist_faces", tmp_path)
    assert "cannot be fetched by a program" in str(raised.value)
    assert str(tmp_path) not in str(raised.value)  # reasons are printed in reports
    with pytest.raises(MissingData, match=r"no data set 'irsi'.*iris"):
        load("irsi")
    with pytest.raises(MissingData, match="mnist_test_hardness is missing"):
        load_arrays("mnist_test_hardness")


def stand_in(monkeypatch, X, labels):
    asked = []

    def fetch_openml(**options):
        asked.append(options)
        names = [f"a{j}" for j in range(X.shape[1])]
        return SimpleNamespace(data=X, target=np.asarray(labels), feature_names=names)

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
    return asked


@pytest.fixture
def known(monkeypatch, rows):
    """A registry that knows "spambase" as these rows, from OpenML in another order."""
    X, y = rows
    order = np.lexsort([y, *X.T[::-1]])
    checksum = Dataset("spambase", X[order], y[order], ("0", "1")).checksum
    monkeypatch.setitem(REGISTRY, "spambase", REGISTRY["spambase"]._replace(checksum=checksum))
    return X, y


def test_download(monkeypatch, known):
    X, y = known
    asked = stand_in(monkeypatch, X.astype(float), y.astype(str))
    with pytest.raises(MissingData, match="allow downloads"):
        load("spambase")
    assert not asked
    data = load("spambase", allow_download=True)
    assert [options["data_id"] for options in asked] == [44]
    assert data.as_expected
    assert data.source == "OpenML 44"
    assert data.feature_names == ("a0", "a1", "a2")
    assert data.class_names == ("0", "1")


def test_file_in_the_folder_comes_before_a_download(monkeypatch, known, tmp_path):
    asked = stand_in(monkeypatch, known[0], known[1].astype(str))
    save(tmp_path, "spambase", X=known[0], y=known[1])
    assert load("spambase", tmp_path, allow_download=True).source == "data folder"
    assert not asked


def test_download_of_other_content_is_refused(monkeypatch, known):
    X, y = known
    changed = X.copy()
    changed[5, 2] += 1
    stand_in(monkeypatch, changed, y.astype(str))
    with pytest.raises(MissingData, match="OpenML 44 has changed, or was never spambase: checksum"):
        load("spambase", allow_download=True)


def test_download_with_strange_labels_is_refused(monkeypatch, known):
    stand_in(monkeypatch, known[0], np.where(known[1], "spam", "ham"))
    with pytest.raises(MissingData, match="OpenML 44 is not spambase: it has labels ham, spam"):
        load("spambase", allow_download=True)


def test_download_without_a_network(monkeypatch):
    def fetch_openml(**options):
        raise OSError("Name or service not known")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
    with pytest.raises(MissingData, match="could not be fetched from OpenML 554: Name or service"):
        load("mnist", allow_download=True)


def test_download_with_a_published_test_part(monkeypatch, rows):
    X, y = rows
    place = REGISTRY["usps"].openml._replace(test_from=9)
    entry = REGISTRY["usps"]._replace(openml=place, checksum=Dataset("usps", X, y, ()).checksum)
    monkeypatch.setitem(REGISTRY, "usps", entry)
    stand_in(monkeypatch, X, (y + 1).astype(str))  # OpenML's labels there are 1 to 10
    data = load("usps", allow_download=True)
    np.testing.assert_array_equal(np.flatnonzero(data.is_test), [9, 10, 11])
    assert data.image_shape == (16, 16)


def test_every_entry_can_be_had_somewhere():
    for name, entry in REGISTRY.items():
        assert entry.title, name
        assert entry.licence, name
        assert entry.make or entry.openml or entry.note, name
        assert entry.make or len(entry.checksum) == 64, name


@pytest.mark.skipif(FOLDER is None, reason="BNCA_DATA names no data folder")
@pytest.mark.parametrize("name", IN_FILES)
def test_files_hold_what_the_registry_says(name):
    if not Path(FOLDER, f"{name}.npz").is_file():
        pytest.skip(f"{name}.npz is not in the data folder")
    data = load(name, FOLDER)
    assert data.as_expected
    assert len(data.class_names) == data.y.max() + 1
    assert np.bincount(data.y).min() > 0
    place = REGISTRY[name].openml
    if place is not None:
        assert len(place.labels) == len(data.class_names)
        if place.test_from is not None:
            np.testing.assert_array_equal(data.is_test, np.arange(len(data.y)) >= place.test_from)


@pytest.mark.skipif(FOLDER is None, reason="BNCA_DATA names no data folder")
def test_generated_balance_is_the_file():
    with np.load(Path(FOLDER, "balance_scale.npz")) as file:
        X, y, names = file["X"], file["y"], file["class_names"]
    ours = load("balance_scale")
    theirs = {tuple(x): str(names[k]) for x, k in zip(X, y, strict=True)}
    assert {tuple(x): ours.class_names[k] for x, k in zip(ours.X, ours.y, strict=True)} == theirs
