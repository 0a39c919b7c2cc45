"""`bnca reproduce`: the paper's tables, figures and claims, with verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bnca.commands.arguments import whole
from bnca.exceptions import InputError
from bnca.files import replacing

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from bnca.experiments.run import Results, Unit
    from bnca.experiments.spec import Experiment, Study
    from bnca.report.summarize import Made

PICTURE_COLUMNS = ("image", "probabilities", "ranking")
"""Columns of lists: they are kept with the rows, but a table is no place for them."""


def add_parser(commands: Any) -> None:
    """Describe the command and its options."""
    parser = commands.add_parser(
        "reproduce",
        help="run the paper's experiments and say which of its claims hold",
        description="Run the paper's tables and figures, and say of each of its claims whether it "
        "holds. Finished work is kept in the output folder: stop at any time, and the same command "
        "goes on from there.",
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="all, or names of tables, figures and claims: table1, figure6, retrieval, C4 ...",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a small version from data that come with scikit-learn: minutes instead of an hour",
    )
    parser.add_argument("--data-dir", type=Path, help="data folder (default: BNCA_DATA)")
    parser.add_argument(
        "--download", action="store_true", help="fetch missing sets from OpenML where it has them"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("bnca-reproduce"), help="output folder (%(default)s)"
    )
    parser.add_argument(
        "--repeats", type=whole(1, 1000), help="random draws instead of each table's own number"
    )
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help="run these methods only")
    parser.add_argument("--jobs", type=whole(1, 1024), help="processes (default: every core)")
    parser.add_argument(
        "--no-run", action="store_true", help="run nothing; report what is there already"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it; return the exit status."""
    import matplotlib.figure  # noqa: F401 - missing, it is better missed before the work than after
    from rich.console import Console

    from bnca.report.summarize import Made

    experiments, claims = selected(options.names, quick=options.quick, repeats=options.repeats)
    _known_methods(experiments, options.methods)
    console = Console()
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        results = _run(experiments, options, console)
    except KeyboardInterrupt:
        console.print("\nInterrupted. What is finished is kept: the same command goes on from it.")
        return 130
    made = Made(_command(options), options.quick, claims)
    summary = report(results, made, options.out)
    _print(summary, console)
    names = [
        "reproduce.html",
        "reproduce.json",
        "rows.csv",
        *["figures"] * bool(summary["figures"]),
    ]
    for name in names:
        console.print(f"Written: {options.out / name}", soft_wrap=True)
    return 0


def selected(
    names: Sequence[str], *, quick: bool = False, repeats: int | None = None
) -> tuple[list[Experiment | Study], list[str] | None]:
    """Experiments that names stand for, and the claims that are asked for.

    Parameters
    ----------
    names : sequence of str
        "all", or names of tables, figures and claims.
    quick : bool, default=False
        Whether to take the small versions; no name is then needed.
    repeats : int or None, default=None
        Number of seeds; None leaves each experiment its own.

    Returns
    -------
    experiments : list of Experiment or Study
        What to run.
    claims : list of str or None
        Their names; None is all.
    """
    from bnca.experiments import figures, paper
    from bnca.report.claims.catalogue import CLAIMS

    needs = {claim.id: claim.needs for claim in CLAIMS}
    tables: dict[str, Any] = {t: make for t, make in paper.TABLES.items() if t != "quick"}
    tables |= figures.STUDIES
    known = ["all", *tables, *needs]
    lower = {name.lower(): name for name in known}
    wanted = [lower.get(name.lower(), name) for name in names]
    strange = [name for name in wanted if name not in known]
    if strange or not (wanted or quick):
        what = f"There is no {strange[0]!r}." if strange else "Say what to reproduce."
        raise InputError(f"{what} Try --quick, or one or more of: {', '.join(known)}.")
    if not wanted or "all" in wanted:
        wanted = list(tables)
    run_tables = {t for name in wanted for t in needs.get(name, (name,))}
    stated = {} if repeats is None else {"repeats": repeats}
    found: list[Experiment | Study] = []
    if quick:
        of_all: list[Experiment | Study] = [*paper.quick(**stated), *figures.quick(**stated)]
        found = [e for e in of_all if e.table in run_tables]
    else:
        found = [e for t, make in tables.items() if t in run_tables for e in make(**stated)]
    claims = [c for c, tables_of in needs.items() if run_tables >= set(tables_of)]
    return found, None if len(claims) == len(needs) else claims


def report(results: Results, made: Made, out: Path) -> dict[str, Any]:
    """Write rows, summary, figures and page; return the summary."""
    from bnca.experiments.run import experiment_reasons
    from bnca.experiments.store import rows_to_csv
    from bnca.report import html
    from bnca.report.drawings import DRAWINGS
    from bnca.report.drawings.style import save
    from bnca.report.summarize import summarize

    plain = [{k: v for k, v in row.items() if k not in PICTURE_COLUMNS} for row in results.rows]
    rows_to_csv(plain, out / "rows.csv")
    summary = summarize(results.rows, experiment_reasons(results.skipped), made)
    figures: list[dict[str, Any]] = []
    pictures: dict[str, str] = {}
    for drawing in DRAWINGS:
        rows = [row for row in results.rows if row["table"] in drawing.tables]
        drawn = save(drawing.draw, rows, out / "figures", drawing.id) if rows else None
        if drawn is None:
            continue
        pictures[drawing.id], said = drawn
        figures.append(
            {
                "id": drawing.id,
                "title": drawing.title,
                "caption": drawing.caption,
                "alt": said,
                "command": " ".join(["bnca reproduce", *drawing.tables, *["--quick"] * made.quick]),
                "files": [f"figures/{drawing.id}.{kind}" for kind in ("svg", "pdf")],
            }
        )
    summary["figures"] = figures
    with replacing(out / "reproduce.json") as new:
        text = json.dumps(summary, indent=1, ensure_ascii=False, allow_nan=False)
        new.write_text(f"{text}\n", encoding="utf-8")
    shown = [{**figure, "svg": pictures[figure["id"]]} for figure in figures]
    html.write({**summary, "figures": shown}, out / "reproduce.html")
    return summary


def _run(
    experiments: Sequence[Experiment | Study], options: argparse.Namespace, console: Any
) -> Results:
    """Run the experiments with a progress bar."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from bnca.experiments.run import run as run_experiments

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    ) as progress:
        task = progress.add_task("looking for what is there", total=None)

        def tell(done: int, total: int, unit: Unit, reason: str | None) -> None:
            cell, method = unit
            name = f" {method.name}" if method is not None else ""
            said = f"{cell.experiment.id}{name}, seed {cell.seed}{', skipped' * bool(reason)}"
            progress.update(task, completed=done, total=total, description=said)

        return run_experiments(
            experiments,
            options.out,
            only=options.methods,
            data_dir=options.data_dir,
            allow_download=options.download,
            n_jobs=options.jobs,
            progress=tell,
            compute=not options.no_run,
        )


def _known_methods(
    experiments: Sequence[Experiment | Study], methods: Sequence[str] | None
) -> None:
    """Raise where a method is asked for that no table has."""
    if methods is None:
        return
    known = {m.name: None for e in experiments if hasattr(e, "methods") for m in e.methods()}
    strange = [name for name in methods if name not in known]
    if strange:
        raise InputError(f"There is no method {strange[0]!r}. Known: {', '.join(known) or 'none'}.")


def _command(options: argparse.Namespace) -> str:
    """What was typed, in one order and without the folders of this machine."""
    parts = ["bnca reproduce", *options.names]
    parts += ["--quick"] if options.quick else []
    parts += ["--data-dir DATA"] if not options.quick else []
    parts += [f"--repeats {options.repeats}"] if options.repeats else []
    parts += ["--methods", *options.methods] if options.methods else []
    return " ".join(parts)


def _print(summary: Mapping[str, Any], console: Any) -> None:
    """Verdicts as a table, and what was skipped."""
    from rich.table import Table
    from rich.text import Text

    styles = {"holds": "green", "does not hold": "red"}
    table = Table(title="The paper's claims", title_justify="left")
    for column in ("claim", "where", "what", "verdict"):
        table.add_column(column)
    for claim in summary["claims"]:
        said = Text(claim["verdict"], style=styles.get(claim["verdict"], "yellow"))
        table.add_row(claim["id"], claim["where"], claim["short"], said)
    console.print(table)
    for skipped in summary["skipped"]:
        console.print(f"Skipped {skipped['experiment']}: {skipped['reason']}", soft_wrap=True)
