"""A row is stale when something changes that it can depend on, and only then."""

import ast
import importlib
import sys

import pytest

from bnca.experiments import code, paper
from bnca.experiments.code import closure, code_version, meaning

FILES = {
    "__init__.py": "",
    "learner.py": """
import math as m
from typing import TYPE_CHECKING
from invented.helpers import near, far as distant
from invented import tables

if TYPE_CHECKING:
    from invented.other import Other

SCALE = 2

class Learner:
    def fit(self) -> "Other":
        from invented.late import late
        return near(SCALE) + tables.inner.FACTOR + late()

class Stranger:
    def fit(self):
        return distant()
""",
    "helpers.py": "def near(x):\n    return x + OFFSET\n\ndef far():\n    return 1\n\nOFFSET = 1\n",
    "tables/__init__.py": "from invented.tables.inner import FACTOR\n",
    "tables/inner.py": "try:\n    FACTOR = 3\nexcept ValueError:\n    FACTOR = 4\nOTHER = 5\n",
    "late.py": "def late():\n    return 7\n",
    "other.py": "class Other:\n    pass\n",
}


@pytest.fixture
def version(tmp_path, monkeypatch):
    """Closure of Learner as text, after files were changed."""

    def write(changes):
        for name, text in (FILES | changes).items():
            path = tmp_path / "invented" / name
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(text, encoding="utf-8")
        importlib.invalidate_caches()
        for cached in (code.read_module, code._read, code._is_module):
            cached.cache_clear()
        return closure([("invented.learner", "Learner")], "invented")

    monkeypatch.syspath_prepend(tmp_path)
    yield write
    for cached in (code.read_module, code._read, code._is_module):
        cached.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "invented"]:
        del sys.modules[name]


def changed(name, old, new):
    assert old in FILES[name]
    return {name: FILES[name].replace(old, new)}


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("learner.py", "near(SCALE)", "near(-SCALE)"),
        ("learner.py", "SCALE = 2", "SCALE = 3"),
        ("helpers.py", "x + OFFSET", "x - OFFSET"),  # in another module
        ("helpers.py", "OFFSET = 1", "OFFSET = 2"),  # one step further
        ("tables/inner.py", "FACTOR = 3", "FACTOR = 30"),  # through a module's name, in a try
        ("late.py", "return 7", "return 8"),  # imported within a function
        ("helpers.py", "def far", "print()\n\ndef far"),  # acts when it is imported
    ],
)
def test_what_can_change_a_result_changes_the_version(version, name, old, new):
    assert version({}) != version(changed(name, old, new))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("learner.py", "return distant()", "return 9"),  # another class of the same module
        ("helpers.py", "return 1", "return 2"),  # named by that class only
        ("tables/inner.py", "OTHER = 5", "OTHER = 6"),
        ("other.py", "pass", "x = 1"),  # for types only
        ("late.py", "    return 7", '    """Seven."""\n    # a comment\n    return  7'),
    ],
)
def test_what_cannot_change_a_result_does_not(version, name, old, new):
    assert version({}) == version(changed(name, old, new))


def test_name_handed_on_by_a_package_is_followed(version):
    through = changed("learner.py", "tables.inner.FACTOR", "tables.FACTOR")
    assert version(through) != version(through | changed("tables/inner.py", "= 3", "= 30"))


def test_rivals_do_not_depend_on_ours_nor_any_row_on_the_report():
    parts = {
        method.name: closure(
            [(code.RUNNER, "*"), (type(method.learner).__module__, type(method.learner).__name__)],
            "bnca",
        )
        for method in paper.methods()
    }
    for name, found in parts.items():
        assert any(part.startswith("bnca.experiments.tuning.choose ") for part in found)
        assert not any(part.startswith(("bnca.report", "bnca.commands")) for part in found)
        ours = any(part.startswith("bnca.bayesian_nca.BayesianNCA ") for part in found)
        assert ours == name.startswith("BNCA")


def test_learners_have_versions_of_their_own():
    classes = {type(method.learner) for method in paper.methods()}
    assert len({code_version(cls) for cls in classes}) == len(classes)


def test_source_outside_the_package_counts_whole():
    assert code_version(test_learners_have_versions_of_their_own) != code_version(type(version))


def test_meaning_leaves_out_docstrings_and_comments():
    one = 'def f(x):\n    """Say it."""\n    return x  # why\n'
    assert meaning(ast.parse(one)) == meaning(ast.parse("def f(x):\n    return x"))
    assert meaning(ast.parse(one)) != meaning(ast.parse("def f(x):\n    return -x"))
