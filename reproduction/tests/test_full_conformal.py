"""RR-CP and kNNR-CP against scores counted on the extended set, and the search of RR-CP against its definition."""

import numpy as np
import pytest
from rows import make_data, make_ties, standardised
from scipy.spatial.distance import cdist
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsRegressor

from conformal_gp.datasets import load_cpu, load_servo
from reproduction.comparators import ConformalNeighbours, ConformalRidge
from reproduction.comparators.ridge import SmoothedLeaveOneOut, search

X3, Y3 = np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 2.0, 0.0])


def kernel_matrix(X, Z, length_scale):
    return np.exp(-cdist(X, Z, "sqeuclidean") / (2 * length_scale**2))


def ridge_fit(X, y, new, length_scale, ridge):
    """Predictions of a ridge regression with a bias, from its definition."""
    n = len(y)
    A = kernel_matrix(X, X, length_scale) + ridge * np.eye(n)
    bordered = np.block([[A, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solution = np.linalg.solve(bordered, np.append(y, 0.0))
    return kernel_matrix(new, X, length_scale) @ solution[:n] + solution[n]


def neighbour_scores(X, y, keys, k, gamma):
    """Scores of all rows, each from its nearest others; keys say who is first at equal distances."""
    n = len(y)
    predicted, sums = np.empty(n), np.empty(n)
    for i in range(n):
        others = [(np.sqrt(((X[i] - X[j]) ** 2).sum()), keys[j], y[j]) for j in range(n) if j != i]
        distance, _, labels = np.array(sorted(others)[:k]).T
        predicted[i], sums[i] = labels.mean(), distance.sum()
    median = np.median(sums)
    return np.abs(y - predicted) / (gamma + (sums / median if median > 0 else np.zeros(n)))


def assert_hulls_agree_with_counting(intervals, level, p_value):
    """The interval is the hull of the labels whose p-value exceeds delta: on a grid and on both sides of its ends."""
    for row, (low, high) in enumerate(intervals):
        for label in np.linspace(-8.03, 8.01, 33):
            assert low <= label <= high or p_value(row, label) <= 1 - level + 1e-9
        for end, outwards in ((low, -1e-6), (high, 1e-6)):
            if np.isfinite(end):
                assert p_value(row, end - outwards) > 1 - level + 1e-9
                assert p_value(row, end + outwards) <= 1 - level + 1e-9


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("level", [0.5, 0.75, 0.9])
def test_ridge_intervals_hold_the_labels_whose_p_value_by_refitting_exceeds_delta(level, seed):
    X, y = make_data(seed, 19)
    new = np.vstack([make_data(seed + 9, 3)[0], X[:1], [[6.0, -6.0]]])
    model = ConformalRidge().fit(X, y)
    scaled, scaled_new = standardised(X, new)

    def p_value(row, label):
        rows, labels = np.vstack([scaled, scaled_new[row]]), np.append(y, label)
        scores = np.abs(labels - ridge_fit(rows, labels, rows, model.length_scale_, model.ridge_))
        return np.mean(scores >= scores[-1] * (1 - 1e-12))

    assert_hulls_agree_with_counting(model.predict_interval(new, level), level, p_value)
    expected = ridge_fit(scaled, y, scaled_new, model.length_scale_, model.ridge_)
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("make", [make_data, make_ties])
@pytest.mark.parametrize("k", [1, 2, 5, 18])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_neighbour_intervals_hold_the_labels_whose_p_value_by_counting_exceeds_delta(level, k, make):
    X, y = make(1, 19)
    new = np.vstack([make(2, 2)[0], X[:1], [[5.0, -5.0]]])
    model = ConformalNeighbours(k, gamma=0.7, random_state=0).fit(X, y)
    keys = np.argsort(np.random.RandomState(0).permutation(20))  # places in the order that the model draws
    scaled, scaled_new = standardised(X, new)

    def p_value(row, label):
        scores = neighbour_scores(np.vstack([scaled, scaled_new[row]]), np.append(y, label), keys, k, 0.7)
        return np.mean(scores >= scores[-1] * (1 - 1e-12))

    assert_hulls_agree_with_counting(model.predict_interval(new, level), level, p_value)
    if make is make_data:
        expected = KNeighborsRegressor(k).fit(scaled, y).predict(scaled_new)
        np.testing.assert_allclose(model.predict(new), expected)


def test_a_median_distance_of_zero():
    X = np.repeat([[0.0], [1.0]], [16, 3], axis=0)
    y = np.random.default_rng(4).normal(size=19)
    found = ConformalNeighbours(1, random_state=0).fit(X, y).predict_interval([[0.0], [4.0]], 0.75)
    assert np.isfinite(found).all()


def test_ties_are_broken_at_random_and_the_test_row_takes_every_place():
    X, y = make_ties(5, 6)
    models = [ConformalNeighbours(1, random_state=seed).fit(X, y) for seed in range(700)]
    # Each of 7 places has probability 1/7: 100 of 700, with a standard error of 9.3.
    assert np.abs(np.bincount([model._rows_before_test for model in models], minlength=7) - 100).max() < 40
    assert len({tuple(model.predict_interval(X[:1], 0.5)[0]) for model in models[:20]}) > 1


def test_the_number_of_neighbours_is_checked():
    for k in (0, 3):
        with pytest.raises(ValueError, match=f"n_neighbors must be from 1 to 2, less than the rows; got {k}"):
            ConformalNeighbours(k).fit(X3, Y3)


def test_without_smoothing_the_criterion_is_leave_one_out():
    refits = [Y3[i] - ridge_fit(np.delete(X3, i, 0), np.delete(Y3, i), X3[[i]], 1.0, 0.5)[0] for i in range(3)]
    np.testing.assert_allclose(refits, [-0.43631352, 1.34176297, -1.56951905], atol=1e-8)
    value, _ = SmoothedLeaveOneOut(X3, Y3, np.zeros(2), eta=0.0, penalty=0.0)(np.array([0.0, np.log(2.0)]))
    assert value == pytest.approx(np.mean(np.square(refits)), rel=1e-12)


@pytest.mark.parametrize("theta", [[0.0, 0.0], [0.7, 2.0], [-0.5, 4.0], [2.5, 7.0]])
def test_the_criterion_follows_its_definition_and_its_gradient_the_criterion(theta):
    X, y = make_data(13, 25)
    centre, theta = np.array([0.5, 0.0]), np.array(theta)

    def bordered_inverse(A):
        border = np.block([[A, np.ones((25, 1))], [np.ones((1, 25)), np.zeros((1, 1))]])
        return np.linalg.inv(border)[:25, :25]

    A = kernel_matrix(X, X, np.exp(theta[0])) + np.exp(-theta[1]) * np.eye(25)
    alpha = bordered_inverse(A) @ y
    D = 0.1 / np.abs(alpha)
    change = alpha * (1.0 / np.diag(bordered_inverse(A + np.diag(D))) - D)
    objective = SmoothedLeaveOneOut(X, y, centre)
    value, gradient = objective(theta)
    assert value == pytest.approx(np.mean(change**2) + 0.01 * np.mean((theta - centre) ** 2), rel=1e-9)
    for i, step in enumerate(1e-5 * np.eye(2)):
        difference = (objective(theta + step)[0] - objective(theta - step)[0]) / 2e-5
        assert gradient[i] == pytest.approx(difference, rel=2e-6, abs=1e-9)


def test_far_from_the_centre_only_the_penalty_counts():
    value, gradient = SmoothedLeaveOneOut(*make_data(15, 10), np.zeros(2))(np.array([40.0, -30.0]))
    assert value == pytest.approx(0.01 * (40.0**2 + 30.0**2) / 2)
    np.testing.assert_allclose(gradient, [0.4, -0.3])


@pytest.mark.parametrize("bounded", [True, False])
def test_the_search_ends_at_a_minimum(bounded):
    X, y = make_data(16, 60)
    length_scale, ridge = search(X, y, bounded=bounded)
    centre = np.array([0.5 * np.log(0.3 * X.var(axis=0).sum()), 0.0])
    objective, found = SmoothedLeaveOneOut(X, y, centre), np.array([np.log(length_scale), -np.log(ridge)])
    value, gradient = objective(found)
    assert np.abs(gradient).max() < 1e-4
    for step in (centre - found, [0.1, 0.0], [-0.1, 0.0], [0.0, 0.1], [0.0, -0.1]):
        assert value < objective(found + step)[0]


def test_bounds_keep_the_search_from_running_off():
    X, y = load_cpu(return_X_y=True)
    train, _ = next(KFold(10, shuffle=True, random_state=0).split(X))
    assert ConformalRidge().fit(X[train], y[train]).ridge_ < 1e-5
    bounded = ConformalRidge(bounded=True).fit(X[train], y[train])
    assert 1.0 < bounded.length_scale_ < 50.0
    assert 1e-4 < bounded.ridge_ < 1.0


@pytest.mark.filterwarnings("ignore:y is reproduced exactly:UserWarning")
def test_inputs_or_labels_without_variation():
    y = np.arange(20.0)
    model = ConformalRidge().fit(np.ones((20, 2)), y)
    np.testing.assert_allclose(model.predict([[1.0, 1.0]]), y.mean())
    X, _ = make_data(18, 20)
    model = ConformalRidge().fit(X, np.full(20, 3.0))
    assert (model.length_scale_, model.ridge_) == pytest.approx((np.sqrt(0.3 * 2), 1.0))
    np.testing.assert_allclose(model.predict(X), 3.0)


@pytest.mark.parametrize(
    ("load", "model", "paper"),
    [
        (load_servo, ConformalRidge(), [1.869, 2.945, 7.224]),
        (load_cpu, ConformalNeighbours(2, random_state=0), [141.57, 206.03, 545.31]),
    ],
)
def test_widths_are_near_the_papers(load, model, paper):
    X, y = load(return_X_y=True)
    widths = []
    for train, test in KFold(10, shuffle=True, random_state=0).split(X):
        intervals = model.fit(X[train], y[train]).predict_interval(X[test], [0.9, 0.95, 0.99])
        widths.append(intervals[:, 1] - intervals[:, 0])
    np.testing.assert_allclose(np.concatenate(widths).mean(axis=0), paper, rtol=0.1)
