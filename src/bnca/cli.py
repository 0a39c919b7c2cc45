"""The command line: parse, call, print."""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bnca import __version__
from bnca.files import replacing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bnca.experiments.compare import Row, Summary


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return 130
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package in {"rich", "matplotlib"}:
            print(
                f"bnca {options.command} needs {package}, which is not installed. "
                'Try: pip install "bnca[app]"',
                file=sys.stderr,
            )
            return 1
        raise
    except OSError as error:
        print(f"bnca {options.command}: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bnca",
        description="Learn how to measure distance from labelled data, and how sure that is.",
    )
    parser.add_argument("--version", action="version", version=f"bnca {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    compare = commands.add_parser(
        "compare",
        help="tune and compare methods on data with wrong labels",
        description="Compare KNN, NCA and BayesianNCA on scikit-learn's digits, with part of the "
        "training labels made wrong on purpose. Every method is tuned by cross-validation on those "
        "labels and tested on true ones.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    compare.add_argument("--out", type=Path, default=Path("bnca-compare"), help="output folder")
    compare.add_argument("--train", type=_whole(30, 1500), default=300, help="training rows")
    compare.add_argument("--noise", type=_share, default=0.3, help="share of wrong labels")
    compare.add_argument("--repeats", type=_whole(1, 1000), default=5, help="random splits")
    compare.add_argument("--seed", type=_whole(0, 2**31), default=0, help="seed of the first split")
    compare.set_defaults(run=_compare)
    return parser


def _compare(options: argparse.Namespace) -> int:
    import matplotlib.figure  # noqa: F401 - missing, it is better missed before the work than after
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from sklearn.datasets import load_digits

    from bnca.displays import ComparisonDisplay
    from bnca.experiments.compare import methods, run, summarize

    console = Console()
    options.out.mkdir(parents=True, exist_ok=True)
    X, y = load_digits(return_X_y=True)
    title = (
        f"scikit-learn's digits: {options.train} training rows, "
        f"{100 * options.noise:.0f} % of their labels wrong, {options.repeats} splits"
    )
    console.print(f"[bold]{title}[/bold]")
    seeds = range(options.seed, options.seed + options.repeats)
    rows: list[Row] = []
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    ) as progress:
        task = progress.add_task("tuning and fitting", total=len(seeds) * len(methods()))
        for row in run(X, y, n_train=options.train, noise=options.noise, seeds=seeds):
            rows.append(row)
            progress.update(
                task, advance=1, description=f"split {row.seed}: {row.method} {row.accuracy:.3f}"
            )
    summaries = summarize(rows)
    console.print(_table(summaries))
    best = max(summaries, key=lambda s: s.accuracy)
    console.print(f"Most accurate: [bold]{best.method}[/bold]. " + _lead_sentence(summaries))
    with replacing(options.out / "compare.csv") as path:
        _write_rows(path, rows)
    with replacing(options.out / "compare.png") as path:
        ComparisonDisplay(summaries, title).save(path)
    for name in ("compare.png", "compare.csv"):
        console.print(f"Written: {options.out / name}", soft_wrap=True)
    return 0


def _table(summaries: Sequence[Summary]) -> Any:
    from rich.table import Table

    table = Table(caption="± is the half-width of a 95 % confidence interval over the splits")
    table.add_column("method")
    headers = ("accuracy, %", "lead on KNN", "log loss", "calibration error", "fit, ms")
    for header in headers:
        table.add_column(header, justify="right")
    for s in summaries:
        table.add_row(
            s.method,
            f"{100 * s.accuracy:.1f}" + _plus_minus(s.accuracy_half),
            "" if s is summaries[0] else f"{100 * s.lead:+.1f}" + _plus_minus(s.lead_half),
            f"{s.log_loss:.3f}",
            f"{s.calibration_error:.3f}",
            f"{1000 * s.fit_seconds:.0f}",
        )
    return table


def _plus_minus(half: float) -> str:
    return f" ± {100 * half:.1f}" if half >= 0 else ""  # one split has no interval


def _lead_sentence(summaries: Sequence[Summary]) -> str:
    ours, knn = summaries[-1], summaries[0]
    if not ours.lead_half >= 0:
        return "One split says nothing about chance; try more repeats."
    low, high = 100 * (ours.lead - ours.lead_half), 100 * (ours.lead + ours.lead_half)
    verdict = "a difference that chance explains" if low <= 0 <= high else "more than chance"
    return (
        f"{ours.method} leads {knn.method} by {100 * ours.lead:+.1f} points, 95 % interval "
        f"{low:+.1f} to {high:+.1f}: {verdict}."
    )


def _write_rows(path: Path, rows: Sequence[Row]) -> None:
    names = [name for name in rows[0]._fields if name != "kept_accuracy"]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([getattr(row, name) for name in names] for row in rows)


def _whole(least: int, most: int) -> Any:
    def integer(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            msg = f"must be from {least} to {most}; got {value}"
            raise argparse.ArgumentTypeError(msg)
        return value

    return integer


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 0.9:
        msg = f"must be from 0 to 0.9 (0.3 is 30 %); got {text}"
        raise argparse.ArgumentTypeError(msg)
    return value
