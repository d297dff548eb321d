"""Arguments of predict_quantiles, predict_bound, predict_cdf and of intervals with equal tails."""

import re
import warnings
from fractions import Fraction

import numpy as np
import pytest

from cases import fixed_model, make_data
from conformal_gp import ConformalGPRegressor

X, Y = make_data(0, 39)
NEW = X[:3] + 0.1


@pytest.fixture(scope="module", params=["exact", "low rank"])
def model(request):
    if request.param == "exact":
        return fixed_model().fit(X, Y)
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
    assert model.predict_cdf(NEW, Y[:3]).shape == (3,)


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
    flat = np.column_stack([X[:, 0], np.zeros(39)])
    for options in ({"tuning": "fixed", "noise_variance": 0.1}, {"tuning": "integrated"}):
        found = fixed_model(**{**options, "mean": "linear"}).fit(flat, Y)
        new = np.array([[0.0, 5.0]])
        np.testing.assert_array_equal(found.predict_interval(new, 0.5, tails="equal"), [[-np.inf, np.inf]])
        assert found.predict_cdf(new, [3.0])[0] == 0.5
        assert np.isnan(found.predict_quantiles(new, 0.5)[0])
