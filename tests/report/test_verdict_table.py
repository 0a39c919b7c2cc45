"""The README's table of verdicts, from a summary of hand-made rows."""

import json
import subprocess
import sys

import pytest
import verdict_rows as made

from bnca.report.readme import END, START, filled, main, verdicts
from bnca.report.summarize import Made, summarize

TEXT = f"# Title\n\nBefore.\n\n{START}\nold\n{END}\n\nAfter.\n"


@pytest.fixture(scope="module")
def summary():
    return summarize(made.everything(), {}, Made("bnca reproduce all --data-dir DATA"))


@pytest.fixture
def files(summary, tmp_path):
    paths = tmp_path / "reproduce.json", tmp_path / "README.md"
    paths[0].write_text(json.dumps(summary), encoding="utf-8")
    paths[1].write_text(TEXT, encoding="utf-8")
    return [str(path) for path in paths], paths[1]


def test_all_claims_are_listed_with_their_verdicts(summary):
    lines = verdicts(summary).splitlines()
    head = "| Claim | Where | What | Verdict | Parts shown | refuted |"
    assert lines[:2] == [head, "|---|---|---|---|---|---|"]
    rows = [[entry.strip() for entry in line.strip("|").split("|")] for line in lines[2:16]]
    assert [row[:4] for row in rows] == [
        [c["id"], c["where"], c["short"], c["verdict"]] for c in summary["claims"]
    ]
    cells = [cell for part in summary["claims"][0]["numbers"]["parts"] for cell in part["cells"]]
    assert rows[0][4:] == [f"{len(cells)} of {len(cells)}", "0"]
    assert lines[16] == ""
    assert lines[17] == (
        f"From {summary['rows']} rows of `bnca reproduce all --data-dir DATA`. In 21 cells of "
        "Tables 1 and 2 the published method has the highest mean 21 times, and is shown to be "
        "first 21 times."
    )


def test_ranks_are_counted_from_the_summary():
    rows = [*made.table1(truth=False), *made.table2(truth=False), *made.table3()]
    said = verdicts(summarize(rows, {}, Made("x"))).splitlines()[-1]
    assert "In 21 cells" in said
    assert "highest mean 17 times, and is shown to be first 17 times" in said
    alone = verdicts(summarize([*made.table1(), *made.table3()], {}, Made("x")))
    assert "In 9 cells" in alone


def test_only_what_is_between_the_marks_is_written(summary):
    new = filled(TEXT, summary)
    assert new.startswith(f"# Title\n\nBefore.\n\n{START}\n| Claim")
    assert new.endswith(f"first 21 times.\n{END}\n\nAfter.\n")
    assert "\nold\n" not in new
    assert filled(new, summary) == new


@pytest.mark.parametrize("text", ["", START, END, f"{END} {START}"])
def test_text_without_marks_is_refused(summary, text, tmp_path, files, capsys):
    with pytest.raises(ValueError, match="no lines <!-- verdicts -->"):
        filled(text, summary)
    files[1].write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit) as error:
        main(files[0])
    assert error.value.code == 2
    assert "README.md: The text has no lines" in capsys.readouterr().err
    assert files[1].read_text(encoding="utf-8") == text


def test_check_tells_stale_from_fresh_and_writes_nothing(files, capsys):
    arguments, text = files
    assert main([*arguments, "--check"]) == 1
    assert "stale" in capsys.readouterr().out
    assert text.read_text(encoding="utf-8") == TEXT
    assert main(arguments) == 0
    assert main([*arguments, "--check"]) == 0
    assert capsys.readouterr().out.strip() == "fresh"
    text.write_text(text.read_text(encoding="utf-8").replace("| holds |", "| fails |", 1))
    assert main([*arguments, "--check"]) == 1


def test_failure_to_write_leaves_the_text(files, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", full)
    with pytest.raises(OSError, match="No space left"):
        main(files[0])
    assert files[1].read_text(encoding="utf-8") == TEXT
    assert {path.name for path in files[1].parent.iterdir()} == {"README.md", "reproduce.json"}


def test_module_is_a_command(files):
    command = [sys.executable, "-m", "bnca.report.readme", "--check", *files[0]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (1, "stale: run it without --check")
