import numpy as np
import pytest
from tolerances import ROUNDING

from bnca.core.flips import STRENGTH, class_flips, equal_rates, judged
from bnca.core.smoothing import true_label_probabilities

N_CLASSES = 3


def simulated(n, rates, seed=0, sureness=4.0):
    """True classes, labels given at the rates, and what others say: right more often than not."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(N_CLASSES, n, p=[0.5, 0.3, 0.2])
    given = np.array([rng.choice(N_CLASSES, p=rates[k]) for k in truth])
    logits = rng.normal(size=(n, N_CLASSES)) + sureness * np.eye(N_CLASSES)[truth]
    clean = np.exp(logits)
    return truth, given, clean / clean.sum(axis=1, keepdims=True)


def rounds(clean, given, weights, flip_rate, count):
    """The two equations in turn, as loops."""
    n = len(given)
    start = equal_rates(flip_rate, N_CLASSES)
    rates = start.copy()
    for _ in range(count):
        q = np.zeros((n, N_CLASSES))
        for i in range(n):
            for k in range(N_CLASSES):
                q[i, k] = clean[i, k] * rates[k, given[i]]
            q[i] /= q[i].sum()
        rates = np.zeros((N_CLASSES, N_CLASSES))
        for k in range(N_CLASSES):
            total = STRENGTH + sum(weights[i] * q[i, k] for i in range(n))
            for g in range(N_CLASSES):
                count_kg = sum(weights[i] * q[i, k] for i in range(n) if given[i] == g)
                rates[k, g] = (STRENGTH * start[k, g] + count_kg) / total
    return rates


ONE_WAY = np.array([[0.6, 0.4, 0.0], [0.0, 1.0, 0.0], [0.1, 0.0, 0.9]])


def test_it_ends_where_the_two_equations_in_turn_end():
    _, given, clean = simulated(60, ONE_WAY)
    weights = np.linspace(0.5, 2.0, 60)
    found = class_flips(clean, np.eye(N_CLASSES)[given], weights, 0.2)
    np.testing.assert_allclose(found.rates, rounds(clean, given, weights, 0.2, 60), atol=1e-5)
    np.testing.assert_allclose(found.rates.sum(axis=1), 1, rtol=ROUNDING)
    np.testing.assert_allclose(found.truth.sum(axis=1), 1, rtol=ROUNDING)


def test_a_confusion_of_two_classes_stands_out():
    truth, given, clean = simulated(2000, ONE_WAY)
    found = class_flips(clean, np.eye(N_CLASSES)[given], np.ones(2000), 0.2)
    np.testing.assert_allclose(found.rates, ONE_WAY, atol=0.05)
    equal = true_label_probabilities(clean, np.eye(N_CLASSES)[given], 0.2)
    assert np.mean(found.truth.argmax(axis=1) == truth) > np.mean(equal.argmax(axis=1) == truth)


def test_few_rows_leave_the_rates_equal():
    _, given, clean = simulated(3, ONE_WAY)
    found = class_flips(clean, np.eye(N_CLASSES)[given], np.ones(3), 0.2)
    np.testing.assert_allclose(found.rates, equal_rates(0.2, N_CLASSES), atol=3 / STRENGTH)


def test_weights_repeat_rows():
    _, given, clean = simulated(40, ONE_WAY)
    labels, times = np.eye(N_CLASSES)[given], np.arange(40) % 3 + 1
    found = class_flips(clean, labels, times.astype(float), 0.1)
    again = class_flips(
        np.repeat(clean, times, axis=0), np.repeat(labels, times, axis=0), np.ones(times.sum()), 0.1
    )
    np.testing.assert_allclose(found.rates, again.rates, rtol=1e-9)


def test_labels_without_doubt_are_what_they_say():
    _, given, clean = simulated(30, ONE_WAY)
    labels = np.eye(N_CLASSES)[given]
    found = class_flips(clean, labels, np.ones(30), 0.0)
    np.testing.assert_array_equal(found.truth, labels)
    np.testing.assert_array_equal(found.rates, np.eye(N_CLASSES))


@pytest.mark.parametrize("n_classes", [1, 2, 5])
def test_equal_rates_are_rates(n_classes):
    rates = equal_rates(0.3, n_classes)
    np.testing.assert_allclose(rates.sum(axis=1), 1, rtol=ROUNDING)
    assert rates[0, 0] == pytest.approx(0.7 if n_classes > 1 else 1.0)


def test_equal_rates_judge_as_one_rate_does():
    _, given, clean = simulated(20, ONE_WAY)
    labels = np.eye(N_CLASSES)[given]
    expected = true_label_probabilities(clean, labels, 0.25)
    found = judged(clean, labels, equal_rates(0.25, N_CLASSES))
    np.testing.assert_allclose(found, expected, rtol=ROUNDING)
