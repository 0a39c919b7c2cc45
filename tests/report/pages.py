"""Made-up summaries, rich enough to try everything that a page can show."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np

METHODS = ["PCA", "NCA", "NCM", "LMNN", "BML", "BNCA"]
COLUMNS = [*METHODS, "BNCA+"]
SIZES = (10, 20, 30)
NOISE = (0.0, 0.1, 0.2, 0.3)
HOSTILE = '<script>window.hostile = 1</script><img src=x onerror="window.hostile = 1">&"\''

CLAIMS = [
    ("Table 1", "BNCA is the most accurate of six methods in all nine cells.", "does not hold"),
    ("Table 1", "With 10 rows per class, NCA is worse than PCA on Balance.", "holds"),
    ("Table 1", "BNCA beats BML in every cell; the gap closes at 30 per class.", "does not hold"),
    ("Table 2", "Under label noise BNCA is best or tied in all twelve cells.", "does not hold"),
    ("Table 2", "At 30 % noise NCA, NCM and LMNN fall below PCA.", "holds"),
    ("Table 3", "BNCA trains fastest: 61.2 % faster than NCA.", "holds"),
    ("Fig. 1", "Same-class neighbours come closer on the rescaled axes.", "holds"),
    (
        "Fig. 3-4",
        "On difficult digits NCA stays sharp while BNCA spreads.",
        "cannot be tested here",
    ),
    ("Fig. 5", "Modified average precision: 1 point on normal digits, 5 on difficult.", "holds"),
    ("Fig. 6", "NCA's test error rises while its training error falls.", "holds"),
    ("Fig. 7", "The prior helps for sigma up to 1, and stops helping above.", "holds"),
    ("eq. (vii)", "An anchor whose neighbours all agree contributes nothing.", "holds"),
    ("Computational cost", "Only a few iterations to converge.", "does not hold"),
    (
        "Distance estimation",
        "Ranking by mean and variance helps retrieval.",
        "cannot be tested here",
    ),
]


def summary(figures=True):
    """What `bnca reproduce` would say; numbers are drawn at random."""
    rng = np.random.default_rng(3)
    balance = [("Balance", n, 0.0, "") for n in SIZES]
    rest = [(name, n, 0.0, "") for name in ("Ionosphere", "Spambase") for n in SIZES]
    stand_in = "Stands in for the paper's Caltech-10: Office-Caltech images, features of its time."
    people = "Stands in for FRGC-2: 20 people, 20 images of each."
    noisy = [
        (name, 30, noise, remark)
        for name, remark in (
            ("Caltech-10 (SURF)", stand_in),
            ("MNIST", ""),
            ("FRGC-2 (UMIST)", people),
        )
        for noise in NOISE
    ]
    times = [("Caltech-10 (SURF)", 30, 0.0, stand_in), ("MNIST", 30, 0.0, "")]
    return {
        "title": "“Bayesian Neighbourhood Component Analysis”, reproduced",
        "command": "bnca reproduce all --data-dir data --repeats 30",
        "made": "2026-11-19T08:15:00+00:00",
        "quick": False,
        "versions": {
            "bnca": "0.1.0",
            "code": "3f2a9c01d7e4b856",
            "python": "3.11.7",
            "numpy": "2.4.6",
        },
        "machine": {
            "system": "Linux",
            "cores": 2,
            "cpu": "A processor with a fairly long name @ 2.60GHz",
        },
        "claims": [_claim(i, *c, rng) for i, c in enumerate(CLAIMS, 1)],
        "tables": [
            _table("table1", "Table 1: few training rows", [*balance, *rest], rng),
            _table("table2", "Table 2: wrong training labels", noisy, rng),
            _table("table3", "Table 3: seconds to fit", times, rng, unit="s"),
        ],
        "figures": [_figure(i, draw) for i, draw in ((5, _bars), (6, _curves), (7, _sweep))]
        if figures
        else [],
        "skipped": [
            {"experiment": "table2/frgc-yaleb", "reason": "yaleb_faces is not in the data folder."},
            {
                "experiment": "figure2/faces",
                "reason": "No data folder: give --data-dir or BNCA_DATA.",
            },
        ],
        "references": ["Bayesian Neighborhood Component Analysis, the paper that is reproduced."],
    }


def comparison(figures=True):
    """What `bnca compare` would say of a person's table."""
    columns = [
        ("accuracy", "Accuracy", "%", "high"),
        ("lead", "Lead over KNN", "points", "high"),
        ("log_loss", "Log loss", "", "low"),
        ("calibration_error", "Calibration error", "", "low"),
        ("fit_seconds", "Time to fit", "ms", "low"),
        ("chosen", "Chosen settings", "", None),
    ]
    rows = [
        ("KNN", 78.9, 1.2, 0.0, 0.912, 0.121, 0.4, "n_voters=9, vote=distance"),
        ("NCA", 80.3, 1.5, 1.4, 0.871, 0.103, 310, "max_iter=30, n_voters=9, vote=distance"),
        ("LMNN", 79.6, 1.1, 0.7, 0.902, 0.117, 95.1, "n_neighbors=3, max_iter=10, n_voters=5"),
        ("BNCA+", 83.4, 1.0, 4.5, 0.655, 0.048, 141, "prior_mean=4, n_voters=15, vote=posterior"),
    ]
    return {
        "title": "Which method for iris.csv?",
        "headline": "BNCA+ is the most accurate: 83.4 %, 4.5 points above KNN "
        "(95 % interval 3.1 to 5.9), which is more than chance.",
        "command": "bnca compare iris.csv --label species --noise 0.3",
        "made": "2026-11-19T08:15:00+00:00",
        "versions": {"bnca": "0.1.0", "python": "3.11.7"},
        "machine": {"system": "Linux", "cores": 2},
        "data": {
            "File": "iris.csv",
            "Rows": "1,797",
            "Classes": "10: 0, 1, 2 and 7 more",
            "Columns": "64 numbers",
        },
        "table": {
            "title": "Methods",
            "columns": [
                dict(zip(("key", "title", "unit", "better"), c, strict=True)) for c in columns
            ],
            "rows": [_method(row) for row in rows],
        },
        "figures": [_figure(1, _bars), _figure(2, _curves)] if figures else [],
        "notes": [
            "Every method chose its settings by cross-validation on the training rows.",
            "Five splits.",
        ],
    }


def _claim(number, where, claim, verdict, rng):
    cells = {f"Balance, {n} per class": _pair(rng) for n in SIZES}
    numbers = {"lead": 1.37, "low": -0.4, "high": 3.1, "p": 0.00042} if number % 2 else cells
    return {
        "id": f"C{number}",
        "where": where,
        "claim": claim,
        "verdict": verdict,
        "why": f"BNCA is first in {number} of 9 cells; the largest gap is 2.4 points (p = 0.013).",
        "numbers": numbers,
        "test": "Paired one-tailed t-test at 0.05, Holm's correction over 9 cells",
        "seeds": list(range(30)),
        "command": f"bnca reproduce claim C{number}",
    }


def _pair(rng):
    return {"BNCA": float(rng.normal(75, 3)), "runner_up": "LMNN", "p": float(rng.uniform())}


def _table(name, title, keys, rng, unit="%"):
    return {
        "id": name,
        "title": title,
        "caption": "Means over the same 30 random draws for all methods.",
        "command": f"bnca reproduce {name}",
        "unit": unit,
        "columns": COLUMNS,
        "rows": [_row(key, rng, unit) for key in keys],
    }


def _row(key, rng, unit):
    label, size, noise, remark = key
    level = 10 ** rng.uniform(-3, 2) if unit == "s" else rng.uniform(60, 90)
    means = level * (1 + 0.05 * rng.normal(size=len(COLUMNS)))
    best = means.argmin() if unit == "s" else means.argmax()
    published = [*(means[:-1] * (1 + 0.03 * rng.normal(size=len(METHODS)))), None]
    cells = {
        method: {
            "mean": float(mean),
            "low": float(mean - 0.015 * level),
            "high": float(mean + 0.015 * level),
            "published": None if paper is None else round(float(paper), 2),
            "difference": None if paper is None else float(mean - paper),
            "best": bool(method == COLUMNS[best]),
            "tied": bool(method != COLUMNS[best] and abs(mean - means[best]) < 0.015 * level),
        }
        for method, mean, paper in zip(COLUMNS, means, published, strict=True)
    }
    if label == "Spambase" and size == 30:
        cells["NCM"] = {
            "mean": None,
            "low": None,
            "high": None,
            "published": 80.01,
            "difference": None,
        }
    rank = {"method": "BNCA", "rank": float(rng.integers(1, 6)), "low": 1, "high": 6}
    return {
        "label": label,
        "size": size,
        "noise": noise,
        "seeds": 30,
        "cells": cells,
        "rank": rank,
        "remark": remark,
    }


def _method(row):
    name, accuracy, half, lead, log_loss, calibration, fit, chosen = row
    best = name == "BNCA+"
    return {
        "label": name,
        "values": {
            "accuracy": {
                "text": f"{accuracy} ({accuracy - half:.1f} to {accuracy + half:.1f})",
                "sort": accuracy,
                "low": accuracy - half,
                "high": accuracy + half,
                "best": best,
            },
            "lead": {"text": f"{lead:+.1f}", "sort": lead, "best": best},
            "log_loss": {"text": f"{log_loss:.3f}", "sort": log_loss, "best": best},
            "calibration_error": {"text": f"{calibration:.3f}", "sort": calibration, "best": best},
            "fit_seconds": {"text": f"{fit:g}", "sort": fit, "best": name == "KNN"},
            "chosen": {"text": chosen, "best": False},
        },
    }


def _figure(number, draw):
    return {
        "id": f"figure{number}",
        "title": f"Figure {number}: {draw.__doc__}",
        "caption": "Means over 30 draws; bands are 95 % confidence intervals.",
        "alt": f"{draw.__doc__} The Bayesian method is above the other.",
        "command": f"bnca reproduce figure{number}",
        "svg": svg(draw),
    }


def svg(draw):
    """A file as Matplotlib writes it."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3), layout="constrained")
    draw(figure)
    file = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "same for all"}):  # so that identifiers collide
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def _bars(figure):
    """Modified average precision."""
    axes = figure.subplots(1, 2, sharey=True)
    for ax, title in zip(axes, ("normal", "difficult"), strict=True):
        ax.bar(["NCA", "BNCA"], [0.71, 0.78], color=["#0072b2", "#d55e00"])
        ax.set_title(title)
    axes[0].imshow(np.eye(8), extent=(0.1, 0.4, 0.8, 0.95), aspect="auto")
    axes[0].set_xlim(-0.6, 1.6)


def _curves(figure):
    """Learning curves."""
    axes = figure.subplots(1, 3, sharey=True)
    steps = np.arange(1, 40)
    for ax in axes:
        ax.plot(steps, 1 - 0.4 / steps, label="BNCA", color="#d55e00")
        ax.plot(steps, 0.9 - 0.004 * steps, "--", label="NCA", color="#0072b2")
        ax.fill_between(steps, 0.85 - 0.004 * steps, 0.95 - 0.004 * steps, alpha=0.2)
        ax.set_xlabel("iteration")
    axes[0].legend()


def _sweep(figure):
    """Accuracy against the prior's scale."""
    ax = figure.subplots()
    x = np.arange(-4, 5)
    ax.errorbar(x, 60 - 0.5 * np.maximum(x, 0) ** 2, yerr=1.2, fmt="o-", color="#d55e00")
    ax.set_xlabel("log10 sigma")
    ax.set_ylabel("accuracy, %")


if __name__ == "__main__":
    import sys

    from bnca.report import html

    folder = Path(sys.argv[1])
    html.write(summary(), folder / "reproduce.html")
    html.write_compare(comparison(), folder / "compare.html")
    (folder / "summary.json").write_text(json.dumps(summary(), allow_nan=False), encoding="utf-8")
