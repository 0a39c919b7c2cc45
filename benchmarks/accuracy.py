"""What `BayesianNCA()` reaches with no setting touched, beside tuned rivals and everyday tools.

    python benchmarks/accuracy.py --data-dir FOLDER [--out FOLDER] [--seeds 30] [--tool-seeds 10]

The cells of Tables 1 and 2, and more sets with wrong labels, some of them given by people
(`bnca.experiments.beyond`).  Finished work is kept in --out and taken up again, as by `bnca
reproduce`, with which it shares rows; --no-run only prints what is there.  Everyday tools take more
time than all the rest, so that they may have fewer seeds; a comparison uses the seeds that all of
its methods have.  Tests are paired and one-tailed at 0.05, first taking repeats for independent,
then corrected for the rows that repeats share (`bnca.report.statistics`).
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np

from bnca.experiments.beyond import accuracy
from bnca.experiments.metrics import pooled_calibration_error
from bnca.experiments.run import run
from bnca.report.statistics import mean_interval, overlap, paired_test

OURS = "BNCA+"
RIVALS = ("KNN", "PCA", "NCA", "NCM", "LMNN", "BML")
TOOLS = ("logistic", "SVM", "forest", "LDA", "GP")
SCALED = ("NCA", "KNN by distance")


class Cell:
    """All rows of one cell: values by metric and method, aligned by seed."""

    def __init__(self, rows):
        self.name = f"{rows[0]['title']}, {rows[0]['size']} per class"
        self.noise = round(float(np.mean([row["wrong_labels"] for row in rows])), 2)
        self.by = {}
        for row in rows:
            if not row.get("reason"):
                self.by.setdefault(row["method"], {})[row["seed"]] = row
        train, test = rows[0]["n_train"], rows[0]["n_test"]
        self.overlap = overlap(train, test, rows[0]["n_pool"])

    def values(self, metric, *methods):
        """One array for each method, over the seeds that all of them have."""
        seeds = sorted(set.intersection(*(set(self.by.get(m, ())) for m in methods)))
        return [np.array([self.by[m][s][metric] for s in seeds], dtype=float) for m in methods]


def cells(rows):
    """Rows by cell; a cell that stands in two tables counts once."""
    grouped = {}
    for row in rows:
        if "wrong_labels" in row:
            key = (row["title"], row["size"], round(row["noise"], 1), row["experiment"])
            grouped.setdefault(key, []).append(row)
    out = {}
    for (title, size, noise, experiment), found in grouped.items():
        short = experiment if "cifar" in experiment else ""
        if any(row["method"] == OURS for row in found):
            out.setdefault((title, size, 0.0 if short else noise, short), Cell(found))
    return list(out.values())


def percent(x, digits=1):
    """Per cent, or points."""
    return f"{100 * x:.{digits}f}"


def standing(found):
    """Print every cell: our rank among rivals, and whether the best of them is ahead for sure."""
    print(f"\n{'cell':36s} noise seeds  " + " ".join(f"{m:>6s}" for m in (OURS, *RIVALS)))
    behind, behind_corrected, below = [], [], []
    for cell in found:
        means = {m: cell.values("accuracy", m)[0].mean() for m in (OURS, *RIVALS) if m in cell.by}
        best = max((m for m in RIVALS if m in means), key=means.get)
        ours, theirs = cell.values("accuracy", OURS, best)
        p, corrected = (paired_test(theirs - ours, o) for o in (0.0, cell.overlap))
        knn = np.subtract(*cell.values("accuracy", OURS, "KNN"))
        error = knn.std(ddof=1) / np.sqrt(len(knn))
        label = f"{cell.name:36s} {percent(cell.noise, 0):>4s}  {len(ours):3d}   "
        mark = "" if p >= 0.05 else f"  behind {best}" + (" (surely)" if corrected < 0.05 else "")
        print(label + " ".join(f"{percent(means.get(m, np.nan)):>6s}" for m in means) + mark)
        behind.append(p < 0.05)
        behind_corrected.append(corrected < 0.05)
        below.append(knn.mean() < -error)
    n = len(found)
    print(
        f"\nFirst or not significantly behind the best tuned rival: {n - sum(behind)} of {n} cells "
        f"({percent(1 - np.mean(behind))} %; target 95 %); corrected for shared rows "
        f"{n - sum(behind_corrected)} ({percent(1 - np.mean(behind_corrected))} %)"
    )
    print(f"More than a standard error below tuned KNN: {sum(below)} cells (target 0)")


def leads(found):
    """Print mean leads over each rival by noise."""
    print("\nMean lead over tuned rivals in points, by share of wrong labels")
    levels = sorted({c.noise for c in found})
    print("          " + " ".join(f"{percent(v, 0):>6s} %" for v in levels) + "     all")
    for rival in (*RIVALS, *TOOLS):
        line = []
        for level in (*levels, None):
            gaps = [
                np.subtract(*cell.values("accuracy", OURS, rival)).mean()
                for cell in found
                if level in {None, cell.noise} and rival in cell.by
            ]
            line.append(f"{percent(np.mean(gaps)):>8s}" if gaps else "       -")
        print(f"{rival:10s}" + "".join(line))
    print("(targets over NCA: 3 at 0 %, 6 at 30 %)")


def tools(found):
    """Print mean accuracy over cells of the tools that a person would reach for instead."""
    print("\nMean accuracy beside everyday tools, over the cells and seeds that a tool has")
    for name, chosen in (("all", found), ("30 % noise", [c for c in found if c.noise == 0.3])):
        for tool in TOOLS:
            pairs = [cell.values("accuracy", OURS, tool) for cell in chosen if tool in cell.by]
            if pairs:
                ours, theirs = (np.mean([pair[i].mean() for pair in pairs]) for i in (0, 1))
                print(
                    f"  {name:10s} {tool:9s} {percent(theirs)}  {OURS} {percent(ours)}  "
                    f"({len(pairs)} cells)"
                )


def probabilities(found):
    """Print calibration, and log loss beside rivals that were given their best temperature."""

    def pooled(cell, method):
        counts = {}
        for row in cell.by[method].values():
            for entry in row["reliability"].split():
                step, count, right = map(int, entry.split(":"))
                total = counts.setdefault(step, [0, 0])
                total[0] += count
                total[1] += right
        # One histogram of all repeats: what the error is does not depend on their order.
        return pooled_calibration_error([" ".join(f"{s}:{a}:{b}" for s, (a, b) in counts.items())])

    print("\nCalibration error, 15 bins of equal mass, mean over cells (target 0.04)")
    for method in (OURS, "NCA", "KNN by distance"):
        have = [cell for cell in found if method in cell.by]
        if have:
            each = [cell.values("calibration_error", method)[0].mean() for cell in have]
            single = np.mean(each)
            print(
                f"  {method:16s} {np.mean([pooled(c, method) for c in have]):.3f} of a cell's "
                f"repeats together, {single:.3f} of single repeats ({len(have)} cells)"
            )
    ours = np.mean([cell.values("log_loss", OURS)[0].mean() for cell in found])
    print(f"\nLog loss, mean over cells: {OURS} {ours:.3f}")
    scaled = {}
    for method in SCALED:
        raw, best = (
            np.mean([cell.values(metric, method)[0].mean() for cell in found if method in cell.by])
            for metric in ("log_loss", "scaled_log_loss")
        )
        scaled[method] = best
        print(
            f"  {method:16s} {raw:.3f}, after the temperature that suits the test rows best "
            f"{best:.3f}"
        )
    print(
        f"  below the better of them by {percent(1 - ours / min(scaled.values()))} % (target 15 %)"
    )


def rejection(found):
    """Print the area under accuracy-rejection curves on noisy cells."""
    print("\nMean accuracy as the least certain predictions are dropped (area under the curve)")
    for rival in ("NCA", "KNN"):
        gaps, lost = [], []
        for cell in found:
            if cell.noise > 0:
                gap = np.subtract(*cell.values("kept_accuracy", OURS, rival))
                gaps.append(gap.mean())
                if gap.mean() <= 0:
                    lost.append(f"{cell.name} at {percent(cell.noise, 0)} %")
        mean, low, high = mean_interval(gaps)
        print(
            f"  lead over {rival} on {len(gaps)} noisy cells: {percent(mean)} points, interval of "
            f"the mean {percent(low)} to {percent(high)}, least {percent(min(gaps))}; "
            f"not ahead on: {', '.join(lost) or 'none'}"
        )


def noise(found):
    """Print estimated shares of wrong labels where tuned KNN reaches 80 % on clean labels."""
    clean = {
        cell.name: cell.values("accuracy", "KNN")[0].mean() for cell in found if cell.noise == 0
    }
    print(
        "\nEstimated share of wrong labels, where tuned KNN reaches 80 % on clean ones (target: "
        "within 3 points)"
    )
    within = []
    for cell in found:
        if clean.get(cell.name, 0) >= 0.8:
            estimates = cell.values("label_noise", OURS)[0]
            within.append(abs(estimates.mean() - cell.noise) <= 0.03)
            print(
                f"  {cell.name:36s} {percent(cell.noise, 0):>3s} %: {percent(estimates.mean())} "
                f"(single fits {percent(estimates.min())} to {percent(estimates.max())})"
                f"{'' if within[-1] else '  MISSED'}"
            )
    print(f"  {sum(within)} of {len(within)} within 3 points")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data-dir", default=os.environ.get("BNCA_DATA"))
    parser.add_argument("--out", type=Path, default=Path("bnca-reproduce"))
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--tool-seeds", type=int, default=10)
    parser.add_argument("--human-seeds", type=int, help="of labels that people gave (--seeds)")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--no-run", action="store_true")
    options = parser.parse_args()

    def progress(done, total, unit, reason):
        name = unit.method.name if unit.method else ""
        said = f"{unit.cell.experiment.id} {name}, seed {unit.cell.seed}{' skipped' * bool(reason)}"
        print(f"\r{done}/{total} {said:70s}", end="", file=sys.stderr)

    rows = []
    groups = (
        ([*RIVALS, "KNN by distance", OURS], options.seeds),
        (TOOLS, options.tool_seeds),
    )
    for names, seeds in groups:
        found = run(
            accuracy(seeds, min(seeds, options.human_seeds or seeds)),
            options.out,
            only=names,
            data_dir=options.data_dir,
            n_jobs=options.jobs,
            progress=progress,
            compute=not options.no_run,
        )
        rows += found.rows
        for reason in sorted({s.reason for s in found.skipped}):
            print(f"\nskipped: {reason}")
    unique = {(r["experiment"], r["size"], r["noise"], r["seed"], r.get("method")): r for r in rows}
    found = cells(unique.values())
    for part in (standing, leads, tools, probabilities, rejection, noise):
        part(found)


if __name__ == "__main__":
    main()
