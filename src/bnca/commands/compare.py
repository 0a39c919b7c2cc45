"""`bnca compare`: tune and compare methods on data with wrong labels."""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bnca.commands.arguments import share, whole
from bnca.files import replacing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bnca.experiments.compare import Row, Summary


def add_parser(commands: Any) -> None:
    """Describe the command and its options."""
    parser = commands.add_parser(
        "compare",
        help="tune and compare methods on data with wrong labels",
        description="Compare KNN, NCA and BayesianNCA on scikit-learn's digits, with part of the "
        "training labels made wrong on purpose. Every method is tuned by cross-validation on those "
        "labels and tested on true ones.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=Path("bnca-compare"), help="output folder")
    parser.add_argument("--train", type=whole(30, 1500), default=300, help="training rows")
    parser.add_argument("--noise", type=share, default=0.3, help="share of wrong labels")
    parser.add_argument("--repeats", type=whole(1, 1000), default=5, help="random splits")
    parser.add_argument("--seed", type=whole(0, 2**31), default=0, help="seed of the first split")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it; return the exit status."""
    import matplotlib.figure  # noqa: F401 - missing, it is better missed before the work than after
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from sklearn.datasets import load_digits

    from bnca.displays import ComparisonDisplay
    from bnca.experiments import compare

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
        task = progress.add_task("tuning and fitting", total=len(seeds) * len(compare.methods()))
        for row in compare.run(X, y, n_train=options.train, noise=options.noise, seeds=seeds):
            rows.append(row)
            progress.update(
                task, advance=1, description=f"split {row.seed}: {row.method} {row.accuracy:.3f}"
            )
    summaries = compare.summarize(rows)
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
