"""Nearly singular covariance matrices: the right interval, to a stated tolerance, or a clear error."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.linalg import LinAlgError
from sklearn.gaussian_process.kernels import RBF

import oracle
from cases import training
from conformal_gp import ConformalGPRegressor
from conformal_gp.gp.posterior import Posterior, noise_floor

NOISES = (1e-4, 1e-6, 1e-8, 1e-9, 1e-10, 1e-12, 1e-13, 1e-14)
LENGTH_SCALES = (0.3, 10.0, 1e6)


def problem(seed, l, duplicates):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(l, 2))
    x_new = 0.5 * rng.normal(size=(1, 2))
    if duplicates:
        X[1] = X[0]
        x_new = X[2:3].copy()
    return X, np.sin(X[:, 0]) + 0.01 * rng.normal(size=l), x_new


def fast_hull(X, y, x_new, length_scale, noise, delta, gamma):
    model = ConformalGPRegressor(
        RBF(length_scale), mean="zero", noise_variance=noise, gamma=gamma, tuning="fixed", scale_inputs=False
    )
    return model.fit(X, y).predict_interval(x_new, 1 - delta)[0]


def exact_hull(X, y, x_new, length_scale, noise, delta, gamma):
    return oracle.hull(oracle.region_mpmath(X, y, x_new, 1.0, length_scale, noise, delta, gamma, digits=50))


@pytest.mark.parametrize("gamma", [1.0, 2.0, np.inf])
@pytest.mark.parametrize("duplicates", [False, True])
@pytest.mark.parametrize("length_scale", LENGTH_SCALES)
def test_interval_is_right_or_refused(length_scale, duplicates, gamma):
    delta = Fraction(3, 13)
    for seed, noise in enumerate(NOISES):
        X, y, x_new = problem(seed, 12, duplicates)
        try:
            fast = fast_hull(X, y, x_new, length_scale, noise, delta, gamma)
        except LinAlgError:
            if noise >= 1e-8:  # not so small that it may be refused
                raise
            continue
        exact = np.array(exact_hull(X, y, x_new, length_scale, noise, delta, gamma), dtype=float)
        # relative to the labels: as theory.md says
        condition = 1.0 / np.linalg.cond(RBF(length_scale)(X) + noise * np.eye(12), 1)
        tolerance = 1e-6 if condition >= 1e-10 else 1e-4 if condition >= 1e-12 else 2e-3
        size = np.abs(y).max() + np.abs(exact[np.isfinite(exact)]).max(initial=0.0)
        assert fast[0] <= exact[0] + tolerance * size
        assert fast[1] >= exact[1] - tolerance * size
        # of equal rows with next to no noise, ends are known to few digits, and intervals are wider by that
        if not duplicates:
            np.testing.assert_allclose(fast, exact, rtol=5e-3, atol=5e-3 * size)


def test_small_noise_on_many_rows_is_right():
    X, y, x_new = problem(0, 40, False)
    arguments = (X, y, x_new, 2.0, 1e-7, Fraction(1, 10), 2.0)
    np.testing.assert_allclose(fast_hull(*arguments), exact_hull(*arguments), rtol=1e-6)


def test_the_advised_noise_is_accepted():
    X, y, x_new = problem(0, 12, False)
    with pytest.raises(LinAlgError) as refused:
        fast_hull(X, y, x_new, 1e6, 0.0, Fraction(1, 5), 2.0)
    advised = float(str(refused.value).split("at least ")[1].split(",")[0])
    assert np.isfinite(fast_hull(X, y, x_new, 1e6, advised, Fraction(1, 5), 2.0)).all()


def test_test_row_on_a_training_row_without_noise_is_refused():
    X, y, _ = problem(0, 12, False)
    with pytest.raises(LinAlgError, match="cannot be told from rounding"):
        fast_hull(X, y, X[:1], 0.3, 0.0, Fraction(1, 5), 2.0)


@pytest.mark.filterwarnings("ignore:The likelihood was not maximised:UserWarning")
def test_learnt_noise_is_never_lost_in_rounding():
    X = np.linspace(0.0, 1.0, 30)[:, None]
    model = ConformalGPRegressor(
        1e6 * RBF(100.0, "fixed"),
        mean="zero",
        noise_variance=1e-14,
        tuning="train",
        n_restarts=0,
        scale_inputs=False,
    ).fit(X, X[:, 0])
    assert model.noise_variance_ > 0.999 * noise_floor(30) * model.kernel_.k1.constant_value
    assert np.isfinite(model.predict_interval(X[:3] + 0.01, 0.8)).all()


def exact_scores(A, H, y):
    """Studentised leave-one-out residuals from the projected inverse of a covariance matrix, with 50 digits."""
    n, p = H.shape
    with mpmath.workdps(50):
        system = mpmath.matrix(np.block([[A, H], [H.T, np.zeros((p, p))]]).tolist())
        P = mpmath.inverse(system)[:n, :n]
        weighted = P * mpmath.matrix(y.tolist())
        return np.array([float(weighted[i] / mpmath.sqrt(P[i, i])) for i in range(n)])


@pytest.mark.parametrize("kernel", ["matern52", "se"])
def test_scores_at_the_least_noise_that_is_tuned_are_known_to_half_a_percent(kernel):
    X = np.random.default_rng(1).uniform(-1.0, 1.0, size=(40, 2))
    y = np.exp(X[:, 0] + 0.5 * X[:, 1])
    model = ConformalGPRegressor(kernel, tuning="holdout", noise_variance=0.0, scale_inputs=False, random_state=0)
    model.fit(X, y)
    unit = float(model.kernel_.diag(X)[0])
    assert model.noise_variance_ <= 1e-9 * unit
    posterior = Posterior(model.kernel_, model.noise_variance_, training(X, np.ones((40, 1))), y, flat_prior=True)
    found = posterior.alpha / np.sqrt(posterior.diagonal)
    A = (model.kernel_(X) + model.noise_variance_ * np.eye(40)) / unit
    exact = exact_scores(A, np.ones((40, 1)), y) / np.sqrt(unit)
    np.testing.assert_allclose(found, exact, rtol=0.0, atol=0.005 * np.median(np.abs(exact)))
