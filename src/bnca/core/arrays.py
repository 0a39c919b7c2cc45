"""The few array types that the package speaks of."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.floating[Any]]
"""Floating point of the data's own precision, float32 or float64."""

Doubles: TypeAlias = npt.NDArray[np.float64]
"""What is summed or inverted: always float64."""

Integers: TypeAlias = npt.NDArray[np.intp]
"""Row numbers and class codes."""

Rows: TypeAlias = Any
"""Rows of a table: a float array, or a SciPy sparse matrix in CSR format."""
