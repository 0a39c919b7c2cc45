"""Data sets by name: made here, shipped with scikit-learn, in a folder of yours, or on OpenML.

A data folder holds ``<name>.npz`` files with X (n, d) and y (n integers from 0), and where it makes
sense class_names, feature_names, is_test (the published split), image_shape and image_order.  It is
named by an argument, or by the environment variable BNCA_DATA.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bnca.registry import IMAGES, REGISTRY, Dataset, Entry, OpenML

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "FOLDER_VARIABLE",
    "REGISTRY",
    "Dataset",
    "Entry",
    "MissingData",
    "OpenML",
    "data_folder",
    "load",
    "load_arrays",
]

FOLDER_VARIABLE = "BNCA_DATA"
"""Environment variable that names the data folder."""


class MissingData(FileNotFoundError):  # noqa: N818 - it is a state of the machine, no mistake
    """A data set is not at hand; the message says why, and how to get it."""


def load(
    name: str, data_dir: str | os.PathLike[str] | None = None, *, allow_download: bool = False
) -> Dataset:
    """Load a data set by its name.

    Parameters
    ----------
    name : str
        A name in `REGISTRY`, or that of a file in the data folder, without ``.npz``.
    data_dir : path, default=None
        Data folder; None takes the one that the environment variable BNCA_DATA names, if any.
    allow_download : bool, default=False
        Whether a set that is not at hand may be fetched from OpenML, by scikit-learn, which keeps
        a copy.

    Returns
    -------
    Dataset
        The set.  Its content is not compared with the registry's, see `Dataset.as_expected`, but
        that of a download is.

    Raises
    ------
    MissingData
        Where the set is not at hand; the message is the reason, and what to do.
    """
    entry = REGISTRY.get(name)
    if entry is not None and entry.make is not None:
        return entry.make()
    folder = data_folder(data_dir)
    path = None if folder is None else folder / f"{name}.npz"
    if path is not None and path.is_file():
        return _sorted_unless_ordered(_from_file(path, name, entry), entry)
    if entry is None:
        known = ", ".join(sorted(REGISTRY))
        raise MissingData(f"There is no data set {name!r}{_looked(path)}. Known: {known}.")
    if entry.openml is not None and allow_download:
        return _download(name, entry, entry.openml)
    raise MissingData(_reason(name, entry, path))


def load_arrays(name: str, data_dir: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """All arrays of a file in the data folder that need not hold rows and labels.

    Parameters
    ----------
    name : str
        Name of the file, without ``.npz``.
    data_dir : path, default=None
        As for `load`.

    Returns
    -------
    dict
        Arrays by name.
    """
    folder = data_folder(data_dir)
    path = None if folder is None else folder / f"{name}.npz"
    if path is None or not path.is_file():
        raise MissingData(f"{name} is missing{_looked(path)}.{_folder_advice(path)}")
    return _read(path)


def data_folder(data_dir: str | os.PathLike[str] | None = None) -> Path | None:
    """Data folder: the one given, or the one that BNCA_DATA names, or None."""
    stated = data_dir if data_dir is not None else os.environ.get(FOLDER_VARIABLE)
    return Path(stated).expanduser() if stated else None


def _reason(name: str, entry: Entry, path: Path | None) -> str:
    """Why a set is missing, and how to get it."""
    ways = _folder_advice(path)
    if entry.openml is not None:
        ways += (
            f" Or allow downloads: scikit-learn fetches it from OpenML (data_id "
            f"{entry.openml.data_id})."
        )
    elif entry.note:
        ways += f" {entry.note}"
    return f"{name} ({entry.title}; licence: {entry.licence}) is missing{_looked(path)}.{ways}"


def _looked(path: Path | None) -> str:
    # The folder's own path stays out: reasons are printed in reports that are passed on.
    return "" if path is None else f": there is no {path.name} in the data folder"


def _folder_advice(path: Path | None) -> str:
    if path is not None:
        return ""
    return f" Name a data folder that holds it with --data-dir or {FOLDER_VARIABLE}."


def _read(path: Path) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {key: file[key] for key in file.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise MissingData(f"{path.name} in the data folder cannot be read: {error}") from error


def _from_file(path: Path, name: str, entry: Entry | None) -> Dataset:
    """Check a file of the data folder and wrap it."""
    arrays = _read(path)
    trouble = _trouble(arrays)
    if trouble:
        raise MissingData(f"{path.name} in the data folder cannot be used: {trouble}.")
    X, y = arrays.pop("X"), arrays.pop("y").astype(np.intp)
    names = arrays.pop("class_names", None)
    columns = arrays.pop("feature_names", None)
    shape = arrays.pop("image_shape", None)
    return Dataset(
        name,
        X,
        y,
        class_names=tuple(map(str, range(y.max() + 1) if names is None else names)),
        feature_names=None if columns is None else tuple(map(str, columns)),
        is_test=arrays.pop("is_test", None),
        image_shape=None if shape is None else tuple(map(int, shape)),
        image_order=str(arrays.pop("image_order", "C")),
        licence="unknown" if entry is None else entry.licence,
        source="data folder",
        extras=arrays,
    )


def _trouble(arrays: Mapping[str, Any]) -> str:
    """What is wrong with the arrays of a file, in words; empty where nothing is."""
    missing = {"X", "y"} - set(arrays)
    if missing:
        return f"it has no array {' or '.join(sorted(missing))}"
    X, y = arrays["X"], arrays["y"]
    if X.ndim != 2 or y.shape != X.shape[:1] or not len(y):
        return f"X must have shape (n, d) and y (n,); got {X.shape} and {y.shape}"
    if y.dtype.kind not in "iu" or y.min() < 0:
        return f"y must hold integers from 0; got {y.dtype} from {y.min()}"
    if X.dtype.kind not in "biuf" or (X.dtype.kind == "f" and not np.isfinite(X).all()):
        return "X must hold finite numbers"
    if "is_test" in arrays and arrays["is_test"].shape != y.shape:
        return f"is_test must have shape {y.shape}; got {arrays['is_test'].shape}"
    return ""


def _sorted_unless_ordered(data: Dataset, entry: Entry | None) -> Dataset:
    """Rows sorted by their first column, then the next, and so on, last by label."""
    if entry is None or entry.ordered:
        return data
    order = np.lexsort([data.y, *data.X.astype(np.float32).T[::-1]])
    extras = {key: a[order] if a.shape[:1] == order.shape else a for key, a in data.extras.items()}
    is_test = None if data.is_test is None else data.is_test[order]
    return replace(data, X=data.X[order], y=data.y[order], is_test=is_test, extras=extras)


def _download(name: str, entry: Entry, place: OpenML) -> Dataset:
    """Fetch a set from OpenML, and refuse it unless its content is the one we know."""
    from sklearn.datasets import fetch_openml

    source = f"OpenML {place.data_id}"
    try:
        found = fetch_openml(data_id=place.data_id, as_frame=False, parser="liac-arff")
    except (OSError, ValueError) as error:  # no network, or no such set
        raise MissingData(f"{name} could not be fetched from {source}: {error}") from error
    labels = np.asarray(found.target).astype(str)
    strange = sorted(set(labels) - set(place.labels))
    if strange:
        raise MissingData(f"{source} is not {name}: it has labels {', '.join(strange[:5])}.")
    code = {label: i for i, label in enumerate(place.labels)}
    y = np.array([code[label] for label in labels], dtype=np.intp)
    is_test = None if place.test_from is None else np.arange(len(y)) >= place.test_from
    data = _sorted_unless_ordered(
        Dataset(
            name,
            np.asarray(found.data, dtype=np.float32),
            y,
            class_names=place.labels,
            feature_names=tuple(map(str, found.feature_names)),
            is_test=is_test,
            image_shape=IMAGES.get(name),
            licence=entry.licence,
            source=source,
        ),
        entry,
    )
    if not data.as_expected:
        raise MissingData(
            f"{source} has changed, or was never {name}: checksum {data.checksum} instead of "
            f"{entry.checksum}."
        )
    return data
