"""What goes beyond the paper, as naive loops: nothing shared with what they check.

Everything is float64, and follows the definitions in the docstrings, not how they are computed.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

# Picks.


def picks_loss(features, agree, weights, mean, flips, least=0.0):  # noqa: PLR0917
    """-Σ_i c_i log P(label of i): i picks a neighbour, and a label is wrong now and then.

    `flips` are the rate and the number of classes; no probability counts as less than `least`.
    """
    flip_rate, n_classes = flips
    total = 0.0
    for block, agreements, weight in zip(features, agree, weights, strict=True):
        strength = [np.exp(-float(w @ mean)) for w in block]
        own = sum(s * y for s, y in zip(strength, agreements, strict=True)) / sum(strength)
        other = flip_rate / (n_classes - 1)
        total -= weight * np.log(max((1 - flip_rate) * own + other * (1 - own), least))
    return total


def gradient(function, at, step):
    """Central differences."""
    out = np.zeros(len(at))
    for a in range(len(at)):
        move = np.zeros(len(at))
        move[a] = step
        out[a] = (function(at + move) - function(at - move)) / (2 * step)
    return out


def second_derivatives(function, at, step):
    """Central differences of central differences."""
    out = np.zeros((len(at), len(at)))
    for a in range(len(at)):
        for b in range(len(at)):
            left, right = np.zeros(len(at)), np.zeros(len(at))
            left[a], right[b] = step, step
            corners = (
                function(at + left + right)
                - function(at + left - right)
                - function(at - left + right)
                + function(at - left - right)
            )
            out[a, b] = corners / (4 * step**2)
    return out


def third_derivative(function, at, covariance, step):
    """τ_c = Σ_ab V_ab ∂³f / ∂m_a ∂m_b ∂m_c: second differences of the gradient along roots of V."""
    out = np.zeros(len(at))
    for column in np.linalg.cholesky(covariance).T:
        size = step / np.linalg.norm(column)
        ahead = gradient(function, at + size * column, step)
        behind = gradient(function, at - size * column, step)
        out += (ahead - 2 * gradient(function, at, step) + behind) / size**2
    return out


# Full bases.


def quadratic_form(matrix, full, u):
    """Return uᵀ A u, A being diagonal outside its leading block."""
    total = 0.0
    for a in range(len(u)):
        for b in range(len(u)):
            if a == b or (a < full and b < full):
                total += u[a] * matrix[a, b] * u[b]
    return total


# Centres.


def means_of_classes(rows, labels):
    """Weighted mean of the rows of each class; zeros for a class without rows."""
    means = np.zeros((labels.shape[1], rows.shape[1]))
    for k in range(labels.shape[1]):
        total = sum(labels[:, k])
        if total > 0:
            means[k] = sum(labels[i, k] * rows[i] for i in range(len(rows))) / total
    return means


def within_scatter(rows, labels):
    """Mean over rows and classes of (x - μ_k)(x - μ_k)ᵀ, as far as the row is of the class."""
    means = means_of_classes(rows, labels)
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for i, x in enumerate(rows):
        for k, mean in enumerate(means):
            total += labels[i, k] * np.outer(x - mean, x - mean)
    return total / labels.sum()


def shrunk_metric(rows, labels, shrinkage):
    """[(1 - α) S_w + α τ I]⁻¹."""
    within = within_scatter(rows, labels)
    level = np.trace(within) / len(within)
    return np.linalg.inv((1 - shrinkage) * within + shrinkage * level * np.eye(len(within)))


def ledoit_wolf_shrinkage(residuals):
    """Ledoit and Wolf (2004), lemma 3.2 to 3.4: m, d², b̄² and b² of the rows, one by one."""
    n, p = residuals.shape
    covariance = sum(np.outer(x, x) for x in residuals) / n
    m = np.trace(covariance) / p
    d2 = ((covariance - m * np.eye(p)) ** 2).sum() / p
    b2 = sum(((np.outer(x, x) - covariance) ** 2).sum() / p for x in residuals) / n**2
    return min(b2, d2) / d2


def between_scatter(rows, labels):
    """Σ_k n_k (μ_k - μ)(μ_k - μ)ᵀ plus a thousandth of the total scatter."""
    weight = labels.sum(axis=1)
    middle = sum(w * x for w, x in zip(weight, rows, strict=True)) / weight.sum()
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for k, mean in enumerate(means_of_classes(rows, labels)):
        total += labels[:, k].sum() * np.outer(mean - middle, mean - middle)
    for w, x in zip(weight, rows, strict=True):
        total += 1e-3 * w * np.outer(x - middle, x - middle)
    return total


# Votes.


def distances(left, right):
    """Squared distances of all rows to all rows."""
    return np.array([[sum((a - b) ** 2) for b in right] for a in left])


def typical_distance(rows, count):
    """Median over rows of the mean squared distance to the `count` nearest others."""
    means = []
    for i, x in enumerate(rows):
        others = sorted(sum((x - z) ** 2) for t, z in enumerate(rows) if t != i)
        means.append(np.mean(others[:count]))
    return float(np.median(means))


def kernel_ridge(rows, targets, weights, queries, *, width, ridge):
    """k(x, X) (K + λ W⁻¹)⁻¹ targets."""
    K = np.exp(-distances(rows, rows) / width)
    alpha = np.linalg.solve(K + ridge * np.diag(1 / weights), targets)
    return np.exp(-distances(queries, rows) / width) @ alpha


def kernel_ridge_left_out(rows, targets, weights, *, width, ridge):
    """What all the other rows say about each, having learned without it."""
    out = np.zeros(targets.shape)
    for i in range(len(rows)):
        rest = [t for t in range(len(rows)) if t != i]
        out[i] = kernel_ridge(
            rows[rest], targets[rest], weights[rest], rows[i : i + 1], width=width, ridge=ridge
        )[0]
    return out


def landmark_ridge(rows, targets, weights, queries, *, landmarks, width, ridge):
    """k(x, Z) α with (K_zx W K_xz + λ K_zz) α = K_zx W targets."""
    cross = np.exp(-distances(rows, landmarks) / width)
    among = np.exp(-distances(landmarks, landmarks) / width)
    system = cross.T @ np.diag(weights) @ cross + ridge * among
    alpha = np.linalg.solve(system, cross.T @ np.diag(weights) @ targets)
    return np.exp(-distances(queries, landmarks) / width) @ alpha


def mean_votes_left_out(rows, labels, unit, scale):
    """Minus the scaled squared distance of each row to means of the others."""
    out = np.zeros(labels.shape)
    for i, x in enumerate(rows):
        rest = [t for t in range(len(rows)) if t != i]
        means = means_of_classes(rows[rest], labels[rest])
        for k, mean in enumerate(means):
            out[i, k] = -scale * sum((x - mean) ** 2) / unit
    return out


def linear_votes_loss(slopes, offsets, rows, labels, weights, penalty):  # noqa: PLR0917
    """Σ_i w_i CE(y_i, softmax(bᵀx_i + a)) + ½ λ Σ_k |b_k|², row by row."""
    total = penalty / 2 * sum(b**2 for b in np.ravel(slopes))
    for x, shares_of_classes, weight in zip(rows, labels, weights, strict=True):
        logs = np.log(soft(x @ slopes + offsets, 1.0))
        total -= weight * sum(y * p for y, p in zip(shares_of_classes, logs, strict=True))
    return float(total)


def learned_linear_votes(rows, labels, weights, penalty):
    """Slopes and offsets of least loss, found without knowing its gradient."""
    shape = (rows.shape[1], labels.shape[1])
    split = shape[0] * shape[1]

    def loss(at):
        slopes = at[:split].reshape(shape)
        return linear_votes_loss(slopes, at[split:], rows, labels, weights, penalty)

    found = minimize(loss, np.zeros(split + shape[1]), tol=1e-5).x
    return found[:split].reshape(shape), found[split:]


def soft(votes, temperature):
    """Class probabilities of one row."""
    strength = [np.exp(temperature * (v - max(votes))) for v in votes]
    return np.array([s / sum(strength) for s in strength])


def true_labels(clean, code, flip_rate):
    """Bayes' rule for one row: P(true = k | given), a wrong label being any of the others."""
    n_classes = len(clean)
    joint = []
    for k, prior in enumerate(clean):
        seen = 1 - flip_rate if k == code else flip_rate / (n_classes - 1)
        joint.append(prior * seen)
    return np.array([j / sum(joint) for j in joint])


# Averages.


def foretold_loss(votes, codes, weights, *, temperature, flip_rate, least):
    """Mean loss of one way on labels as given."""
    n_classes = votes.shape[1]
    total = 0.0
    for row, code, weight in zip(votes, codes, weights, strict=True):
        p = soft(row, temperature)[code]
        p = (1 - flip_rate) * p + flip_rate / (n_classes - 1) * (1 - p)
        total -= weight * np.log(max(p, least))
    return total / weights.sum()


def shares(votes, codes, weights, flip_rates, log_prior, *, temperatures, power, least, negligible):
    """Shares, temperatures, best losses and mean flip rate of ways, one after the other."""
    out = np.zeros(log_prior.shape)
    chosen = np.zeros(log_prior.shape)
    best = np.full(len(votes), np.inf)
    for c, way in enumerate(votes):
        for e, rate in enumerate(flip_rates):
            found = [
                foretold_loss(way, codes, weights, temperature=T, flip_rate=rate, least=least)
                for T in temperatures
            ]
            chosen[c, e] = temperatures[int(np.argmin(found))]
            best[c] = min(best[c], *found)
            out[c, e] = log_prior[c, e] - power * weights.sum() * min(found)
    out = np.exp(out - out.max())
    for at in np.ndindex(*out.shape):
        if out[at] < negligible:
            out[at] = 0
    out /= out.sum()
    mean_rate = sum(out[c, e] * flip_rates[e] for c, e in np.ndindex(*out.shape))
    return out, chosen, best, mean_rate


def average(votes, weights, temperatures):
    """Probabilities averaged over ways and flip rates, row by row."""
    out = np.zeros(votes.shape[1:])
    for c, e in np.ndindex(*weights.shape):
        for i, row in enumerate(votes[c]):
            out[i] += weights[c, e] * soft(row, temperatures[c, e])
    return out
