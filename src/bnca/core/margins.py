"""What a Gaussian posterior says of margins, and which pair to ask about next.

The margin of a pair, η = φᵀθ, is Gaussian where θ is.  Its logistic function, the probability that
the pair is of one class, then averages to a number in closed form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from scipy.special import ndtr

from bnca.core.pairs import block_rows

if TYPE_CHECKING:
    from bnca.core.arrays import Doubles, Floats, Integers

Strategy = Literal["reduction", "information", "entropy"]

MIXTURE = np.array(
    [
        [0.003246343272134, 1.365340806296348],
        [0.051517477033972, 1.059523971016916],
        [0.195077912673858, 0.830791313765644],
        [0.315569823632818, 0.650732166639391],
        [0.274149576158423, 0.508135425366489],
        [0.131076880695470, 0.396313345166341],
        [0.027912418727972, 0.308904252267995],
        [0.001449567805354, 0.238212616409306],
    ]
).T
"""Shares p_k and slopes s_k with σ(x) = Σ_k p_k Φ(s_k x) to 2e-9 (Monahan and Stefanski, 1992)."""


class Margins(NamedTuple):
    """Posterior mean and variance of margins η, each (n,) float64."""

    mean: Doubles
    variance: Doubles


def margins(features: Floats, mean: Doubles, covariance: Doubles) -> Margins:
    """Moments of η = φᵀθ for θ ~ N(mean, covariance).

    Parameters
    ----------
    features : (n, p + 1)
        φ.
    mean : (p + 1,)
        Posterior mean of θ = (γ, μ).
    covariance : (p + 1, p + 1)
        Its covariance.

    Returns
    -------
    Margins
        φᵀ mean and φᵀ covariance φ.
    """
    return Margins(
        np.asarray(features @ mean, dtype=np.float64),
        np.maximum(_quadratic(features, covariance), 0),
    )


def same_class(margin: Margins) -> Doubles:
    """Return P(same class) = E σ(η), exact to 2e-9.

    With σ as a mixture of normal distribution functions, each term averages to
    E Φ(s η) = Φ(s m / √(1 + s² v)).
    """
    shares, _ = MIXTURE
    return np.asarray(ndtr(_standardized(margin)[0]) @ shares)


def expected_entropy(margin: Margins) -> Doubles:
    """Return E h(σ(η)), the entropy in nats that would remain if θ were known.

    The derivative of h(σ(x)) is -x σ'(x), so with the same mixture
    h(σ(x)) = Σ_k (p_k / s_k) ϕ(s_k x) for the normal density ϕ, and each term averages as densities
    do.
    """
    z, spread = _standardized(margin)
    shares, slopes = MIXTURE
    return np.asarray((_density(z) / spread) @ (shares / slopes))


def expected_slope(margin: Margins) -> Doubles:
    """Return E σ'(η), how much precision a label is expected to add along φ."""
    z, spread = _standardized(margin)
    shares, slopes = MIXTURE
    return np.asarray((_density(z) / spread) @ (shares * slopes))


def entropy(probability: Doubles) -> Doubles:
    """Entropy in nats of a yes with these probabilities."""
    p = np.clip(probability, 1e-300, 1)
    q = np.clip(1 - probability, 1e-300, 1)
    return np.asarray(-(p * np.log(p) + q * np.log(q)))


def most_informative(
    features: Floats, mean: Doubles, covariance: Doubles, n: int, strategy: Strategy
) -> Integers:
    """Choose pairs to ask about, one after the other.

    A label on the pair φ is expected to add c φφᵀ to the precision of θ, c = E σ'(η).  After each
    choice the covariance V is reduced accordingly, by a term of rank one, although no label is
    known yet; so a pair that says the same as one chosen before is worth little.  What is worth
    most is

    - "reduction": the fall in the summed variance of all candidates' margins, each weighted with
      its own c: c φᵀ V M V φ / (1 + c φᵀ V φ) with M = Σ_u c_u φ_u φ_uᵀ;
    - "information": the mutual information between the label and θ, h(E σ(η)) - E h(σ(η));
    - "entropy": the entropy of the label, h(E σ(η)), whatever the reason for the doubt.

    Worths that agree to single precision are tied, and the pair that comes first is taken.

    Parameters
    ----------
    features : (m, p + 1)
        φ of the candidates.
    mean, covariance
        Posterior of θ.
    n : int
        How many to choose, at most m.
    strategy : {"reduction", "information", "entropy"}
        What is worth most.

    Returns
    -------
    (n,) intp
        Candidates in the order in which they were chosen.
    """
    V = covariance.copy()
    margin = margins(features, mean, V)
    variance = margin.variance
    target = pull = np.zeros(0)
    if strategy == "reduction":
        weighted = features * expected_slope(margin)[:, None]
        target = np.asarray(weighted.T @ features) / len(features)
        pull = _quadratic(features, V @ target @ V)
    chosen = np.empty(n, dtype=np.intp)
    for step in range(n):
        margin = Margins(margin.mean, variance)
        worth = _worth(margin, pull, strategy).astype(np.float32)
        worth[chosen[:step]] = -np.inf
        best = int(np.argmax(worth))
        chosen[step] = best
        # Sherman and Morrison: V - k v vᵀ is (V⁻¹ + c φφᵀ)⁻¹.
        phi = features[best].astype(np.float64)
        c = float(expected_slope(Margins(margin.mean[[best]], variance[[best]]))[0])
        v = V @ phi
        k = c / (1 + c * float(phi @ v))
        along = features @ v
        if strategy == "reduction":
            turned = target @ v
            pull = (
                pull
                - 2 * k * along * (features @ (V @ turned))
                + (k * k * float(v @ turned) * along**2)
            )
        V -= k * np.outer(v, v)
        variance = np.maximum(variance - k * along**2, 0)
    return chosen


def _worth(margin: Margins, pull: Doubles, strategy: Strategy) -> Doubles:
    if strategy == "reduction":
        c = expected_slope(margin)
        return np.asarray(c * pull / (1 + c * margin.variance))
    doubt = entropy(same_class(margin))
    return doubt - expected_entropy(margin) if strategy == "information" else doubt


def _standardized(margin: Margins) -> tuple[Doubles, Doubles]:
    """Return s_k m / √(1 + s_k² v) and √(1 + s_k² v), each (n, 8)."""
    _, slopes = MIXTURE
    spread = np.sqrt(1 + margin.variance[:, None] * slopes**2)
    return margin.mean[:, None] * slopes / spread, spread


def _density(z: Doubles) -> Doubles:
    return np.asarray(np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi))


def _quadratic(features: Floats, matrix: Doubles) -> Doubles:
    """Return φᵀ A φ of each row, a block of rows at a time."""
    out = np.empty(len(features))
    size = block_rows(len(matrix))
    for start in range(0, len(features), size):
        rows = features[start : start + size].astype(np.float64)
        out[start : start + size] = np.einsum("ij,ij->i", rows @ matrix, rows)
    return out
