import numpy as np
import pytest

from bnca.experiments.metrics import FLOOR, KEPT, calibration_error, kept_accuracy, predicted


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
