"""What may be typed after an option, checked as it is read."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def whole(least: int, most: int) -> Callable[[str], int]:
    """Whole numbers within limits, both included."""

    def integer(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            msg = f"must be from {least} to {most}; got {value}"
            raise argparse.ArgumentTypeError(msg)
        return value

    return integer


def share(text: str) -> float:
    """Read a share of labels to make wrong."""
    value = float(text)
    if not 0 <= value <= 0.9:
        msg = f"must be from 0 to 0.9 (0.3 is 30 %); got {text}"
        raise argparse.ArgumentTypeError(msg)
    return value
