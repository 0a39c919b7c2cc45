"""`bnca compare`: which method suits a table, all of them tuned."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bnca.commands.arguments import share, whole
from bnca.exceptions import InputError
from bnca.files import replacing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from bnca.experiments.compare import Row
    from bnca.experiments.plan import Plan
    from bnca.experiments.problem import Problem
    from bnca.experiments.suspects import Suspects

BUILT_IN = {"size": 300.0, "noise": 0.3}
"""What is done with the built-in rows unless it is said otherwise."""

PARTLY_WRONG = "share of training labels to make wrong on purpose; test labels stay as they are"


def add_parser(commands: Any) -> None:
    """Describe the command and its options."""
    parser = commands.add_parser(
        "compare",
        help="which method suits your table: all of them tuned and compared",
        description="Tune and compare methods on your table (CSV, TSV or Parquet), on random "
        "splits into training and test rows, and write a report. Without a table: on "
        "scikit-learn's digits with 30 % of the training labels made wrong.",
        epilog="Example: bnca compare flowers.csv --label species",
    )
    add = parser.add_argument
    add("table", nargs="?", type=Path, metavar="TABLE", help="CSV, TSV or Parquet file")
    add("--label", metavar="COLUMN", help="column that holds the classes")
    add("--out", type=Path, default=Path("bnca-compare"), help="output folder (%(default)s)")
    rows = parser.add_argument_group("splits")
    rows.add_argument(
        "--size",
        type=_size,
        help="training rows, or their share if below 1 (0.7, and 1,000 rows at most)",
    )
    rows.add_argument("--noise", type=share, help=f"{PARTLY_WRONG} (0)")
    rows.add_argument(
        "--repeats", type=whole(1, 1000), default=10, help="random splits (%(default)s)"
    )
    rows.add_argument(
        "--seed", type=whole(0, 2**31), default=0, help="seed of the first split (%(default)s)"
    )
    rows.add_argument(
        "--methods",
        type=lambda text: [name.strip() for name in text.split(",") if name.strip()],
        metavar="A,B,…",
        help="KNN, PCA, NCA, NCMML, LMNN, BML, BNCA, BNCA+, logistic, SVM (all)",
    )
    rows.add_argument("--jobs", type=int, metavar="N", help="processes (one for each core)")
    columns = parser.add_argument_group("columns")
    for option, what in (
        ("--use", "a column to use, and no others; may be repeated"),
        ("--drop", "a column to leave out; may be repeated"),
        ("--category", "a column whose numbers are codes; may be repeated"),
    ):
        columns.add_argument(option, action="append", default=[], metavar="COLUMN", help=what)
    columns.add_argument(
        "--bins", type=whole(2, 50), help="cut a label of numbers into so many classes"
    )
    columns.add_argument(
        "--raw", action="store_true", help="leave numbers as they are: they have one unit"
    )
    columns.add_argument(
        "--components",
        type=whole(0, 10_000),
        default=50,
        help="principal components that wider tables are reduced to, 0 for none (%(default)s)",
    )
    file = parser.add_argument_group("file")
    file.add_argument("--separator", help="what cuts the lines of a CSV file (found out)")
    file.add_argument("--encoding", default="utf-8", help="of a CSV file (%(default)s)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it; return the exit status."""
    import matplotlib.figure  # noqa: F401 - missing, it is better missed before the work than after
    from rich.console import Console

    from bnca.experiments.plan import plan
    from bnca.report.comparison import headline, remarks, standings
    from bnca.report.terminal import introduction, methods_table

    console = Console(highlight=False)
    problem = _problem(options)
    settled = plan(
        problem,
        size=_or_built_in(options, "size", None),
        noise=_or_built_in(options, "noise", 0.0),
        seeds=range(options.seed, options.seed + options.repeats),
        methods=options.methods,
        components=options.components,
    )
    options.out.mkdir(parents=True, exist_ok=True)
    console.print(problem.title, style="bold", markup=False)
    for line in introduction(problem, settled):
        console.print(line, markup=False)
    rows = _measured(problem, settled, options, console)
    found = standings(rows, settled, len(problem.y))
    console.print(methods_table(found, settled.methods[0]))
    console.print(headline(found, settled.methods[0]), style="bold", markup=False)
    for remark in remarks(found, settled):
        console.print(remark, markup=False)
    suspected = _suspected(problem, settled, console)
    for path in _write(options, problem, settled, rows, suspected):
        console.print(f"Written: {path}", soft_wrap=True, markup=False)
    return 0


def _problem(options: argparse.Namespace) -> Problem:
    from bnca.experiments.labels import listed, usual_label
    from bnca.experiments.problem import Choices, built_in, from_table
    from bnca.experiments.table import read_table

    if options.table is None:
        for option in ("label", "bins", "use", "drop", "category", "separator", "raw"):
            if getattr(options, option):
                raise InputError(
                    f"--{option} goes with a table of yours: bnca compare TABLE --label COLUMN."
                )
        return built_in()
    frame = read_table(options.table, separator=options.separator, encoding=options.encoding)
    names = list(frame.columns)
    if options.label is None:
        likely = usual_label(names)
        advice = f" Is it --label {shlex.quote(likely)}?" if likely else ""
        raise InputError(
            f"--label must name the column that holds the classes.{advice} The columns are "
            f"{listed(names)}."
        )
    choices = Choices(
        options.label,
        options.bins,
        options.use,
        options.drop,
        options.category,
        standardize=not options.raw,
    )
    return from_table(frame, choices, options.table.name)


def _measured(
    problem: Problem, plan: Plan, options: argparse.Namespace, console: Console
) -> list[Row]:
    """Rows of all splits, with a bar that shows how far it is."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from bnca.experiments import compare

    total = len(plan.seeds) * len(plan.methods)
    rows: list[Row] = []
    shown = (
        TextColumn("{task.description}"),
        BarColumn(None),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    try:
        with Progress(*shown, console=console, expand=True) as progress:
            bar = progress.add_task("tuning and fitting", total=total)
            for row in compare.run(problem, plan, options.out / "cells", n_jobs=options.jobs):
                rows.append(row)
                done = "failed" if row.reason else f"{100 * row.accuracy:.1f} %"
                said = f"split {row.seed - plan.seeds[0] + 1}: {row.method} {done}"
                progress.update(bar, advance=1, description=f"{said:<26}")
    except KeyboardInterrupt:
        console.print(
            f"{len(rows)} of {total} results are kept in {options.out / 'cells'}; the same "
            "command goes on from there.",
            markup=False,
        )
        raise
    return compare.in_order(rows, plan)


def _suspected(problem: Problem, plan: Plan, console: Console) -> Suspects | None:
    """Look for wrong labels in the table itself, where the learner as it comes takes part."""
    from bnca.experiments.suspects import suspects
    from bnca.report.comparison_page import suspicion

    if "BNCA+" not in plan.methods:
        return None
    try:
        with console.status("looking for wrong labels"):
            found = suspects(problem, plan.components)
    except Exception as error:  # noqa: BLE001 - the comparison is there to be reported all the same
        console.print(f"Looking for wrong labels failed: {error}", markup=False)
        return None
    if found is not None:
        console.print(suspicion(found), markup=False)
    return found


def _write(
    options: argparse.Namespace,
    problem: Problem,
    plan: Plan,
    rows: Sequence[Row],
    suspected: Suspects | None,
) -> list[Path]:
    """Write report, picture and tables; return where they are, the report first."""
    from bnca.displays import ComparisonDisplay
    from bnca.experiments.store import provenance, rows_to_csv
    from bnca.report.comparison import standings
    from bnca.report.comparison_page import page
    from bnca.report.html import write_compare
    from bnca.report.terminal import task

    found = standings(rows, plan, len(problem.y))
    display = ComparisonDisplay(found, f"{problem.title}: {task(plan)}")
    summary = page(problem, plan, display, suspected=suspected, command=_command(options))
    out = [options.out / f"compare.{ending}" for ending in ("html", "png", "csv", "json")]
    write_compare(summary, out[0])
    with replacing(out[1]) as new:
        display.save(new)
    told = [{**row._asdict(), "chosen": json.dumps(row.chosen), **provenance()} for row in rows]
    rows_to_csv([{k: v for k, v in row.items() if k != "kept_accuracy"} for row in told], out[2])
    with replacing(out[3]) as new:
        plain = {k: v for k, v in summary.items() if k != "figures"}
        new.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
    if suspected is not None and suspected.found:
        out.append(options.out / "suspects.csv")
        rows_to_csv([s._asdict() | {"row": s.row + 1} for s in suspected.found], out[-1])
    return out


def _or_built_in(options: argparse.Namespace, name: str, otherwise: float | None) -> Any:
    given = getattr(options, name)
    if given is not None:
        return given
    return BUILT_IN[name] if options.table is None else otherwise


def _command(options: argparse.Namespace) -> str:
    """What to type to have it again; folders are left out, as reports are passed on."""
    words = ["bnca", "compare"]
    if options.table is not None:
        words.append(options.table.name)
    for name, otherwise in (
        ("label", None),
        ("size", None),
        ("noise", None),
        ("repeats", 10),
        ("seed", 0),
        ("bins", None),
        ("components", 50),
        ("separator", None),
        ("encoding", "utf-8"),
    ):
        value = getattr(options, name)
        if value != otherwise:
            words += [f"--{name}", f"{value:g}" if isinstance(value, float) else str(value)]
    for name in ("use", "drop", "category"):
        for column in getattr(options, name):
            words += [f"--{name}", column]
    if options.methods:
        words += ["--methods", ",".join(options.methods)]
    return shlex.join([*words, "--raw"] if options.raw else words)


def _size(text: str) -> float:
    """Read a number of rows, or a share of them."""
    value = float(text)
    if not (0 < value < 1 or (value >= 2 and value == int(value))):
        msg = f"must be a whole number of rows, or a share below 1; got {text}"
        raise argparse.ArgumentTypeError(msg)
    return value
