"""Labels on their own scale: every answer is that of a model of mapped labels, mapped back, and stays exact."""

import pickle
import warnings

import numpy as np
import pytest

import bags
from conformal_gp import ConformalGPRegressor
from conformal_gp.saving import dumps as saved
from conformal_gp.saving import loads as loaded
from conformal_gp.targets.target import Target
from conformal_gp.targets.transformation import BoxCox, Functions, YeoJohnson

LOG = (np.log, np.exp)
LOW_RANK = {"low_rank": 8, "tuning_rows": np.arange(12), "n_restarts": 0, "random_state": 0}
FIXED = {"tuning": "fixed", "noise_variance": 0.1, "scale_inputs": False}
HOLDOUT = {"tuning": "holdout", "tuning_rows": np.arange(12), "n_restarts": 0}
MODELS = {
    "integrated": {"tuning": "integrated"},
    "gamma inf": {"gamma": np.inf, **HOLDOUT},
    "fixed": FIXED,
    "holdout": HOLDOUT,
    "train": {"tuning": "train", "n_restarts": 0, "ard": False, "mean": "zero"},
    "low rank": LOW_RANK,
}


def rows(seed=0, n=24):
    """Positive labels whose noise is in proportion."""
    X, y = bags.noisy(np.random.default_rng(seed), n)
    return X, np.exp(y)


def made(name, **options):
    return ConformalGPRegressor(**{**MODELS[name], **options})


@pytest.mark.parametrize("name", MODELS)
def test_every_answer_is_mapped_back(name):
    X, y = rows()
    new, labels = X[:5] + 0.3, y[:5] * 1.2
    one, other = (
        made(name, target_transform="log").fit(X, y),
        made(name, target_transform=None, y_bounds=None).fit(X, np.log(y)),
    )
    mean, std = other.predict(new, return_std=True)
    close = {"rtol": 1e-2 if name in ("gamma inf", "holdout", "low rank") else 1e-7}  # a search stops at some tolerance
    np.testing.assert_allclose(one.predict(new), np.exp(mean), **close)
    spread = 0.5 * (np.exp(mean + std) - np.exp(mean - std))
    np.testing.assert_allclose(one.predict(new, return_std=True), [np.exp(mean), spread], **close)
    for method, asked in [
        ("predict_interval", ([0.5, 0.8],)),
        ("predict_interval", (0.8, "equal")),
        ("predict_quantiles", ([0.1, 0.3, 0.8],)),
        ("predict_bound", (0.8,)),
    ]:
        found, expected = (getattr(model, method)(new, *asked) for model in (one, other))
        np.testing.assert_allclose(found, np.exp(expected), **close)
    for ours, theirs in zip(one.predict_set(new, 0.7), other.predict_set(new, 0.7), strict=True):
        np.testing.assert_allclose(ours, np.exp(theirs), **close)
    np.testing.assert_array_equal(one.predict_p(new, labels), other.predict_p(new, np.log(labels)))
    np.testing.assert_array_equal(one.predict_cdf(new, labels), other.predict_cdf(new, np.log(labels)))
    ours, theirs = one.predict_distribution(new), other.predict_distribution(new)
    upper = np.quantile(theirs.steps, 0.9, axis=1, method="nearest")
    assert np.quantile(ours.steps, 0.9, axis=1, method="nearest") == pytest.approx(np.exp(upper), rel=1e-2)
    np.testing.assert_array_equal(ours.cdf(labels), theirs.cdf(np.log(labels)))


@pytest.mark.parametrize(("name", "target_transform"), [("holdout", "auto"), ("low rank", "yeo-johnson")])
def test_maps_are_learnt_from_tuning_rows_alone(name, target_transform):
    X, y = rows(n=40)
    options = {"target_transform": target_transform, "tuning_rows": np.arange(20)}
    one = made(name, **options).fit(X, y)
    y[20:] = np.random.default_rng(1).uniform(1, 2, 20)
    assert made(name, **options).fit(X, y).target_transform_ == one.target_transform_


@pytest.mark.parametrize("target_transform", ["log", "sqrt", "box-cox", "yeo-johnson"])
def test_units_of_labels_do_not_matter(target_transform):
    X, y = rows()
    one, other = (made("holdout", target_transform=target_transform).fit(X, factor * y) for factor in (1.0, 1024.0))
    ours, theirs = one.predict_interval(X, 0.8), other.predict_interval(X, 0.8)
    np.testing.assert_allclose(1024.0 * ours, theirs, rtol=1e-2, atol=1.0)


@pytest.mark.parametrize(
    "target_transform",
    [BoxCox(e) for e in (-1.0, 0.0, 1 / 3, 0.5, 2.0)]
    + [BoxCox(e, cut=0.5) for e in (0.0, 0.5)]
    + [YeoJohnson(e, 3.0) for e in (0.0, 0.5, 1.0, 2.0)]
    + [Functions((np.cbrt, lambda z: z**3), np.arange(1.0, 5.0)), Functions((np.reciprocal,) * 2, np.arange(1.0, 5.0))],
)
def test_maps_rise_and_have_an_inverse(target_transform):
    y = np.geomspace(1e-3, 1e3, 50)
    z = target_transform.forward(y)
    assert (np.diff(z) > 0).all()
    np.testing.assert_allclose(target_transform.backward(z), y, rtol=1e-8)
    ends = target_transform.backward(np.array([-np.inf, z[0] - 50.0, *z, z[-1] + 50.0, np.inf]))
    np.testing.assert_array_equal(ends, np.sort(ends))
    assert ends[-1] == np.inf
    assert target_transform.extended(np.array([2.0]))[0] == target_transform.forward(np.array([2.0]))[0]


@pytest.mark.parametrize(
    "target_transform", [BoxCox(0.0, cut=2.0), BoxCox(1 / 3), YeoJohnson(0.5, 3.0), YeoJohnson(2.0)]
)
def test_slopes_are_derivatives_up_to_a_constant(target_transform):
    y = np.geomspace(0.1, 50.0, 40)
    if isinstance(target_transform, YeoJohnson):
        y = np.append(y, -y)
    slope = (target_transform.forward(y + 1e-5) - target_transform.forward(y - 1e-5)) / 2e-5
    off = target_transform.log_slope(y) - np.log(slope)
    np.testing.assert_allclose(off, off[0], atol=1e-5)


@pytest.mark.parametrize(("errors", "exponent"), [("in proportion", 0.0), ("even", 1.0)])
def test_all_seeds_choose_the_transformation_that_the_target_was_made_by(errors, exponent):
    rng = np.random.default_rng(5)
    X = rng.uniform(size=(300, 3))
    y = 2.0 * X[:, 0] + np.sin(5.0 * X[:, 1]) + 0.3 * rng.standard_normal(300) + 3.0
    if errors == "in proportion":
        y = np.exp(y)
    for seed in range(3):
        model = ConformalGPRegressor(tuning="holdout", n_restarts=0, random_state=seed).fit(X, y)
        assert getattr(model.target_transform_, "exponent", 1.0) == pytest.approx(exponent, abs=0.15)


def test_zeros_do_not_decide_the_transformation():
    rng = np.random.default_rng(6)
    X = rng.uniform(size=(300, 2))
    y = 5.0 + 3.0 * X[:, 0] + 0.3 * rng.standard_normal(300)
    y[rng.uniform(size=300) < 0.3] = 0.0  # with density they would be likeliest where a transformation is steep
    y[:3] = 1e-4
    model = ConformalGPRegressor(tuning="holdout", n_restarts=0, random_state=0).fit(X, y)
    assert getattr(model.target_transform_, "exponent", 1.0) > 0.5


def test_maps_that_take_any_label():
    y = np.linspace(-5, 5, 41)
    for target_transform in (BoxCox(0.0, cut=0.5), BoxCox(0.5, cut=0.5), YeoJohnson(0.0), YeoJohnson(1.7)):
        z = target_transform.forward(y)
        assert (np.diff(z) > 0).all()
        np.testing.assert_allclose(target_transform.backward(z), y, atol=1e-12)


@pytest.mark.parametrize("name", ["integrated", "holdout", "fixed", "low rank"])
@pytest.mark.parametrize(("target_transform", "label"), [("log", 0.0), ("sqrt", -0.5), ("box-cox", 0.0), (LOG, -1.0)])
def test_labels_outside_the_domain(name, target_transform, label):
    X, y = rows(n=30)
    y[7] = label
    if (name, target_transform) == ("fixed", "box-cox"):
        return
    with pytest.raises(ValueError, match=rf"y has {label:g} in row 7.*yeo-johnson"):
        made(name, target_transform=target_transform).fit(X, y)


def test_a_candidate_label_outside_the_domain_conforms_least():
    X, y = rows()
    model = made("holdout", target_transform="log").fit(X, y)
    n = model._answers.n_calibration
    np.testing.assert_allclose(model.predict_p(X[:2], [-1.0, 0.0]), 1 / (n + 1))
    np.testing.assert_allclose(model.predict_cdf(X[:2], [-1.0, 0.0]), 0.5 / (n + 1))


def test_regions_hold_labels_of_the_domain_only():
    X, y = rows()
    model = made("fixed", target_transform="sqrt").fit(X, y**4)
    with pytest.warns(UserWarning, match="rows"):
        low, high = model.predict_interval(X, 0.99).T
    assert (low == 0.0).all()
    assert (high == np.inf).all()
    assert (model.predict_interval(X, 0.9) >= 0.0).all()
    assert all(region.min() >= 0.0 for region in model.predict_set(X, 0.9))


def test_functions_of_the_user():
    X, y = rows()
    expected = made("holdout", target_transform="log").fit(X, y).predict_interval(X, 0.8)
    pairs = (LOG, [lambda y: -np.log(y), lambda z: np.exp(-z)])
    model, own = (made("holdout", target_transform=functions).fit(X, y) for functions in pairs)
    for found in (model, own):
        np.testing.assert_allclose(found.predict_interval(X, 0.8), expected, rtol=1e-2)
    wide = made("fixed", target_transform=(np.sqrt, np.square)).fit(X, y**4)
    assert -np.inf in wide.predict_interval(X, 0.9)[:, 0]  # where squares are not the inverse of roots
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded(saved(model)).predict(X), model.predict(X))  # NumPy's are trusted
    with pytest.raises(ValueError, match="model cannot be saved"):
        saved(own)


@pytest.mark.parametrize(
    ("target_transform", "message"),
    [
        ((np.sin, np.arcsin), "monotone|inverse"),
        ((np.log, np.log), "inverse"),
        ((np.log,), "pair of functions"),
        (("log", "exp"), "pair of functions"),
        ((lambda y: 1.0, np.exp), r"of shape \(\d+,\) one gave \(\)"),
        ((lambda y: y[:-1], np.exp), "pair of functions of arrays that give an array of the same shape"),
        ((np.arcsinh, lambda z: z[:, None]), "pair of functions of arrays that give an array of the same shape"),
    ],
)
def test_pairs_that_are_no_maps(target_transform, message):
    X, y = rows()
    with pytest.raises(ValueError, match=message):
        made("holdout", target_transform=target_transform).fit(X, y)


def test_nothing_is_learnt_where_all_is_fixed():
    with pytest.raises(ValueError, match=r"target_transform='box-cox' is learnt.*'log'"):
        made("fixed", target_transform="box-cox").fit(*rows())


def positive(seed, n=80):
    X = np.random.default_rng(seed).uniform(-2, 2, (n, 1))
    return X, np.random.default_rng(seed + 1).standard_normal(n)


def test_auto_takes_the_logarithm_where_noise_is_in_proportion():
    X, noise = positive(3)
    model = ConformalGPRegressor(tuning="holdout", target_transform="auto", random_state=0).fit(
        X, np.exp(1.5 * X[:, 0] + 0.3 * noise)
    )
    assert model.target_transform_.exponent == 0.0
    assert model.target_transform_.cut > 0.0


@pytest.mark.parametrize("shift", [0.0, 50.0])
def test_auto_leaves_labels_with_constant_noise_as_they_are(shift):
    X, noise = positive(3)
    y = shift + np.sin(X[:, 0]) + 0.3 * noise
    assert (
        ConformalGPRegressor(tuning="holdout", target_transform="auto", random_state=0).fit(X, y).target_transform_
        is None
    )


def test_auto_takes_any_label_after_its_choice():
    X, noise = positive(3)
    y = np.exp(1.5 * X[:, 0] + 0.3 * noise)
    y[60:70] = -y[60:70]  # not among the tuning rows
    model = ConformalGPRegressor(
        tuning="holdout", tuning_rows=np.arange(60), target_transform="auto", random_state=0
    ).fit(X, y)
    assert model.target_transform_.exponent == 0.0
    low, _ = model.predict_interval(X, 0.9).T
    assert (low < 0.0).any()
    np.testing.assert_array_equal(np.isfinite(model.predict_interval(X, 0.9)), True)


@pytest.mark.parametrize("y", [np.zeros(40), np.ones(40), np.arange(40) % 2.0, np.r_[np.zeros(39), 5.0]])
def test_auto_with_odd_labels(y):
    X = np.random.default_rng(0).uniform(size=(40, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = ConformalGPRegressor(tuning="holdout", target_transform="auto", random_state=0).fit(X, y)
    assert not np.isnan(model.predict_interval(X, 0.8)).any()


CONSTANTS = ["log", "sqrt", "box-cox", "yeo-johnson", "auto", (np.arcsinh, np.sinh), (np.log, np.exp)]


@pytest.mark.parametrize("value", [5.0, 0.1, 7.3e8])
@pytest.mark.parametrize("target_transform", CONSTANTS, ids=str)
@pytest.mark.parametrize("tuning", ["holdout", "integrated"])
def test_intervals_of_constant_labels_contain_them(tuning, target_transform, value):
    """Ends are rounded outwards after they are mapped back."""
    if tuning == "integrated" and target_transform == "yeo-johnson":
        pytest.skip("its exponent is learnt from tuning rows")
    X = np.random.default_rng(0).uniform(size=(30, 2))
    y = np.full(30, value)
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        model = ConformalGPRegressor(tuning=tuning, target_transform=target_transform, random_state=0).fit(X, y)
    low, high = model.predict_interval(X[:3], 0.8).T
    assert (low <= value).all()
    assert (value <= high).all()
    np.testing.assert_allclose([low, high], value, rtol=1e-12)
    assert (model.predict_bound(X[:3], 0.8) >= value).all()


def test_pieces_outside_the_range_of_a_transformation():
    """The square root of no target is negative; that of 0 is 0."""
    found = Target(BoxCox(0.5)).pieces(np.array([[-9.0, -1.0], [-0.5, 0.0], [2.0, 4.0]]))
    np.testing.assert_allclose(found, [[0.0, 0.0], [1.0, 4.0]], atol=1e-12)
