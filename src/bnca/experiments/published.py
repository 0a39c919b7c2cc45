"""What the paper prints: its three tables, and numbers from its text.

In a table's rows stand the data set, its key (see `TABLES`) and mean±deviation of each method, in
the order of `METHODS`; the paper stars the runner-up where BNCA's lead on it is significant.  Its ±
cannot be a standard deviation of accuracy in points: with 100 test rows chance alone makes four.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

METHODS = ("PCA", "NCA", "NCM", "LMNN", "BML", "BNCA")
"""The paper's methods in its order; Table 3 has no PCA."""

_ACCURACY_BY_SIZE = """
Balance     10 69.42±0.20  67.85±0.35  66.28±0.20  70.38±0.33  71.38±0.33* 75.42±0.31
Balance     20 74.53±0.12  74.38±0.29  72.62±0.13  77.38±0.28* 76.74±0.26  80.76±0.26
Balance     30 77.23±0.10  79.38±0.18  76.16±0.10  81.18±0.16* 79.74±0.14  83.26±0.14
Ionosphere  10 68.91±0.17  70.97±0.28  68.91±0.17  73.54±0.30  73.68±0.28* 76.75±0.28
Ionosphere  20 73.12±0.15  75.75±0.21  73.19±0.15  78.64±0.23* 76.52±0.20  81.22±0.21
Ionosphere  30 76.14±0.11  80.96±0.17  77.82±0.10  83.88±0.16* 80.86±0.16  85.96±0.16
Spambase    10 73.42±0.23  70.38±0.37  70.08±0.24  72.85±0.35  75.38±0.35* 79.42±0.34
Spambase    20 77.53±0.20  76.74±0.24  75.56±0.20  79.38±0.25* 78.52±0.24  83.76±0.24
Spambase    30 79.53±0.14  81.74±0.23  79.74±0.14  84.38±0.23* 80.97±0.22  86.76±0.22
"""

_ACCURACY_BY_NOISE = """
Caltech-10   0 80.12±0.12  81.49±0.20  76.65±0.20  82.84±0.21* 80.68±0.20  83.89±0.20
Caltech-10  10 79.02±0.14  79.03±0.22  74.49±0.20  79.38±0.23* 79.11±0.22  81.79±0.22
Caltech-10  20 76.15±0.14  74.59±0.26  68.97±0.20  74.27±0.28  76.53±0.26* 79.41±0.24
Caltech-10  30 68.96±0.16  66.05±0.34  61.84±0.20  65.09±0.16  68.31±0.34* 73.79±0.31
MNIST        0 89.12±0.12  92.05±0.20  92.19±0.20  92.84±0.21  90.68±0.20  93.21±0.20
MNIST       10 87.49±0.14  90.35±0.22  88.91±0.20  91.08±0.23  89.11±0.22  91.79±0.22
MNIST       20 85.15±0.14  84.59±0.26  83.21±0.20  84.27±0.28  86.53±0.26* 88.41±0.24
MNIST       30 80.96±0.16  78.84±0.34  76.37±0.20  78.09±0.16  80.31±0.34* 84.38±0.31
FRGC-2       0 94.39±0.17  95.52±0.21  93.81±0.21  98.50±0.19  94.42±0.19  98.50±0.18
FRGC-2      10 89.54±0.18  88.85±0.25  85.93±0.21  90.12±0.25* 89.35±0.25  93.61±0.24
FRGC-2      20 83.72±0.21  80.81±0.31  77.45±0.21  81.26±0.33  84.11±0.29* 86.34±0.30
FRGC-2      30 76.25±0.25  73.88±0.38  69.62±0.21  74.64±0.36  76.92±0.32* 78.89±0.35
"""

_SECONDS = """
Caltech-10   0 17.89±0.11  16.64±0.12  32.85±0.12  16.02±0.11  11.72±0.11
MNIST        0 16.60±0.09  15.95±0.09  17.95±0.10  15.51±0.08  10.43±0.08
FRGC-2       0 20.06±0.12  19.33±0.12  22.56±0.14  18.71±0.12  13.50±0.12
"""


class Published(NamedTuple):
    """A number of the paper's tables: in per cent, or in seconds."""

    mean: float
    plus_minus: float
    starred: bool


Table: TypeAlias = "Mapping[tuple[str, int], Mapping[str, Published]]"


def _table(text: str, methods: tuple[str, ...]) -> Table:
    out = {}
    for line in text.strip().splitlines():
        name, key, *numbers = line.split()
        out[name, int(key)] = {
            method: _number(text) for method, text in zip(methods, numbers, strict=True)
        }
    return out


def _number(text: str) -> Published:
    mean, plus_minus = text.rstrip("*").split("±")
    return Published(float(mean), float(plus_minus), text.endswith("*"))


TABLES: Mapping[str, Table] = {
    "table1": _table(_ACCURACY_BY_SIZE, METHODS),
    "table2": _table(_ACCURACY_BY_NOISE, METHODS),
    "table3": _table(_SECONDS, METHODS[1:]),
}
"""By data set and rows per class (Table 1), per cent of wrong labels (Table 2) or 0 (Table 3)."""

CAPTIONS: Mapping[str, tuple[str, str]] = {
    "table1": ("Table 1: few training rows", "Accuracy in % on 100 test rows."),
    "table2": ("Table 2: wrong training labels", "Accuracy in % on test rows with true labels."),
    "table3": (
        "Table 3: time to fit",
        "Seconds of one processor for the fit alone, with the chosen settings.",
    ),
}
"""Title and what the numbers are."""

FASTER = {"NCA": 61.2, "BML": 41.0}
"""By how many per cent BNCA is said to train faster "on the average"."""

PRECISION_GAIN = {"normal": 1.0, "difficult": 5.0}
"""Points of modified mean average precision that BNCA is said to be ahead of NCA."""

REFERENCE = "D. Wang and X. Tan, Bayesian Neighbourhood Component Analysis, arXiv:1604.02354, 2016"
