"""RR-CP against refits of the ridge regression, and its search against refits and finite differences."""

import numpy as np
import pytest
from numpy.linalg import LinAlgError
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from conformal_gp import ConformalGPRegressor
from conformal_gp.datasets import load_cpu, load_servo
from conformal_gp.gp.covariance import Pairs
from reproduction.comparators.automatic_model_selection import SmoothedLeaveOneOut, search
from reproduction.comparators.ridge import ConformalRidge

X3, Y3 = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 2.0, 0.0])


def make_rows(seed, n, d=2, noise=0.2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + X[:, -1] + noise * rng.normal(size=n)


def kernel_matrix(X, Z, length_scale):
    return np.exp(-cdist(X, Z, "sqeuclidean") / (2 * length_scale**2))


def bordered_inverse(A, bias):
    """Inverse of A with a border of ones, restricted to the rows of A."""
    if not bias:
        return np.linalg.inv(A)
    n = len(A)
    return np.linalg.inv(np.block([[A, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]]))[:n, :n]


def fitted_values(X, y, new, length_scale, ridge, bias):
    """Predictions of a ridge regression from its definition."""
    A = kernel_matrix(X, X, length_scale) + ridge * np.eye(len(y))
    if not bias:
        return kernel_matrix(new, X, length_scale) @ np.linalg.solve(A, y)
    n = len(y)
    bordered = np.block([[A, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solution = np.linalg.solve(bordered, np.append(y, 0.0))
    return kernel_matrix(new, X, length_scale) @ solution[:n] + solution[n]


def p_value(X, y, x, label, **parameters):
    """Share of rows of the extended set whose residual is at least the new row's, by a fit to all of them."""
    all_X, all_y = np.vstack([X, x]), np.append(y, label)
    scores = np.abs(all_y - fitted_values(all_X, all_y, all_X, **parameters))
    return np.mean(scores >= scores[-1] * (1 - 1e-12))


def criterion(X, y, **options):
    settings = {"bias": True, "eta": 0.1, "penalty": 0.01, "centre": np.array([0.5, 0.0])} | options
    return SmoothedLeaveOneOut(Pairs(X), y, settings.pop("centre"), **settings)


@parametrize_with_checks(
    [ConformalRidge(), ConformalRidge(bounded=True), ConformalRidge(1.0, 0.1, bias=False, scale_inputs=False)]
)
def test_estimator_checks(estimator, check):
    check(estimator)


def assert_regions_agree_with_refits(X, y, new, level, **parameters):
    """Labels are in the region exactly when their p-value exceeds delta: on a grid and on both sides of each end."""
    model = ConformalRidge(**parameters, scale_inputs=False).fit(X, y)
    regions = model.predict_set(new, level)
    for x, region, hull in zip(new, regions, model.predict_interval(new, level), strict=True):
        np.testing.assert_array_equal(hull, [region[0, 0], region[-1, 1]])
        ends = region[np.isfinite(region)]
        for label in np.concatenate([np.linspace(-8, 8, 33), ends - 1e-6, ends + 1e-6]):
            inside = bool(((region[:, 0] <= label) & (label <= region[:, 1])).any())
            assert inside == (p_value(X, y, x, label, **parameters) > 1 - level + 1e-9)
    return regions


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("length_scale", "ridge"), [(0.7, 0.1), (2.0, 0.001), (0.2, 1.0)])
@pytest.mark.parametrize("level", [0.5, 0.75, 0.9])
def test_regions_hold_the_labels_whose_p_value_by_refitting_exceeds_delta(level, length_scale, ridge, bias):
    X, y = make_rows(1, 19)
    new = np.vstack([make_rows(2, 4)[0], X[:1], [[6.0, -6.0]]])
    assert_regions_agree_with_refits(X, y, new, level, length_scale=length_scale, ridge=ridge, bias=bias)


def test_regions_with_holes_and_rays():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 2)), rng.normal(size=12)
    new = X[:1] + 0.3 * rng.normal(size=(20, 2))
    regions = assert_regions_agree_with_refits(X, y, new, 0.9, length_scale=0.5, ridge=0.01, bias=True)
    assert any(len(region) > 1 for region in regions)
    assert any(np.isinf(region).any() for region in regions)


@pytest.mark.parametrize("bias", [True, False])
def test_scores_are_those_of_the_gaussian_process_with_gamma_1(bias):
    X, y = make_rows(4, 40)
    new = make_rows(5, 9)[0]
    ridge = ConformalRidge(1.0, 0.3, bias=bias, scale_inputs=False).fit(X, y)
    process = ConformalGPRegressor(
        "se",
        tuning="fixed",
        mean="constant" if bias else "zero",
        noise_variance=0.3,
        gamma=1.0,
        scale_inputs=False,
    ).fit(X, y)
    np.testing.assert_allclose(ridge.predict_interval(new, 0.9), process.predict_interval(new, 0.9), rtol=1e-9)
    np.testing.assert_allclose(ridge.predict(new), fitted_values(X, y, new, 1.0, 0.3, bias), rtol=1e-9)


def test_signed_lines_give_the_intervals_of_online_cp():
    regressors = pytest.importorskip("online_cp.regressors", reason="online-cp is a test extra")
    kernels = pytest.importorskip("online_cp.kernels", reason="online-cp is a test extra")
    X, y = make_rows(6, 39)
    new = make_rows(7, 5)[0]
    oracle = regressors.KernelConformalRidgeRegressor(kernels.GaussianKernel(0.8), a=0.2)
    oracle.learn_initial_training_set(X, y)
    lines = ConformalRidge(0.8, 0.2, bias=False, scale_inputs=False).fit(X, y)._lines(new)
    assert np.all(lines.slope < 1.0)
    cuts = np.sort(lines.centre[:, None] + lines.offset / (1.0 - lines.slope), axis=1)
    for x, cut in zip(new, cuts, strict=True):
        expected = oracle.predict(x, epsilon=0.1)
        np.testing.assert_allclose(cut[[1, 37]], [expected.lower, expected.upper], rtol=1e-8)


def test_rows_may_come_in_any_order():
    X, y = make_rows(8, 30)
    new = make_rows(9, 6)[0]
    shuffled = np.random.default_rng(0).permutation(30)
    expected = ConformalRidge().fit(X, y).predict_interval(new, [0.8, 0.9])
    found = ConformalRidge().fit(X[shuffled], y[shuffled]).predict_interval(new, [0.8, 0.9])
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_duplicate_rows():
    X, y = make_rows(10, 15)
    X, y = np.vstack([X, X]), np.concatenate([y, y + 0.1])
    assert_regions_agree_with_refits(X, y, X[:3], 0.9, length_scale=1.0, ridge=0.1, bias=True)


def test_answers_do_not_depend_on_blocks_of_test_rows():
    X, y = make_rows(11, 30)
    model = ConformalRidge(1.0, 0.1).fit(X, y)
    new = np.random.default_rng(1).normal(size=(9000, 2))
    intervals = model.predict_interval(new, 0.9)
    np.testing.assert_allclose(model.predict_interval(new[-3:], 0.9), intervals[-3:], rtol=1e-12)
    np.testing.assert_allclose(
        [[region[0, 0], region[-1, 1]] for region in model.predict_set(new, 0.9)], intervals, rtol=1e-12
    )


def test_too_few_rows_for_a_level_give_the_whole_line():
    X, y = make_rows(12, 8)
    model = ConformalRidge(1.0, 0.1).fit(X, y)
    np.testing.assert_array_equal(model.predict_interval(X[:1], 0.9), [[-np.inf, np.inf]])
    np.testing.assert_array_equal(model.predict_set(X[:1], 0.9)[0], [[-np.inf, np.inf]])


@pytest.mark.parametrize(
    ("bias", "expected"),
    [(False, [0.18600267, 1.59629228, -0.17379782]), (True, [-0.43631352, 1.34176297, -1.56951905])],
)
def test_without_smoothing_the_criterion_is_leave_one_out(bias, expected):
    refits = [
        Y3[i] - fitted_values(np.delete(X3, i, 0), np.delete(Y3, i), X3[[i]], 1.0, 0.5, bias)[0] for i in range(3)
    ]
    np.testing.assert_allclose(refits, expected, atol=1e-8)
    value, _ = criterion(X3, Y3, bias=bias, eta=0.0, penalty=0.0)(np.array([0.0, np.log(2.0)]))
    assert value == pytest.approx(np.mean(np.square(refits)), rel=1e-12)
    assert value == pytest.approx(1.48469581 if bias else 0.87098391, abs=1e-8)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("theta", [[0.0, 0.0], [0.7, 2.0], [-0.5, 4.0]])
def test_the_criterion_follows_its_definition(theta, bias):
    X, y = make_rows(13, 25)
    A = kernel_matrix(X, X, np.exp(theta[0])) + np.exp(-theta[1]) * np.eye(25)
    alpha = bordered_inverse(A, bias) @ y
    D = 0.1 / np.abs(alpha)
    change = alpha * (1.0 / np.diag(bordered_inverse(A + np.diag(D), bias)) - D)
    penalty = 0.01 * np.mean((np.array(theta) - [0.5, 0.0]) ** 2)
    value, _ = criterion(X, y, bias=bias)(np.array(theta))
    assert value == pytest.approx(np.mean(change**2) + penalty, rel=1e-9)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("eta", [0.0, 0.1, 2.0])
@pytest.mark.parametrize("theta", [[0.0, 0.0], [0.7, 2.0], [-0.5, 4.0], [2.5, 7.0]])
def test_gradient_against_central_differences(theta, eta, bias):
    X, y = make_rows(14, 25)
    objective = criterion(X, y, bias=bias, eta=eta)
    _, gradient = objective(np.array(theta))
    for i, step in enumerate(1e-5 * np.eye(2)):
        difference = (objective(theta + step)[0] - objective(theta - step)[0]) / 2e-5
        assert gradient[i] == pytest.approx(difference, rel=2e-6, abs=1e-9)


def test_far_from_the_centre_only_the_penalty_counts():
    X, y = make_rows(15, 10)
    value, gradient = criterion(X, y, centre=np.zeros(2))(np.array([40.0, -30.0]))
    assert value == pytest.approx(0.01 * (40.0**2 + 30.0**2) / 2)
    np.testing.assert_allclose(gradient, [0.4, -0.3])


@pytest.mark.parametrize("bounded", [True, False])
def test_the_search_ends_at_a_minimum(bounded):
    X, y = make_rows(16, 60)
    length_scale, ridge = search(Pairs(X), y, length_scale=None, ridge=None, bias=True, bounded=bounded)
    centre = np.array([0.5 * np.log(0.3 * X.var(axis=0).sum()), 0.0])
    objective = criterion(X, y, centre=centre)
    found = np.array([np.log(length_scale), -np.log(ridge)])
    value, gradient = objective(found)
    assert np.abs(gradient).max() < 1e-4
    assert value < objective(centre)[0]
    for step in ([0.1, 0.0], [-0.1, 0.0], [0.0, 0.1], [0.0, -0.1]):
        assert value < objective(found + step)[0]


def test_bounds_keep_the_search_from_running_off():
    X, y = load_cpu(return_X_y=True)
    train, _ = next(KFold(10, shuffle=True, random_state=0).split(X))
    published = ConformalRidge().fit(X[train], y[train])
    bounded = ConformalRidge(bounded=True).fit(X[train], y[train])
    assert published.ridge_ < 1e-5
    assert 1.0 < bounded.length_scale_ < 50.0
    assert 1e-4 < bounded.ridge_ < 1.0


@pytest.mark.parametrize("given", [{"length_scale": 0.9}, {"ridge": 1e-6}, {"length_scale": 2.0, "ridge": 0.4}])
def test_given_values_stay_and_the_others_are_searched_for(given):
    X, y = make_rows(17, 30)
    model = ConformalRidge(**given).fit(X, y)
    free = ConformalRidge().fit(X, y)
    for name in ("length_scale", "ridge"):
        if name in given:
            assert getattr(model, f"{name}_") == given[name]
        else:
            assert getattr(model, f"{name}_") != getattr(free, f"{name}_")
            assert np.isfinite(getattr(model, f"{name}_"))


def test_labels_without_variation_leave_the_search_where_it_starts():
    X, _ = make_rows(18, 20)
    model = ConformalRidge().fit(X, np.full(20, 3.0))
    assert model.length_scale_ == pytest.approx(np.sqrt(0.3 * 2))
    assert model.ridge_ == pytest.approx(1.0)
    np.testing.assert_allclose(model.predict(X), 3.0)


def test_inputs_without_variation():
    y = np.arange(20.0)
    model = ConformalRidge().fit(np.ones((20, 2)), y)
    np.testing.assert_allclose(model.predict([[1.0, 1.0]]), y.mean())
    assert np.isfinite(model.predict_interval([[1.0, 1.0]], 0.9)).all()


def test_scaling_is_by_the_training_rows():
    X, y = make_rows(19, 30)
    new = make_rows(20, 5)[0]
    scaled, scaled_new = ((Z - X.mean(axis=0)) / X.std(axis=0) for Z in (X, new))
    expected = ConformalRidge(scale_inputs=False).fit(scaled, y).predict_interval(scaled_new, 0.9)
    stretch = np.array([1000.0, 0.01])
    found = ConformalRidge().fit(X * stretch, y).predict_interval(new * stretch, 0.9)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_servo_has_the_widths_of_the_paper():
    X, y = load_servo(return_X_y=True)
    widths = []
    for train, test in KFold(10, shuffle=True, random_state=0).split(X):
        intervals = clone(ConformalRidge()).fit(X[train], y[train]).predict_interval(X[test], [0.9, 0.95, 0.99])
        widths.append(intervals[:, 1] - intervals[:, 0])
    np.testing.assert_allclose(np.concatenate(widths).mean(axis=0), [1.869, 2.945, 7.224], rtol=0.1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"length_scale": 0.0}, "length_scale"),
        ({"ridge": -1.0}, "ridge"),
        ({"bias": "yes"}, "bias"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        ConformalRidge(**parameters).fit(X3, Y3)


def test_bad_rows_and_levels():
    with pytest.raises(ValueError, match="n_samples=1"):
        ConformalRidge().fit(X3[:1], Y3[:1])
    model = ConformalRidge().fit(X3, Y3)
    with pytest.raises(ValueError, match="confidence_level must be one number"):
        model.predict_set(X3, [0.8, 0.9])
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        model.predict_interval(X3, 95)
    with pytest.raises(ValueError, match="X contains NaN in row 0, column 0"):
        model.predict_interval([[np.nan]])


def test_a_ridge_lost_in_rounding():
    with pytest.raises(LinAlgError, match=r"ridge=1e-20 is lost in rounding .* larger ridge"):
        ConformalRidge(100.0, 1e-20).fit(*make_rows(21, 30))
