"""What is known of each data set: how it is made, where it lies, what it must hold."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bnca.blocks import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bnca.core.arrays import Integers

UCI = "CC BY 4.0"
"""Licence of what the UCI repository hands out."""


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
