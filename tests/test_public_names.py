import subprocess
import sys

import pytest

import bnca
from bnca import rivals


@pytest.mark.parametrize("name", bnca.__all__)
def test_public_name_is_there(name):
    assert getattr(bnca, name) is not None
    assert name in dir(bnca)


def test_rivals_are_public():
    assert set(rivals.__all__) <= set(bnca.__all__)
    assert all(getattr(bnca, name) is getattr(rivals, name) for name in rivals.__all__)


def test_rivals_are_imported_only_when_asked_for():
    loaded = "print('bnca.rivals' in sys.modules)"
    script = f"import sys, bnca; {loaded}; bnca.LMNN; {loaded}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]


def test_name_that_is_not_there():
    with pytest.raises(AttributeError, match="no attribute 'LMMN'"):
        bnca.LMMN  # noqa: B018
