"""The README's examples run as they stand, and its two commands are the ones that CI runs."""

import re
from pathlib import Path

from bnca.report.readme import main

README = Path(__file__).parents[1] / "README.md"
SUMMARY = README.parent / "docs" / "reproduce.json"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_python_examples_run(capsys):
    found = blocks("python")
    assert found
    names = {}
    for source in found:
        exec(compile(source, str(README), "exec"), names)
    assert re.search(
        r"\d with probability 0\.\d\d; d² = \d+\.\d ± \d+\.\d", capsys.readouterr().out
    )


def test_first_example_is_short():
    lines = [line for line in blocks("python")[0].splitlines() if line.strip()]
    assert len(lines) <= 10


def test_set_up_commands_stand_alone_in_fences():
    commands = [line for block in blocks("bash") for line in block.splitlines()]
    assert 'pip install ".[app]" && bnca compare' in commands
    assert 'pip install ".[test]" && pytest' in commands


def test_pictures_are_there():
    for path in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / path).stat().st_size > 0


def test_verdicts_are_fresh():
    assert main([str(SUMMARY), str(README), "--check"]) == 0
