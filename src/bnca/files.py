"""Files that are either whole or as they were."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file that takes the place of `path` only once it is whole.

    Parameters
    ----------
    path : Path
        Its folder must exist.

    Yields
    ------
    Path
        An empty file beside `path`, with the same suffix.  Where the block raises, it is removed
        and `path` stays as it was.
    """
    handle, name = tempfile.mkstemp(suffix=path.suffix, dir=path.parent)
    os.close(handle)
    new = Path(name)
    try:
        yield new
        new.chmod(0o644)  # a temporary file is for its maker's eyes only
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
