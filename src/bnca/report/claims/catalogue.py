"""All claims of the paper, with what judges each and which tables and figures it needs."""

from __future__ import annotations

from bnca.report.claims import accuracy, cost, digits, learning, search
from bnca.report.claims.verdicts import PAIRED, Claim

ROUNDING = "Exact, up to rounding; the largest difference of all seeds"

CLAIMS = (
    Claim(
        "C1",
        "Table 1",
        "With 10, 20 and 30 training points per class on Balance, Ionosphere and Spambase, BNCA is "
        "the most accurate of six methods in all nine cells.",
        "most accurate of six with few rows",
        ("table1",),
        accuracy.most_accurate,
    ),
    Claim(
        "C2",
        "Table 1",
        "With 10 per class, NCA is worse than PCA on Balance and Spambase.",
        "NCA below PCA with 10 rows per class",
        ("table1",),
        accuracy.below_plain,
    ),
    Claim(
        "C3",
        "Table 1",
        "BNCA beats BML in every cell; the gap between Bayesian and point methods closes at 30 per "
        "class.",
        "ahead of BML; Bayes helps less with more rows",
        ("table1",),
        accuracy.ahead_of_pairs,
    ),
    Claim(
        "C4",
        "Table 2",
        "With 0, 10, 20 and 30 % random label noise on Caltech-10, MNIST and FRGC-2, BNCA is best "
        "or tied in all twelve cells.",
        "best or tied under label noise",
        ("table2",),
        accuracy.best_under_noise,
    ),
    Claim(
        "C5",
        "Table 2",
        "At 30 % noise NCA, NCM and LMNN fall below PCA; BNCA's lead over the second best has "
        "p < 0.001.",
        "point methods below PCA at 30 % noise",
        ("table2",),
        accuracy.most_noise,
    ),
    Claim(
        "C6",
        "Table 3",
        "BNCA trains fastest: 61.2 % faster than NCA and 41.0 % faster than BML on average.",
        "trains fastest",
        ("table3",),
        cost.fastest,
        "Paired one-tailed t tests of logarithms of seconds over repeats, Holm's method, level "
        "0.05; processor time of the fit with the chosen settings, one thread",
    ),
    Claim(
        "C7",
        "Fig. 1",
        "BNCA rescales the eigen-axes so that same-class neighbours come closer.",
        "same-class neighbours come closer",
        ("figure1",),
        learning.closer,
    ),
    Claim(
        "C8",
        "Figs. 3 and 4",
        "On normal digits NCA and BNCA both give one sharp peak; on difficult ones NCA stays sharp "
        "(over 0.99 on a wrong digit) while BNCA spreads its mass over the plausible digits.",
        "NCA is sure when wrong, BNCA is not",
        ("figure3", "figure4", "figure5"),
        digits.peaks,
    ),
    Claim(
        "C9",
        "Fig. 5",
        "Modified mean average precision with tau = 0.01: BNCA is about 1 point above NCA on "
        "normal digits and more than 5 on difficult ones.",
        "higher MAP on difficult digits",
        ("figure5",),
        digits.precision,
    ),
    Claim(
        "C10",
        "Fig. 6",
        "At 30 % noise NCA's training error keeps falling while its test error rises; BNCA "
        "converges in a few iterations and does not overfit.",
        "NCA overfits, BNCA does not",
        ("figure6",),
        learning.overfitting,
    ),
    Claim(
        "C11",
        "Fig. 7",
        "The prior helps for V0 = sigma I with sigma from 1e-4 to 1 and stops helping above.",
        "the prior helps up to sigma = 1",
        ("figure7",),
        learning.prior_width,
    ),
    Claim(
        "C12",
        "eq. (vii)",
        "With H = I / 2 the diagonal of V_T depends only on same-class contrasts; an anchor whose "
        "neighbours all agree at one distance, or none agrees, contributes nothing.",
        "some anchors contribute nothing",
        ("curvature",),
        cost.contrasts,
        ROUNDING,
    ),
    Claim(
        "C13",
        "Computational cost",
        "The curvature is computed once; there are no gradient iterations; only a few iterations "
        "are needed to converge.",
        "a few iterations, one curvature",
        ("figure6",),
        cost.few_steps,
    ),
    Claim(
        "C14",
        "Distance estimation",
        "Every distance comes with a mean and a variance, fit for retrieval that ranks by both "
        "(the paper leaves this as future work).",
        "ranking by mean and variance",
        ("retrieval",),
        search.ranking,
        f"{PAIRED}; the multiple is chosen on other people",
    ),
)
"""In the order of the paper."""
