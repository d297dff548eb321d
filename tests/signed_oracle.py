"""One-sided bounds and distribution functions by brute force, from the signed scores of all rows of a bag."""

from fractions import Fraction

import numpy as np
import pytest

from cases import INF, LEVELS


def supremum(a, b, calibration, k):
    """Of labels that at least k rows score at least as high as: the ends are where lines cross."""
    crossings = np.sort((a[calibration] - a[-1]) / (b[-1] - b[calibration]))
    between = np.concatenate([crossings, [crossings[-1] + 1.0]])
    slack = 1e-9 * np.abs(a).max()
    enough = [np.sum(a[calibration] + b[calibration] * t >= a[-1] + b[-1] * t - slack) >= k for t in between]
    if enough[-1]:
        return INF
    return max(between[:-1][np.array(enough[:-1])], default=-INF)


def check_against_lines(model, x, a, b, calibration, y):
    """Bounds, quantiles and distribution function against the lines of all rows of the bag, from a dense inverse."""
    n = calibration.size
    tolerance = {"rtol": 1e-7, "atol": 1e-7 * np.abs(y).max()}
    for level in LEVELS:
        k = int((1 - level) * (n + 1))
        upper, lower = supremum(a, b, calibration, k), -supremum(-a, b, calibration, k)
        np.testing.assert_allclose(model.predict_bound([x], level)[0], upper, **tolerance)
        np.testing.assert_allclose(model.predict_bound([x], level, side="lower")[0], lower, **tolerance)
        if level > Fraction(1, 2):
            np.testing.assert_allclose(model.predict_quantiles([x], [1 - level, level])[0], [lower, upper], **tolerance)
            equal = model.predict_interval([x], 2 * level - 1, tails="equal")[0]
            np.testing.assert_allclose(equal, [lower, upper], **tolerance)
    for label in (-4.0, 0.0, 0.5, 3.0):
        scores = a + b * label
        value = (np.sum(scores[calibration] < scores[-1]) + 0.5) / (n + 1)
        assert model.predict_cdf([x], [label])[0] == pytest.approx(value, abs=1e-12)
