"""Properties that hold for every problem, whatever the numbers are."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

from cases import GAMMAS, MEANS, contains, fixed_model, make_data
from conformal_gp import ConformalGPRegressor
from conformal_gp.models import exact
from conformal_gp.rows import Rows

pytestmark = pytest.mark.filterwarnings("ignore:confidence_level=.* needs at least:UserWarning")

KERNELS = [
    "se",
    "rq",
    "nn",
    "matern32",
    "matern52",
    ConstantKernel(0.5) * RBF([0.7, 2.0]) + 0.3 * DotProduct(1.0),
    Matern(1.4, nu=0.5) + WhiteKernel(0.05),
]

problems = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10_000),
        "n_rows": st.integers(4, 25),
        "n_repeated": st.integers(0, 3),
        "kernel": st.sampled_from(KERNELS),
        "gamma": st.sampled_from(GAMMAS),
        "mean": st.sampled_from(MEANS),
        "noise_variance": st.sampled_from([0.01, 0.1, 1.0]),
    }
)
# Rows whose predictions differ in their last digits with the rows that are predicted beside them.
OFF_THE_END = {
    "seed": 19,
    "n_rows": 19,
    "n_repeated": 2,
    "kernel": KERNELS[5],
    "gamma": 1.0,
    "mean": "zero",
    "noise_variance": 0.01,
}
levels = st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=60)


class Setting:
    """A fitted model with its training rows and some test inputs, near and far."""

    def __init__(self, problem):
        options = dict(problem)
        seed, n_rows, repeated = (options.pop(name) for name in ("seed", "n_rows", "n_repeated"))
        X, y = make_data(seed, n_rows)
        self.X, self.y = np.vstack([X, X[:repeated]]), np.append(y, y[:repeated])
        rng = np.random.default_rng(seed + 1)
        self.inputs = np.vstack([rng.uniform(-2, 2, (4, 2)), X[:1], [[7.0, -12.0]]])
        self.options = options
        self.model = self.fit(self.X, self.y)

    def fit(self, X, y, **changes):
        return fixed_model(**{**self.options, **changes}).fit(X, y)


def assert_same(found, expected, scale=1.0, rtol=1e-7):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * scale)


def exact_p(model, X, y):
    """p-values as fractions, to be compared with levels exactly."""
    return [Fraction(p).limit_denominator(1000) for p in model.predict_p(X, y)]


@settings(deadline=None, max_examples=60)
@given(problems, levels, levels)
def test_regions_nest_in_the_level(problem, one, other):
    setting, (low, high) = Setting(problem), sorted([one, other])
    inner, outer = (setting.model.predict_set(setting.inputs, level) for level in (low, high))
    for small, large in zip(inner, outer, strict=True):
        for piece in small:
            assert any(a <= piece[0] and piece[1] <= b for a, b in large), (small, large)
    hulls = setting.model.predict_interval(setting.inputs, [low, high])
    assert (hulls[:, 0, 1] <= hulls[:, 0, 0]).all()
    assert (hulls[:, 1, 0] <= hulls[:, 1, 1]).all()


@settings(deadline=None, max_examples=60)
@given(problems, levels, st.sampled_from([0.0, 30.0, 1e5]))
@example(OFF_THE_END, Fraction(1, 50), 0.0)
def test_a_label_is_in_the_region_exactly_if_its_p_value_exceeds_delta(problem, level, shift):
    setting = Setting(problem)
    model = setting.fit(setting.X, setting.y + shift)
    rng = np.random.default_rng(problem["seed"])
    for x, region in zip(setting.inputs, model.predict_set(setting.inputs, level), strict=True):
        ends = region[np.isfinite(region)]
        labels = np.concatenate([shift + rng.normal(0, 3, 20), shift + rng.normal(0, 1e4, 4)])
        labels = np.concatenate([labels, *(ends + step * (1 + np.abs(ends)) for step in (-1e-4, 1e-4))])
        for label, p in zip(labels, exact_p(model, np.tile(x, (labels.size, 1)), labels), strict=True):
            if np.abs(ends - label).min(initial=np.inf) > 1e-6 * (1 + abs(label)):
                assert (p > 1 - level) == contains(region, label), (label, p, region)
        if ends.size:  # regions are closed: the ends that were handed out belong to them
            assert min(exact_p(model, np.tile(x, (ends.size, 1)), ends)) > 1 - level


@settings(deadline=None, max_examples=60)
@given(problems, st.floats(0.0, 1.0), st.sampled_from([0.0, 1e5, 1e9]))
def test_a_bound_is_a_label_that_as_many_rows_reach_as_its_rank_says(problem, share, shift):
    setting = Setting(problem)
    answers = setting.fit(setting.X, setting.y + shift)._answers
    n = answers.n_calibration
    k = 1 + int(share * (n - 1))
    level = [1 - Fraction(k, n + 1)]
    for bounds, is_upper in zip(answers.about(Rows(setting.inputs)).bounds(level, level), (False, True), strict=True):
        labels = bounds[:, 0]
        known = np.isfinite(labels)
        at_least, higher = answers.about(Rows(setting.inputs[known])).parts[0].counts(labels[known], signed=True)
        assert ((at_least if is_upper else n - higher) >= k).all()


@settings(deadline=None, max_examples=40)
@given(problems, levels)
def test_the_interval_is_the_hull_of_the_region(problem, level):
    setting = Setting(problem)
    intervals = setting.model.predict_interval(setting.inputs, level)
    for interval, region in zip(intervals, setting.model.predict_set(setting.inputs, level), strict=True):
        assert_same(interval, [region[0, 0], region[-1, 1]], rtol=1e-13)
        assert (region[:, 0] <= region[:, 1]).all()
        assert (region[1:, 0] > region[:-1, 1]).all()


@settings(deadline=None, max_examples=60)
@given(problems, st.lists(levels, min_size=1, max_size=5))
def test_levels_at_once_equal_levels_one_at_a_time(problem, several):
    setting = Setting(problem)
    together = setting.model.predict_interval(setting.inputs, several)
    assert together.shape == (len(setting.inputs), 2, len(several))
    for i, level in enumerate(several):
        np.testing.assert_array_equal(together[:, :, i], setting.model.predict_interval(setting.inputs, level))


@settings(deadline=None, max_examples=60)
@given(problems, levels, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(problem, level, random):
    setting = Setting(problem)
    order = list(range(setting.y.size))
    random.shuffle(order)
    shuffled = setting.fit(setting.X[order], setting.y[order])
    assert_same(shuffled.predict_interval(setting.inputs, level), setting.model.predict_interval(setting.inputs, level))
    labels = np.linspace(-3, 3, len(setting.inputs))
    np.testing.assert_array_equal(
        shuffled.predict_p(setting.inputs, labels), setting.model.predict_p(setting.inputs, labels)
    )


@settings(deadline=None, max_examples=60)
@given(problems, levels, st.sampled_from([-1e4, -1.0, 1e-6, 0.3, 1e7]), st.floats(-100, 100))
def test_regions_follow_an_affine_change_of_the_labels(problem, level, factor, shift):
    setting = Setting(problem)
    if problem["mean"] == "zero":
        shift = 0.0  # a zero mean is tied to the origin
    changed = setting.fit(setting.X, factor * (setting.y + shift))
    before = setting.model.predict_set(setting.inputs, level)
    for old, new in zip(before, changed.predict_set(setting.inputs, level), strict=True):
        expected = factor * (old + shift)
        expected = expected if factor > 0 else expected[::-1, ::-1]
        assert_same(new, expected, scale=abs(factor) * (1 + abs(shift)))


@settings(deadline=None, max_examples=60)
@given(problems, levels, st.sampled_from([1e-6, 0.02, 50.0, 1e6]))
def test_the_scale_of_kernel_and_noise_together_does_not_matter(problem, level, factor):
    setting = Setting(problem)
    kernel = ConstantKernel(factor) * setting.model.kernel_
    scaled = setting.fit(setting.X, setting.y, kernel=kernel, noise_variance=factor * setting.model.noise_variance_)
    for found, expected in zip(
        scaled.predict_set(setting.inputs, level), setting.model.predict_set(setting.inputs, level), strict=True
    ):
        assert_same(found, expected)
    labels = np.linspace(-3, 3, len(setting.inputs))
    np.testing.assert_array_equal(
        scaled.predict_p(setting.inputs, labels), setting.model.predict_p(setting.inputs, labels)
    )


@settings(deadline=None, max_examples=60)
@given(problems, levels, st.integers(0, 5))
def test_test_rows_do_not_influence_each_other(problem, level, row):
    setting = Setting(problem)
    model, inputs, x = setting.model, setting.inputs, setting.inputs[[row]]
    assert_same(model.predict_interval(x, level)[0], model.predict_interval(inputs, level)[row], rtol=1e-10)
    assert_same(model.predict_set(x, level)[0], model.predict_set(inputs, level)[row], rtol=1e-10)
    assert_same(model.predict(x)[0], model.predict(inputs)[row], rtol=1e-10)
    labels = np.linspace(-3, 3, len(inputs))
    assert model.predict_p(x, labels[[row]])[0] == model.predict_p(inputs, labels)[row]


@settings(deadline=None, max_examples=40)
@given(problems, st.integers(0, 100))
def test_smoothed_p_values_lie_between_the_share_above_and_the_share_not_below(problem, seed):
    setting = Setting(problem)
    labels = np.append(setting.y[:1], np.linspace(-2, 2, 5))
    inputs = np.vstack([setting.X[:1], setting.inputs[:5]])  # a repeated observation ties
    p = setting.model.predict_p(inputs, labels)
    smoothed = setting.model.predict_p(inputs, labels, smoothing=True, random_state=seed)
    again = setting.model.predict_p(inputs, labels, smoothing=True, random_state=seed)
    np.testing.assert_array_equal(smoothed, again)
    assert ((smoothed >= 0) & (smoothed <= p)).all()
    n = setting.y.size + 1
    assert (smoothed[1:] >= p[1:] - (2 + problem["n_repeated"]) / n).all()


def trained(X, y, **options):
    settings = {"tuning": "train", "n_restarts": 1, "random_state": 0, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ConformalGPRegressor(**settings).fit(X, y)


@pytest.mark.parametrize("name", ["se", "rq", "nn", "matern32", "matern52"])
@pytest.mark.parametrize("mean", MEANS)
def test_learnt_models_follow_an_affine_change_of_the_labels(name, mean):
    X, y = make_data(5, 40)
    inputs = np.array([[0.1, 0.2], [1.0, -1.0], [2.0, 2.0]])
    expected = trained(X, y, kernel=name, mean=mean).predict_interval(inputs, [0.5, 0.9])
    for factor, shift in ((1e-3, 0.0), (1e4, 0.0), (200.0, 0.0 if mean == "zero" else -3.0)):
        changed = trained(X, factor * (y + shift), kernel=name, mean=mean)
        found = changed.predict_interval(inputs, [0.5, 0.9]) / factor - shift
        np.testing.assert_allclose(found, expected, atol=2e-3 * y.std())


@pytest.mark.parametrize("name", ["se", "rq", "matern52"])
def test_learnt_models_follow_a_change_of_units_of_the_inputs(name):
    X, y = make_data(6, 40)
    inputs = np.array([[0.1, 0.2], [1.0, -1.0]])
    expected = trained(X, y, kernel=name).predict_interval(inputs)
    units, origin = np.array([1e3, 1e-4]), np.array([273.0, -1.0])
    found = trained(X * units + origin, y, kernel=name).predict_interval(inputs * units + origin)
    np.testing.assert_allclose(found, expected, atol=1e-4 * y.std())


@pytest.mark.parametrize("gamma", GAMMAS)
def test_threads_change_nothing_and_blocks_change_ends_by_rounding(gamma, monkeypatch):
    X, y = make_data(7, 30)
    inputs, labels = make_data(8, 300)
    models = [fixed_model("nn", gamma=gamma, mean="linear", n_jobs=n_jobs).fit(X, y) for n_jobs in (None, 1, 2, 5)]

    def answers(model):
        return (
            *model.predict(inputs, return_std=True),
            model.predict_interval(inputs, [0.6, 0.9]),
            np.concatenate(model.predict_set(inputs, 0.8)),
            model.predict_bound(inputs, 0.8),
            model.predict_p(inputs, labels),
            model.predict_p(inputs, labels, smoothing=True, random_state=3),
        )

    whole = answers(models[0])  # one block
    monkeypatch.setattr(exact, "CACHED_ROWS", (64, 64))
    first, *others = map(answers, models)
    for other in others:
        for one, again in zip(first, other, strict=True):
            np.testing.assert_array_equal(again, one)
    for one, in_blocks in zip(whole, first, strict=True):
        np.testing.assert_allclose(in_blocks, one, rtol=1e-9, atol=1e-11)
