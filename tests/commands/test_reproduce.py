"""`bnca reproduce` as a person types it, on experiments small enough for a test."""

import json
import os
import signal
from pathlib import Path

import pytest
from endings import ended
from trials import IRIS, STUDY, methods

from bnca import cli
from bnca.commands.reproduce import selected
from bnca.exceptions import InputError
from bnca.experiments import figures, paper
from bnca.experiments.run import TIMES, run, units
from bnca.experiments.spec import Experiment, Study
from bnca.experiments.store import Store
from bnca.report.claims.catalogue import CLAIMS

FILES = {"cells.jsonl", "reproduce.html", "reproduce.json", "rows.csv"}


def table(repeats=2):
    seeds = tuple(range(repeats))
    return [Experiment("table1/iris", IRIS, (5,), 30, methods, (0.0, 0.3), seeds=seeds)]


def study(repeats=2):
    return [Study("curvature/iris", IRIS, STUDY.work, seeds=tuple(range(repeats)))]


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(paper, "TABLES", {"table1": table})
    monkeypatch.setattr(figures, "STUDIES", {"curvature": study})


@pytest.fixture
def call(small, tmp_path, capsys):
    def do(*arguments):
        status = cli.main(["reproduce", *arguments, "--jobs", "1", "--out", str(tmp_path / "out")])
        printed = capsys.readouterr()
        return status, " ".join(printed.out.split()), " ".join(printed.err.split())

    return do


def read(folder):
    return json.loads((folder / "reproduce.json").read_text(encoding="utf-8"))


def untimed(rows):
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]


def test_writes_everything_and_says_what_holds(call, tmp_path):
    status, printed, _ = call("table1")
    assert status == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES
    assert "cannot be tested here" in printed
    assert all(name in printed for name in ("reproduce.html", "reproduce.json", "rows.csv"))
    summary = read(tmp_path / "out")
    assert summary["command"] == "bnca reproduce table1 --data-dir DATA"
    assert summary["rows"] == 8
    assert [claim["id"] for claim in summary["claims"]] == ["C1", "C2", "C3"]


def test_repeats_and_methods(call, tmp_path):
    assert call("table1", "--repeats", "3", "--methods", "NCM")[0] == 0
    summary = read(tmp_path / "out")
    (first,) = summary["tables"]
    assert first["columns"] == ["NCM"]
    assert {row["seeds"] for row in first["rows"]} == {3}
    assert summary["command"].endswith("--data-dir DATA --repeats 3 --methods NCM")


def test_what_cannot_be_drawn_is_left_out(call, tmp_path):
    """Without BNCA there are no leads, and no empty picture of them."""
    _, printed, _ = call("table1", "--methods", "PCA")
    assert read(tmp_path / "out")["figures"] == []
    assert "figures" not in printed


def test_no_run_reports_what_is_there(call, tmp_path, monkeypatch):
    call("table1", "--repeats", "1")
    before = Store(tmp_path / "out").path.read_bytes()
    monkeypatch.setattr("bnca.experiments.run.run_units", None)  # whatever calls it fails
    status, printed, _ = call("table1", "--repeats", "2", "--no-run")
    assert status == 0
    assert "Skipped table1/iris: It was not asked to run." in printed
    assert Store(tmp_path / "out").path.read_bytes() == before
    assert read(tmp_path / "out")["rows"] == 4


def test_second_run_computes_nothing(call, tmp_path, monkeypatch):
    call("table1")
    before = {p: p.read_bytes() for p in (tmp_path / "out").rglob("*.*")}
    monkeypatch.setattr("bnca.experiments.run.run_units", None)
    assert call("table1")[0] == 0
    assert {p: p.read_bytes() for p in (tmp_path / "out").rglob("*.*")} == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Say what to reproduce. Try --quick, or one or more of: all, table1, curvature, C1"),
        (["table9"], "There is no 'table9'."),
        (["table1", "C15"], "There is no 'C15'."),
        (["table1", "--methods", "NCM", "SVM"], "There is no method 'SVM'. Known: PCA, NCM."),
        (["curvature", "--methods", "NCM"], "There is no method 'NCM'. Known: none."),
    ],
)
def test_what_there_is_not_is_refused_before_any_work(call, tmp_path, arguments, words):
    status, printed, complaint = call(*arguments)
    assert (status, printed) == (2, "")
    assert words in complaint
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("arguments", [["--repeats", "0"], ["--jobs", "x"], ["--methods"]])
def test_bad_arguments_are_explained(arguments, capsys):
    with pytest.raises(SystemExit) as error:
        cli.main(["reproduce", "table1", *arguments])
    assert error.value.code == 2
    assert arguments[0] in capsys.readouterr().err


def test_folder_that_is_a_file_is_refused(small, tmp_path, capsys):
    taken = tmp_path / "taken"
    taken.write_text("mine", encoding="utf-8")
    assert cli.main(["reproduce", "table1", "--out", str(taken)]) == 1
    assert "taken" in capsys.readouterr().err
    assert taken.read_text(encoding="utf-8") == "mine"


def test_names_stand_for_what_they_need():
    def tables(*names, **more):
        found, claims = selected(names, **more)
        return {e.table for e in found}, claims

    every = {*paper.TABLES, *figures.STUDIES} - {"quick"}
    assert tables("all") == (every, None)
    assert tables("ALL", "table1") == (every, None)
    assert tables("c4") == ({"table2"}, ["C4", "C5"])
    assert tables("C8", "figure1") == (
        {"figure1", "figure3", "figure4", "figure5"},
        ["C7", "C8", "C9"],
    )
    for claim in CLAIMS:
        assert claim.id in tables(claim.id)[1]
        assert tables(claim.id)[0] == set(claim.needs)


def test_quick_has_every_table_and_claim_and_needs_no_files():
    found, claims = selected([], quick=True)
    assert {e.table for e in found} == {*paper.TABLES, *figures.STUDIES} - {"quick"}
    assert claims is None
    assert all(e.data.name in BUILT_IN for e in found)
    fewer, asked = selected(["C13"], quick=True, repeats=2)
    assert [(e.table, e.seeds) for e in fewer] == [("figure6", (0, 1))] * len(fewer)
    assert "C13" in asked
    with pytest.raises(InputError, match="Say what to reproduce"):
        selected([])


BUILT_IN = {"balance_scale", "wine", "breast_cancer", "digits", "olivetti"}


@pytest.mark.parametrize("of", ["table1", "retrieval"])
def test_repeats_of_the_full_version(of):
    found, _ = selected([of])
    assert {len(e.seeds) for e in found} == {30}
    fewer, _ = selected([of], repeats=4)
    assert {len(e.seeds) for e in fewer} == {4}


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from bnca.experiments import figures, paper
from test_reproduce import study, table
paper.TABLES, figures.STUDIES = {{"table1": table}}, {{"curvature": study}}
from bnca import cli
arguments = ["--repeats", "15", "--jobs", "{jobs}", "--out", sys.argv[1]]
sys.exit(cli.main(["reproduce", "all", *arguments]))
"""


def script(jobs=1):
    return SCRIPT.format(tests=str(Path(__file__).parent), jobs=jobs)


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as POSIX has them")
def test_killed_anywhere_no_row_is_lost_or_doubled(tmp_path):
    """Killed twice, with a line torn as well; then all is as if it had run through."""
    wanted = [*table(15), *study(15)]
    whole = run(wanted, tmp_path / "whole", n_jobs=1)
    folder, kept = tmp_path / "killed", {}
    for jobs, more in ((1, 1), (2, 15)):
        _, status = ended(script(jobs), folder, folder, after=len(kept) + more, sent=signal.SIGKILL)
        assert status == -signal.SIGKILL
        now = Store(folder).read()
        assert len(kept) < len(now) < len(units(wanted))
        assert {key: now[key] for key in kept} == kept  # neither lost nor made again
        assert not (folder / "reproduce.json").exists()
        kept = now
        with Store(folder).path.open("ab") as file:
            file.write(b'{"key": "torn", "rows": [{"acc')
    after = run(wanted, folder, n_jobs=1)
    assert untimed(after.rows) == untimed(whole.rows)
    assert not after.skipped
    names = [line.partition(b",")[0] for line in Store(folder).path.read_bytes().splitlines()]
    keys = [name for name in names if b"torn" not in name]
    assert len(keys) == len(set(keys)) == len(units(wanted))
    assert {key: Store(folder).read()[key] for key in kept} == kept


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as POSIX has them")
def test_interrupted_run_says_so_and_keeps_what_is_finished(tmp_path):
    printed, status = ended(script(jobs=2), tmp_path, tmp_path, after=3, sent=signal.SIGINT)
    assert status == 130
    assert "What is finished is kept: the same command goes on" in " ".join(printed.split())
    # The pool's own processes are interrupted too, and joblib's may say so in its way.
    assert "cli.py" not in printed
    kept = Store(tmp_path).read()
    assert 3 < len(kept) < len(units([*table(15), *study(15)]))
    assert not (tmp_path / "reproduce.html").exists()


def test_interrupted_report_leaves_the_old_one(call, tmp_path, monkeypatch):
    call("table1")
    before = {p: p.read_bytes() for p in (tmp_path / "out").rglob("*.*")}

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", full)
    status, _, complaint = call("table1", "--no-run")
    assert status == 1
    assert "No space left" in complaint
    assert {p: p.read_bytes() for p in (tmp_path / "out").rglob("*.*")} == before
