"""Predictive distributions: the guarantee by permutation of the bag, brute force, arguments, objects and scores."""

import re
import warnings
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

import oracle
from cases import GAMMAS, INF, MEANS, fixed_model, make_basis, make_data
from conformal_gp import ConformalGPRegressor
from conformal_gp.distributions import PredictiveDistribution
from signed_oracle import check_against_lines

KERNEL = ConstantKernel(1.5) * Matern(0.9, nu=1.5)
TUNING = np.arange(12)
EXACT = {
    "holdout": ConformalGPRegressor(tuning="holdout", tuning_rows=TUNING, n_restarts=0),
    "fixed": ConformalGPRegressor(tuning="fixed", noise_variance=0.1, scale_inputs=False),
    "fixed, gamma inf": ConformalGPRegressor(tuning="fixed", noise_variance=0.1, scale_inputs=False, gamma=INF),
    "low rank": ConformalGPRegressor(tuning_rows=TUNING, low_rank=6, n_restarts=0, random_state=0),
}


def skewed(seed, n):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.4 * rng.exponential(size=n)


def signed_ranks(model, X, y, test_rows):
    """Each of some rows in turn is the test row: how many rows score less, and the quarter of labels on either side."""
    found, inside = [], []
    for i in test_rows:
        rest = np.arange(y.size) != i
        model.fit(X[rest], y[rest])
        assert model.guarantee_.startswith("Valid:")
        found.append(model.predict_cdf(X[[i]], y[[i]])[0] * len(test_rows) - 0.5)
        low, high = model.predict_quantiles(X[[i]], [0.25, 0.75])[0]
        inside.append((low <= y[i], y[i] <= high))
    return np.sort(found), np.mean(inside, axis=0)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("seed", [0])
def test_signed_ranks_of_a_bag_are_a_permutation(name, seed):
    has_tuning_rows = EXACT[name].tuning_rows is not None
    X, y = skewed(seed, 24 if has_tuning_rows else 12)
    found, inside = signed_ranks(EXACT[name], X, y, np.arange(12) + 12 * has_tuning_rows)
    if name == "integrated":  # scores may fall with the label, and steps are the outermost: nearer to the middle
        assert (np.abs(found - 5.5) <= np.abs(np.arange(12) - 5.5) + 1e-9).all()
        assert (np.abs(found - np.arange(12)) < 1e-9).sum() >= 11
    else:
        np.testing.assert_allclose(found, np.arange(12), atol=1e-9)
    assert (inside >= 0.75).all()


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("mean", MEANS)
def test_fixed_hyperparameters_equal_brute_force(mean, gamma):
    X, y = make_data(3, 19)
    model = fixed_model(KERNEL, mean=mean, gamma=gamma).fit(X, y)
    for x in np.array([[0.2, -0.4], [2.0, 1.0], [-4.0, 6.0]]):
        basis = make_basis(mean, np.vstack([X, x]))
        bases = (None, None) if basis is None else (basis[:-1], basis[-1])
        a, b = oracle.lines(KERNEL, 0.1, X, y, x, gamma, *bases)
        check_against_lines(model, x, a, b, np.arange(19), y)


def test_studentised_kernel_ridge_regression_prediction_machine():
    machines = pytest.importorskip("online_cp.CPS", reason="online-cp is a test extra")
    X, y = make_data(4, 39)
    machine = machines.KernelRidgePredictionMachine(lambda A, B=None: KERNEL(A, A if B is None else B), a=0.1)
    machine.learn_initial_training_set(X, y)
    model = fixed_model(KERNEL).fit(X, y)
    for x in np.array([[0.2, -0.4], [2.0, 1.0]]):
        quantiles = model.predict_quantiles([x], [Fraction(i, 40) for i in range(1, 40)])
        np.testing.assert_allclose(quantiles[0], machine.predict_cpd(x).C[1:-1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", EXACT)
def test_bounds_are_nested_and_do_not_cross(name):
    X, y = skewed(3, 50)
    X_new, _ = skewed(4, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = EXACT[name].fit(X, y)
        quantiles = np.linspace(0.02, 0.98, 49)
        assert (np.diff(model.predict_quantiles(X_new, quantiles), axis=1) >= 0).all()
        levels = np.linspace(0.05, 0.95, 19)
        upper, lower = (model.predict_bound(X_new, levels, side=side) for side in ("upper", "lower"))
        assert (np.diff(upper, axis=1) >= 0).all()
        assert (np.diff(lower, axis=1) <= 0).all()
        intervals = model.predict_interval(X_new, levels, tails="equal")
        assert (intervals[:, 0] <= intervals[:, 1]).all()
        assert (np.diff(intervals[:, 1], axis=1) >= 0).all()


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("factor", [8.0, -0.5])
def test_units_of_labels_do_not_matter(name, factor):
    X, y = skewed(3, 50)
    X_new, y_new = skewed(4, 6)
    one = EXACT[name].fit(X, y)
    quantiles = np.array([0.1, 0.25, 0.5, 0.8])
    values, cdf = one.predict_quantiles(X_new, quantiles), one.predict_cdf(X_new, y_new)
    other = EXACT[name].fit(X, factor * y + 3.0)
    turned = other.predict_quantiles(X_new, quantiles if factor > 0 else 1 - quantiles)
    np.testing.assert_allclose(turned, factor * values + 3.0, rtol=1e-4, atol=1e-4)
    expected = cdf if factor > 0 else 1 - cdf
    np.testing.assert_allclose(other.predict_cdf(X_new, factor * y_new + 3.0), expected, atol=1e-9)


@pytest.mark.parametrize("name", EXACT)
def test_bounds_are_where_the_distribution_function_says(name):
    X, y = skewed(3, 50)
    model = EXACT[name].fit(X, y)
    n = model._answers.n_calibration
    X_new, _ = skewed(4, 5)
    k = int(np.floor(0.25 * (n + 1) + 1e-9))
    for side, sign in (("upper", 1.0), ("lower", -1.0)):
        bound = model.predict_bound(X_new, 0.75, side=side)
        beyond = model.predict_cdf(X_new, bound + sign * 1e-6) * (n + 1) - 0.5  # rows that score less
        at = model.predict_cdf(X_new, bound) * (n + 1) - 0.5  # the deciding row counts half
        covering = (n - beyond, n - at + 0.5) if sign > 0 else (beyond, at + 0.5)
        assert (covering[0] < k).all()
        assert (covering[1] >= k).all()


ROWS, TARGETS = make_data(0, 39)
NEW = ROWS[:3] + 0.1


@pytest.fixture(scope="module", params=["exact", "low rank"])
def model(request):
    if request.param == "exact":
        return fixed_model().fit(ROWS, TARGETS)
    options = {"tuning": "fixed", "noise_variance": 0.1, "tuning_rows": np.arange(12), "low_rank": 8}
    return ConformalGPRegressor("se", **options).fit(*make_data(0, 51))


def test_shapes(model):
    assert model.predict_quantiles(NEW, 0.5).shape == (3,)
    assert model.predict_quantiles(NEW, [0.5]).shape == (3, 1)
    assert model.predict_quantiles(NEW, np.array([0.1, 0.5, 0.9])).shape == (3, 3)
    assert model.predict_bound(NEW).shape == (3,)
    assert model.predict_bound(NEW, [0.8, 0.9], side="lower").shape == (3, 2)
    np.testing.assert_array_equal(model.predict_interval(NEW), model.predict_interval(NEW, 0.95))
    np.testing.assert_array_equal(model.predict_set(NEW), model.predict_set(NEW, 0.95))
    assert model.predict_interval(NEW, 0.9, tails="equal").shape == (3, 2)
    assert model.predict_interval(NEW, [0.8, 0.9], tails="equal").shape == (3, 2, 2)
    assert model.predict_cdf(NEW, TARGETS[:3]).shape == (3,)


def test_quantiles_in_any_order_and_several_times(model):
    one_by_one = [model.predict_quantiles(NEW, q) for q in (0.9, 0.5, 0.1, 0.5, 0.9)]
    found = model.predict_quantiles(NEW, [0.9, 0.5, 0.1, 0.5, 0.9])
    np.testing.assert_allclose(found, np.stack(one_by_one, axis=1), rtol=1e-12)


def test_a_quantile_is_the_bound_on_its_side(model):
    np.testing.assert_array_equal(model.predict_quantiles(NEW, 0.9), model.predict_bound(NEW, 0.9))
    np.testing.assert_array_equal(model.predict_quantiles(NEW, 0.1), model.predict_bound(NEW, 0.9, side="lower"))
    both = [model.predict_bound(NEW, 0.5, side=side) for side in ("lower", "upper")]
    np.testing.assert_allclose(model.predict_quantiles(NEW, Fraction(1, 2)), np.mean(both, axis=0))


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, 1.5, np.nan, np.inf, True, "0.5", None, [0.5, 0.0], [0.5, np.nan], []])
def test_quantiles_outside_0_and_1_are_refused(model, bad):
    with pytest.raises(ValueError, match="quantiles must"):
        model.predict_quantiles(NEW, bad)


@pytest.mark.parametrize("number", [-1, 0, 1.5, "3", None, True, np.nan, [2]])
def test_numbers_of_draws_and_steps(model, number):
    message = re.escape(f"must be a whole number of at least 1, got {number!r}.")
    with pytest.raises(ValueError, match=f"^n_samples {message}$"):
        model.sample_y(NEW, number)
    with pytest.raises(ValueError, match=f"^max_steps {message}$"):
        model.predict_distribution(NEW, number)
    with pytest.raises(ValueError, match=f"^n {message}$"):
        model.predict_distribution(NEW).sample(number)


def test_a_quantile_in_percent_gets_a_hint(model):
    with pytest.raises(ValueError, match=r"quantiles must lie strictly between 0 and 1, got 95; 95% is 0\.95"):
        model.predict_quantiles(NEW, 95)


@pytest.mark.parametrize("bad", [0, 1, 95, "95%"])
def test_levels_of_bounds_are_those_of_intervals(model, bad):
    with pytest.raises(ValueError, match="confidence_level must"):
        model.predict_bound(NEW, bad)


@pytest.mark.parametrize("bad", ["both", "Upper", None, 1])
def test_sides_and_tails(model, bad):
    with pytest.raises(ValueError, match="side must be 'upper' or 'lower', got"):
        model.predict_bound(NEW, side=bad)
    with pytest.raises(ValueError, match="tails must be 'joint' or 'equal', got"):
        model.predict_interval(NEW, tails=bad)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_labels_that_are_not_finite_are_refused(model, bad):
    with pytest.raises(ValueError, match=r"y contains .* in row 1"):
        model.predict_cdf(NEW, [0.0, bad, 1.0])


def test_infinite_with_a_warning_that_says_how_many_rows_it_takes(model):
    with pytest.warns(
        UserWarning, match="quantile=0.99 needs at least 99 calibration rows, the model has 39"
    ) as caught:
        found = model.predict_quantiles(NEW, [0.5, 0.99])
    assert caught[0].filename == __file__
    assert np.isfinite(found[:, 0]).all()
    assert (found[:, 1] == np.inf).all()
    with pytest.warns(UserWarning, match="quantile=0.01 needs at least 99 calibration rows"):
        assert (model.predict_quantiles(NEW, 0.01) == -np.inf).all()
    with pytest.warns(
        UserWarning, match="confidence_level=0.98 needs at least 49 calibration rows.* its bounds are infinite"
    ):
        assert (model.predict_bound(NEW, 0.98, side="lower") == -np.inf).all()
    with pytest.warns(UserWarning, match="confidence_level=0.96 needs at least 49 calibration rows") as caught:
        assert np.isinf(model.predict_interval(NEW, 0.96, tails="equal")).all()
    assert caught[0].filename == __file__


def test_as_many_rows_as_the_warning_asks_for_are_enough(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(model.predict_quantiles(NEW, [Fraction(1, 40), 0.975])).all()
        assert np.isfinite(model.predict_interval(NEW, 0.95, tails="equal")).all()


def test_smoothing(model):
    labels = model.predict_quantiles(NEW, 0.5)
    plain = model.predict_cdf(NEW, labels)
    first, again, other = (model.predict_cdf(NEW, labels, smoothing=True, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()
    assert (np.abs(first - plain) <= 1 / 40 + 1e-12).all()  # the row whose threshold this is ties
    far = model.predict_cdf(NEW, labels + 1e6)
    np.testing.assert_allclose(far, 1 - 0.5 / 40)


def test_nothing_is_known_where_the_mean_is_not_determined():
    flat = np.column_stack([ROWS[:, 0], np.zeros(39)])
    for options in ({"tuning": "fixed", "noise_variance": 0.1}, {"tuning": "integrated"}):
        found = fixed_model(**{**options, "mean": "linear"}).fit(flat, TARGETS)
        new = np.array([[0.0, 5.0]])
        np.testing.assert_array_equal(found.predict_interval(new, 0.5, tails="equal"), [[-np.inf, np.inf]])
        assert found.predict_cdf(new, [3.0])[0] == 0.5
        assert np.isnan(found.predict_quantiles(new, 0.5)[0])


FORTY_ROWS, THEIR_TARGETS = make_data(0, 40)
SIX_ROWS, LABELS = make_data(1, 6)
LEVELS = [0.1, 0.25, 0.5, 0.8, 0.95]


@pytest.fixture(scope="module")
def fitted():
    return fixed_model().fit(FORTY_ROWS, THEIR_TARGETS)


def integrated(y, steps):
    """The score by its definition, piece by piece."""
    ends = np.sort(np.append(steps, y))
    pieces = pairwise(ends)
    return sum(quad(lambda x: (np.mean(steps <= x) - (y <= x)) ** 2, low, high)[0] for low, high in pieces)


def test_crps_is_the_integral():
    rng = np.random.default_rng(0)
    y, steps = rng.standard_normal(8), np.sort(rng.standard_normal((8, 7)), axis=1)
    expected = [integrated(*row) for row in zip(y, steps, strict=True)]
    np.testing.assert_allclose(PredictiveDistribution(steps).crps(y), expected, rtol=1e-6)
    assert PredictiveDistribution(np.array([[3.5]])).crps([1.0]) == 2.5  # one step: the absolute error
    assert PredictiveDistribution(np.array([[0.0, np.inf]])).crps([0.0]) == np.inf


def test_the_object_says_what_the_methods_say(fitted):
    distribution = fitted.predict_distribution(SIX_ROWS)
    assert distribution.steps.shape == (6, 40)
    assert len(distribution) == 6
    assert "6 rows, 40 steps" in repr(distribution)
    np.testing.assert_allclose(distribution.quantile(LEVELS), fitted.predict_quantiles(SIX_ROWS, LEVELS), rtol=1e-12)
    np.testing.assert_allclose(distribution.quantile(0.3), fitted.predict_quantiles(SIX_ROWS, 0.3), rtol=1e-12)
    np.testing.assert_allclose(distribution.cdf(LABELS), fitted.predict_cdf(SIX_ROWS, LABELS))
    for levels in (0.8, [0.5, 0.9]):
        expected = fitted.predict_interval(SIX_ROWS, levels, tails="equal")
        np.testing.assert_allclose(distribution.interval(levels), expected, rtol=1e-12)


def test_a_level_beyond_the_steps_is_infinite(fitted):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = fitted.predict_quantiles(SIX_ROWS, [0.001, 0.999])
    np.testing.assert_array_equal(fitted.predict_distribution(SIX_ROWS).quantile([0.001, 0.999]), expected)


def test_fewer_steps_than_rows(fitted):
    few = fitted.predict_distribution(SIX_ROWS, max_steps=19)
    quantiles = np.arange(1, 20) / 20
    np.testing.assert_allclose(few.steps, fitted.predict_quantiles(SIX_ROWS, quantiles), rtol=1e-12)
    np.testing.assert_allclose(few.mean, fitted.predict_distribution(SIX_ROWS).mean, atol=0.1)


@pytest.mark.parametrize("bad", [0, -1, 2.5, None])
def test_steps_are_counted(fitted, bad):
    with pytest.raises(ValueError, match="max_steps must be a whole number of at least 1"):
        fitted.predict_distribution(SIX_ROWS, max_steps=bad)


def test_samples_are_steps(fitted):
    distribution = fitted.predict_distribution(SIX_ROWS)
    drawn = distribution.sample(4000, random_state=0)
    assert drawn.shape == (6, 4000)
    assert all(np.isin(row, steps).all() for row, steps in zip(drawn, distribution.steps, strict=True))
    np.testing.assert_allclose(drawn.mean(axis=1), distribution.mean, atol=0.1)
    np.testing.assert_allclose(drawn.std(axis=1), distribution.std, atol=0.1)
    np.testing.assert_array_equal(drawn, distribution.sample(4000, random_state=0))


def test_steps_refuse_labels_that_are_not_finite(fitted):
    with pytest.raises(ValueError, match="y contains NaN in row 0"):
        fitted.predict_distribution(SIX_ROWS[:1]).crps([np.nan])
