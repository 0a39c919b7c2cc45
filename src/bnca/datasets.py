"""Data sets by name: made here, shipped with scikit-learn, in a folder of yours, or on OpenML.

A data folder holds ``<name>.npz`` files with X (n, d) and y (n integers from 0), and where it makes
sense class_names, feature_names, is_test (the published split), image_shape and image_order.  It is
named by an argument, or by the environment variable BNCA_DATA.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bnca.blocks import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bnca.core.arrays import Integers

FOLDER_VARIABLE = "BNCA_DATA"
"""Environment variable that names the data folder."""

UCI = "CC BY 4.0"
"""Licence of what the UCI repository hands out."""


class MissingData(FileNotFoundError):  # noqa: N818 - it is a state of the machine, no mistake
    """A data set is not at hand; the message says why, and how to get it."""


class OpenML(NamedTuple):
    """Where OpenML keeps a set.

    Attributes
    ----------
    data_id : int
        Its number.
    labels : tuple of str
        Its labels, in the order of our class codes.
    test_from : int or None
        Row with which the published test part starts, for sets that have one.
    """

    data_id: int
    labels: tuple[str, ...]
    test_from: int | None = None


class Entry(NamedTuple):
    """What is known of a data set.

    Attributes
    ----------
    title : str
        What it holds.
    licence : str
        Terms of use.
    make : callable or None
        Makes it, from nothing or from what scikit-learn ships.
    openml : OpenML or None
        Where a person gets it.
    checksum : str or None
        `Dataset.checksum` of the content that our numbers are about.
    ordered : bool
        Whether the order of the rows means something.  Where it does not, rows are sorted, so that
        a random draw picks the same ones wherever the set came from.
    note : str
        How to get it where no program can.
    """

    title: str
    licence: str
    make: Callable[[], Dataset] | None = None
    openml: OpenML | None = None
    checksum: str | None = None
    ordered: bool = True
    note: str = ""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows with labels, and what is known of them.

    Attributes
    ----------
    name : str
        Its name in the registry, or of its file.
    X : (n, d) array
        Rows, in the type that they are kept in: images may be uint8.
    y : (n,) integers
        Class codes, 0 .. n_classes - 1.
    class_names : tuple of str
        Name of each class.
    feature_names : tuple of str or None
        Name of each column.
    is_test : (n,) bool or None
        Published test part.
    image_shape : tuple of int or None
        A row is an image: ``X[i].reshape(image_shape, order=image_order)``.
    image_order : str
        "C" or "F".
    licence : str
        Terms of use.
    source : str
        Where it came from: "generated", "scikit-learn", "data folder" or "OpenML <number>".
    extras : mapping of str to array
        Whatever else the file holds, such as labels that people gave.
    """

    name: str
    X: np.ndarray[Any, Any]
    y: Integers
    class_names: tuple[str, ...]
    feature_names: tuple[str, ...] | None = None
    is_test: np.ndarray[Any, Any] | None = None
    image_shape: tuple[int, ...] | None = None
    image_order: str = "C"
    licence: str = "unknown"
    source: str = "unknown"
    extras: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of shape, rows in single precision and labels: equal content, equal checksum."""
        digest = hashlib.sha256(np.array(self.X.shape, dtype="<i8").tobytes())
        for part in cut(len(self.X), 4096):  # a whole copy of MNIST in single precision is 220 MB
            digest.update(self.X[part].astype("<f4").tobytes())
        digest.update(self.y.astype("<i8").tobytes())
        return digest.hexdigest()

    @property
    def as_expected(self) -> bool:
        """Whether the content is the one that the registry knows; True where it knows none."""
        entry = REGISTRY.get(self.name)
        return entry is None or entry.checksum in {None, self.checksum}


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
    return replace(data, X=data.X[order], y=data.y[order], extras={})


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
        raise MissingData(f"{source} is not {name}: it has labels {strange[:5]}.")
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


def _balance() -> Dataset:
    """All 5⁴ states of a balance: it tips to the side of the larger weight × distance."""
    columns = np.meshgrid(*[np.arange(1.0, 6.0)] * 4, indexing="ij")
    X = np.stack(columns, axis=-1).reshape(-1, 4)
    torque = X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]
    return Dataset(
        "balance_scale",
        X,
        (1 - np.sign(torque)).astype(np.intp),
        class_names=("L", "B", "R"),
        feature_names=("left_weight", "left_distance", "right_weight", "right_distance"),
        licence="none: generated",
        source="generated",
    )


def _built_in(name: str, image_shape: tuple[int, ...] | None = None) -> Callable[[], Dataset]:
    """Make a set from what scikit-learn ships."""

    def make() -> Dataset:
        from sklearn import datasets

        found = getattr(datasets, f"load_{name}")()
        return Dataset(
            name,
            found.data,
            found.target.astype(np.intp),
            class_names=tuple(map(str, found.target_names)),
            feature_names=tuple(map(str, found.feature_names)),
            image_shape=image_shape,
            licence=UCI,
            source="scikit-learn",
        )

    return make


IMAGES = {"mnist": (28, 28), "usps": (16, 16)}
"""Shapes of the images that come from OpenML."""

DIGITS = tuple("0123456789")
FACES = "Academic use, on the terms of those who took the pictures."
BY_HAND = "It cannot be fetched by a program."

REGISTRY: dict[str, Entry] = {
    "balance_scale": Entry(
        "Balance: which way a balance tips",
        "none: generated",
        _balance,
        checksum="ac781fd0348801d23df80f27ec9db8229ec2918858c422a9cab51553c9b2ddda",
    ),
    "breast_cancer": Entry("Breast cancer, Wisconsin", UCI, _built_in("breast_cancer")),
    "digits": Entry("Digits of 8 × 8 pixels", UCI, _built_in("digits", (8, 8))),
    "iris": Entry("Iris flowers", UCI, _built_in("iris")),
    "wine": Entry("Wines of three growers", UCI, _built_in("wine")),
    "ionosphere": Entry(
        "Ionosphere: radar returns",
        UCI,
        openml=OpenML(59, ("b", "g")),
        checksum="613a2cbce3a36a899ad960f61f9c1589692b5825aea7bcb2b86b501b42bcdc2d",
        ordered=False,
    ),
    "spambase": Entry(
        "Spambase: word frequencies in e-mail",
        UCI,
        openml=OpenML(44, ("0", "1")),
        checksum="38bf0a8ac649f90610d2f95dfc6b622d61a38e4e207804251162345a5404e39e",
        ordered=False,
    ),
    "optdigits": Entry(
        "Digits of 8 × 8 pixels, all",
        UCI,
        openml=OpenML(28, DIGITS),
        checksum="85e597307c0802290b5fde973ac3230c88fde71bb61247fe92d764f7e6c81b40",
        ordered=False,
    ),
    "mnist": Entry(
        "MNIST: digits of 28 × 28 pixels",
        "Public, as OpenML states it",
        openml=OpenML(554, DIGITS, test_from=60_000),
        checksum="65f31531ee52c260b3f65c318100727e14ac4658bc2abbbfcb27c0f352a5d1e5",
    ),
    "usps": Entry(
        "USPS: digits of 16 × 16 pixels",
        "Public, as OpenML states it",
        openml=OpenML(41_082, tuple(map(str, range(1, 11))), test_from=7_291),
        checksum="8cb458a0545f173685c7209513bc4f760050ae33131314178684ec7af3db0bbe",
    ),
    "caltech10_surf": Entry(
        "Office-Caltech: counts of SURF words",
        "Academic use",
        checksum="a76d7660c355e4606c1bb3c184715eacccb0a90b71245d69ac7431ddf2d22afa",
        note=BY_HAND,
    ),
    "caltech10_effnet": Entry(
        "Office-Caltech: EfficientNet features",
        "Academic use",
        checksum="dd752bef82775a6220da6a486c38c9837ff1ab9c123d5b7deb585021ce5e4106",
        note=BY_HAND,
    ),
    "umist_faces": Entry(
        "UMIST faces, 20 people",
        FACES,
        checksum="07296cd5413b7d78e2ae67aa145f83e563074df0632c2b4161ee87f0221dbf26",
        note=BY_HAND,
    ),
    "yaleb_faces": Entry(
        "Extended Yale B faces, 38 people",
        FACES,
        checksum="854c798d095e0ebbd120e42d8e35a3267a8727b55c0552426b8433331c98e14b",
        note=BY_HAND,
    ),
    "orl_faces": Entry(
        "ORL faces, 40 people",
        FACES,
        checksum="64b68ad8fb25a0f0f1254c7f8307df52d92072d892d19744124fa17bf27f6e55",
        note=BY_HAND,
    ),
    "cifar10n_effnet20k": Entry(
        "CIFAR-10N: EfficientNet features, labels by people",
        "CC BY-NC 4.0",
        checksum="9b64ac9f48f1d73f7e0b7c05f32f28bd2645d523dc5a75221193a87aa773b263",
        note=BY_HAND,
    ),
    "banking77_minilm": Entry(
        "Banking77: MiniLM embeddings of support tickets",
        "CC BY 4.0",
        checksum="217895e746e1f38abd86b1bf654f8703d1cfbc3139b4e873834aa47c3511d470",
        note=BY_HAND,
    ),
    "trec_minilm": Entry(
        "TREC: MiniLM embeddings of questions",
        "unknown",
        checksum="ad60a9dda041eccab8e1036eb7fa7e8df3b36fd7149b0394224410776458244c",
        note=BY_HAND,
    ),
}
"""Every set that is known by name."""
