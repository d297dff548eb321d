"""Ties: rows that are equal are equal to the arithmetic too, at any noise, and regions hold the labels that tie."""

import warnings

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from bags import few_draws, is_permutation
from conformal_gp import ConformalGPRegressor
from conformal_gp.conformal.levels import Needed
from conformal_gp.conformal.lines import WIDENING, Lines, Rounding, counts, hulls, regions
from conformal_gp.gp.inputs import Inputs, Scaling
from conformal_gp.gp.posterior import Posterior
from conformal_gp.models.exact import score_lines
from conformal_gp.rows import Rows


def twin_problem(rng, n):
    """Rows, some of them on a grid, some with a label that is far out."""
    X = rng.uniform(-2, 2, (n, int(rng.integers(1, 4))))
    y = np.sin(2 * X[:, 0]) + 10.0 ** rng.uniform(-6, 0) * rng.standard_normal(n)
    if rng.random() < 0.3:
        X = np.round(2 * X) / 2
    if rng.random() < 0.25:
        y[0] += 10.0 ** rng.uniform(1, 5)
    return X, y


@pytest.mark.parametrize("noise", [1e-1, 1e-4, 1e-7, 1e-9, 1e-11])
@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
@pytest.mark.parametrize("kernel", [RBF, lambda length: Matern(length, nu=2.5)], ids=["se", "matern52"])
def test_rounding_errors_are_what_they_are_said_to_be(kernel, mean, noise):
    """A test row that equals a training row has its score, but for less than regions are widened by."""
    rng = np.random.default_rng(0)
    for n in (10, 40, 150):
        for _ in range(20):
            X, y = twin_problem(rng, n)
            inputs = Inputs(Rows(X), Scaling(), mean)
            process = kernel(10.0 ** rng.uniform(-0.5, 0.7))
            posterior = Posterior(process, noise, inputs, y, flat_prior=True, checked=False)
            i = int(rng.integers(n))
            lines = score_lines(posterior, slice(None), posterior.predict(inputs.new(Rows(X[i : i + 1]))), 2.0)
            t = abs(y[i] - lines.centre[0])
            gap = abs(abs(lines.offset[0, i] + lines.slope[0, i] * (y[i] - lines.centre[0])) - t)
            assert gap <= WIDENING * (lines.rounding.floor[0] + lines.rounding.share[0] * t)


@pytest.mark.parametrize("noise", [1e-2, 1e-6, 1e-9])
@pytest.mark.parametrize("gamma", [1.0, 2.0, np.inf])
def test_twins_have_one_p_value(noise, gamma):
    rng = np.random.default_rng(1)
    for _ in range(10):
        X, y = twin_problem(rng, 12)
        X[1], y[1] = X[0], y[0]
        found = []
        for i in (0, 1):
            rest = np.arange(12) != i
            model = ConformalGPRegressor(
                RBF(1.0), tuning="fixed", noise_variance=noise, scale_inputs=False, gamma=gamma
            )
            found.append(model.fit(X[rest], y[rest]).predict_p(X[i : i + 1], y[i : i + 1])[0])
        assert found[0] == found[1]


@pytest.mark.parametrize(
    "options",
    [
        {"tuning": "fixed", "noise_variance": 0.1, "scale_inputs": False},
        {"tuning": "fixed", "noise_variance": 0.1, "scale_inputs": False, "gamma": 1.0},
        {"tuning": "fixed", "noise_variance": 1e-4, "scale_inputs": False, "mean": "linear"},
    ],
)
def test_labels_that_tie_are_in_the_region(options):
    """Inputs and labels of few values: every twentieth label is an end of its interval, and must not fall off it."""
    rng = np.random.default_rng(2)
    on_the_end = 0
    for _ in range(20):
        X = rng.integers(0, 2, (59, 2)).astype(float)
        y = np.round(X.sum(axis=1) + rng.normal(0, 0.7, 59))
        model = ConformalGPRegressor(**options).fit(X[:39], y[:39])
        p = model.predict_p(X[39:], y[39:])
        for level in (0.5, 0.8, 0.9):
            low, high = model.predict_interval(X[39:], level).T
            inside = (low <= y[39:]) & (y[39:] <= high)
            np.testing.assert_array_equal(inside, p > 1.0 - level + 1e-9)
            on_the_end += int((np.minimum(abs(y[39:] - low), abs(y[39:] - high)) < 1e-9).sum())
    assert on_the_end > 10


@pytest.mark.parametrize("noise", [1e-1, 1e-5, 1e-9])
def test_an_end_handed_back_has_a_p_value_that_says_it_is_inside(noise):
    rng = np.random.default_rng(3)
    for _ in range(10):
        X, y = twin_problem(rng, 19)
        model = ConformalGPRegressor(RBF(1.0), tuning="fixed", noise_variance=noise, scale_inputs=False).fit(X, y)
        x = rng.uniform(-2, 2, (5, X.shape[1]))
        for end in model.predict_interval(x, 0.8).T:
            assert (model.predict_p(x, end) > 0.2 + 1e-9).all()


def test_touching_pieces_leave_no_hole():
    """A row that returns where another leaves, but for rounding."""
    lines = Lines(np.zeros(1), np.array([[1.0, -1.0 - 1e-12]]), np.array([[0.0, 2.0]]))
    (region,) = regions(lines, Needed.of_ranks([1]))
    np.testing.assert_array_equal(region, [[-np.inf, np.inf]])
    assert hulls(lines, Needed.of_ranks([1]))[0, :, 0].tolist() == [-np.inf, np.inf]


@pytest.mark.parametrize(
    ("offset", "slope", "floor", "share"),
    [
        (
            1e-7,
            -1.0 + 6e-8,
            0.0,
            3e-7,
        ),  # rows of one input and different targets, with next to no noise: nearly opposite
        (1e-9, 0.5, 1e-3, 0.0),  # a row that ties at the centre ties on both sides
        (-1e-9, 0.5, 1e-3, 0.0),
    ],
)
def test_a_row_that_ties_by_rounding_is_in_p_values_intervals_and_regions(offset, slope, floor, share):
    rounding = Rounding(np.full(1, floor), np.full(1, share), np.zeros(1))
    lines = Lines(np.zeros(1), np.array([[offset]]), np.array([[slope]]), rounding)
    needed = Needed.of_ranks([1])
    (region,) = regions(lines, needed)
    np.testing.assert_allclose(hulls(lines, needed)[0, :, 0], region[[0, -1], [0, 1]])
    for value in (-5.0, -1.5e-3, 1e-8, 1e-7, 1.5e-3, 1.0, 1e9):
        covered = counts(lines, np.array([value]))[0][0] == 1.0
        assert ((region[:, 0] <= value) & (value <= region[:, 1])).any() == covered, value


def test_pieces_narrower_than_the_distance_of_numbers_are_numbers():
    X = np.array([1, 1, 1, 1, 0, 1, 0, 1, 1, 1, 0], dtype=float)[:, None]
    rng = np.random.default_rng(0)
    for _ in range(20):
        y = 128695271.0 + 2.0**-26 * rng.integers(0, 6, 11)
        model = ConformalGPRegressor("nn", tuning="fixed", noise_variance=1e-3, mean="linear", scale_inputs=False)
        model.fit(X, y)
        new = np.array([[1.0], [0.0]])
        for level in (0.1, 0.5):
            intervals = model.predict_interval(new, level)
            for pieces, interval in zip(model.predict_set(new, level), intervals, strict=True):
                np.testing.assert_array_equal(pieces, [interval])


@pytest.mark.parametrize("kernel", ["matern52", "rq"])
def test_labels_that_are_all_alike(kernel):
    X = np.random.default_rng(4).normal(size=(12, 2))
    with pytest.warns(UserWarning, match="the intervals have no width"):
        model = ConformalGPRegressor(kernel, mean="constant").fit(X, np.full(12, 7.3))
    np.testing.assert_allclose(model.predict_interval(X[:2], 0.8), 7.3, rtol=1e-6)
    n_calibration = 12 if model.tuning_ == "integrated" else 6
    np.testing.assert_allclose(model.predict_p(X[:2], [7.3, 7.4]), [1.0, 1.0 / (n_calibration + 1)])


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e9])
def test_a_label_far_out_takes_no_digits_from_the_others(unit):
    """Among the training rows it weighs draws as it does as the test row."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-2, 2, (13, 2))
    y = np.sin(2 * X[:, 0])
    y[0] += 100.0 * unit
    with warnings.catch_warnings(), few_draws():
        warnings.simplefilter("ignore")
        p = [
            ConformalGPRegressor().fit(np.delete(X, i, 0), np.delete(y, i)).predict_p(X[i : i + 1], y[i : i + 1])[0]
            for i in range(13)
        ]
    found = 13 * np.array(p)
    assert is_permutation(found)
    assert np.unique(found.round(9)).size >= 12  # of labels that are rounded to 1e-5 two rows tie


@pytest.mark.parametrize("rounded", [False, True])
def test_sets_contain_what_p_values_say_without_noise(rounded):
    """Rows that tie at the centre tie as far out as rounding lets them, also on the side on which their scores fall.

    p-values allow for the rounding of the value and of its batch twice, ends once: so an end is inside in any batch.
    """
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, size=(650, 2))
    y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1]
    if rounded:
        X = np.round(X)
        y = np.round(2.0 * (y + 0.3 * rng.standard_normal(650)))
    model = ConformalGPRegressor(tuning="holdout", noise_variance=0, n_restarts=0, random_state=0).fit(X[:150], y[:150])
    new = X[150:]
    low, high = model.predict_interval(new, 0.9).T
    for share in rng.uniform(-0.7, 0.7, size=8):
        value = (low + high) / 2.0 + share * (high - low)
        p = model.predict_p(new, value)
        for level in (0.5, 0.8):
            ends = model.predict_interval(new, level)
            agrees = p > 1.0 - level + 1e-12
            inside = (ends[:, 0] <= value) & (value <= ends[:, 1])
            assert not (inside & ~agrees).any()
            beyond = np.maximum(ends[:, 0] - value, value - ends[:, 1])
            assert (beyond[agrees] <= 1e-3 * (high - low)[agrees]).all()
