import numpy as np
import pytest

from bnca.experiments.metrics import (
    FLOOR,
    KEPT,
    METRICS,
    STEPS,
    TEMPERATURES,
    calibration_error,
    kept_accuracy,
    pooled_calibration_error,
    predicted,
    reliability,
    scaled_log_loss,
)


def drawn(n, n_classes=3, *, seed=0, power=1.0, middle=False):
    """Labels drawn from probabilities, and what is said of them: a power of those.

    None is below the floor, and `middle` puts the largest of each row in the middle of a step.
    """
    rng = np.random.default_rng(seed)
    true = np.maximum(rng.dirichlet(np.linspace(3, 0.5, n_classes), n), 0.12)
    true /= true.sum(axis=1, keepdims=True)
    y = np.array([rng.choice(n_classes, p=p) for p in true])
    said = true**power / (true**power).sum(axis=1, keepdims=True)
    if middle:
        top = said.argmax(axis=1)
        rest = said.copy()
        rest[np.arange(n), top] = 0
        largest = (np.floor(said.max(axis=1) * STEPS) + 0.5) / STEPS
        said = rest * ((1 - largest) / rest.sum(axis=1))[:, None]
        said[np.arange(n), top] = largest
    return said, y


def said_of(probabilities, y):
    return predicted(probabilities, np.arange(probabilities.shape[1]), y)


def test_calibration_error_by_hand():
    stated = np.array([0.9, 0.9, 0.6, 0.6])
    right = np.array([1.0, 0.0, 1.0, 1.0])
    # Two bins: {0.6, 0.6} all right, {0.9, 0.9} half right.
    assert calibration_error(stated, right, bins=2) == pytest.approx((0.4 + 0.4) / 2)


def test_kept_accuracy_drops_the_least_certain_first():
    stated = np.linspace(0.5, 1, 100)
    right = (np.arange(100) >= 50).astype(float)
    curve = kept_accuracy(stated, right)
    assert curve[0] == 0.5
    assert curve[KEPT.index(0.5)] == 1
    assert curve[-1] == 1


def test_class_that_was_never_learned_has_the_least_probability():
    said = predicted(np.array([[0.7, 0.3], [0.2, 0.8]]), np.array([1, 3]), np.array([2, 3]))
    assert said.truth.tolist() == pytest.approx([FLOOR, 0.8])
    assert said.correct.tolist() == [0, 1]


# Log loss after scaling.


@pytest.mark.parametrize("power", [0.3, 1.0, 1.9])
@pytest.mark.parametrize("seed", range(3))
def test_scaling_never_worsens_the_log_loss(power, seed):
    said = said_of(*drawn(40, seed=seed, power=power))
    assert scaled_log_loss(said) <= METRICS["log_loss"](said) * (1 + 1e-12)


@pytest.mark.parametrize("power", [0.25, 0.5, 1.7])
def test_scaling_undoes_a_power_of_the_probabilities(power):
    straight, y = drawn(400)
    bent, _ = drawn(400, power=power)
    assert bent.min() > FLOOR
    # Temperatures are a sixteenth apart; at its minimum the loss hardly minds half of that.
    expected = scaled_log_loss(said_of(straight, y))
    assert scaled_log_loss(said_of(bent, y)) == pytest.approx(expected, rel=1e-3)
    assert METRICS["log_loss"](said_of(bent, y)) > expected * 1.01


def test_scaling_by_hand():
    """The best of all temperatures, the loss of each summed row by row."""
    probabilities, y = drawn(30, power=1.7)
    losses = []
    for temperature in TEMPERATURES:
        total = 0.0
        for row, code in zip(probabilities, y, strict=True):
            scaled = [p ** (1 / temperature) for p in row]
            total -= np.log(scaled[code] / sum(scaled))
        losses.append(total / len(y))
    assert scaled_log_loss(said_of(probabilities, y)) == pytest.approx(min(losses), rel=1e-12)
    assert 0 < int(np.argmin(losses)) < len(losses) - 1


def test_no_scaling_is_among_the_temperatures():
    assert min(abs(T - 1) for T in TEMPERATURES) < 1e-12


# Calibration of repeats together.


def test_reliability_by_hand():
    said = said_of(
        np.array([[0.9, 0.1], [0.902, 0.098], [0.5, 0.5], [0.0, 1.0]]), np.array([0, 1, 0, 1])
    )
    assert reliability(said) == "100:1:1 180:2:1 199:1:1"


def test_pooled_error_is_that_of_all_predictions_in_one():
    """For probabilities in the middle of steps that are not cut by a bin."""
    repeats = [said_of(*drawn(40, seed=seed, power=2.5, middle=True)) for seed in range(6)]
    top = np.concatenate([said.top for said in repeats])
    right = np.concatenate([said.correct for said in repeats])
    whole = pooled_calibration_error([reliability(said) for said in repeats], bins=1)
    assert whole == pytest.approx(calibration_error(top, right, bins=1), rel=1e-9)
    assert whole > 0.03
    # Two steps and two bins of equal mass: none is cut.
    halves = [np.repeat([0.6025, 0.9025], 30), np.repeat([0.6025, 0.9025], 10)]
    hits = [(np.arange(60) % 3 > 0) * 1.0, (np.arange(20) % 5 > 0) * 1.0]
    texts = []
    for stated, correct in zip(halves, hits, strict=True):
        probabilities = np.column_stack([stated, 1 - stated])
        texts.append(reliability(said_of(probabilities, (1 - correct).astype(int))))
    assert texts[0] == "120:30:20 180:30:20"
    expected = calibration_error(np.concatenate(halves), np.concatenate(hits), bins=2)
    assert pooled_calibration_error(texts, bins=2) == pytest.approx(expected, rel=1e-9)


def test_few_rows_look_badly_calibrated_by_chance_and_many_repeats_do_not():
    repeats = [said_of(*drawn(100, seed=seed)) for seed in range(40)]
    alone = np.mean([calibration_error(said.top, said.correct) for said in repeats])
    together = pooled_calibration_error([reliability(said) for said in repeats])
    # What is said is true: a bin of 6 or 7 rows is off by some 15 points, one of 267 by 3.
    assert alone > 0.1
    assert together < 0.04


def test_pooled_error_finds_what_is_wrong_in_all_repeats():
    repeats = [said_of(*drawn(100, seed=seed, power=3.0)) for seed in range(40)]
    together = pooled_calibration_error([reliability(said) for said in repeats])
    gap = np.mean([said.top.mean() - said.correct.mean() for said in repeats])
    assert gap > 0.1
    assert together == pytest.approx(gap, abs=0.02)
