"""The choice of gamma on design rows."""

from fractions import Fraction

import numpy as np

from conformal_gp.conformal.gamma_choice import narrowest_gamma

LEVEL = Fraction(9, 10)


def rows(power, seed=0):
    """Residuals whose size follows a power of their variance."""
    rng = np.random.default_rng(seed)
    variance = rng.lognormal(sigma=1.5, size=2000)
    residual = rng.normal(size=variance.size) * variance**power
    return residual / variance, 1.0 / variance  # alpha, diagonal


def test_residuals_that_follow_the_standard_deviation_choose_two():
    assert narrowest_gamma(*rows(0.5), [1.0, 2.0, np.inf], LEVEL) == 2.0


def test_residuals_of_constant_size_choose_infinity():
    assert narrowest_gamma(*rows(0.0), [1.0, 2.0, np.inf], LEVEL) == np.inf


def test_the_order_of_the_gammas_does_not_matter_unless_they_tie():
    alpha, diagonal = rows(0.5)
    assert narrowest_gamma(alpha, diagonal, [np.inf, 2.0, 1.0], LEVEL) == 2.0
    assert narrowest_gamma(alpha, np.ones_like(diagonal), [4.0, 2.0], LEVEL) == 4.0
