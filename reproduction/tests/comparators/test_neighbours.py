"""kNNR-CP against scores counted on the extended set."""

import numpy as np
import pytest
from sklearn.model_selection import KFold, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from conformal_gp.datasets import load_cpu
from reproduction.comparators.neighbours import ConformalNeighbours, best_n_neighbors

MEASURES = ["normalised", "plain", "exponential"]
X6, Y6 = np.array([[0.0], [1.0], [2.2], [3.7], [5.5], [8.0]]), np.array([0.0, 1.0, 1.5, 3.0, 2.0, 4.0])


def unscaled(n_neighbors, **parameters):
    return ConformalNeighbours(n_neighbors, **{"scale_inputs": False, "random_state": 0} | parameters)


def make_rows(seed, n, d=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + 0.3 * rng.normal(size=n)


def make_ties(seed, n):
    """Inputs on a small grid, with many equal distances and many duplicates."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(n, 2)).astype(float)
    return X, X[:, 0] + rng.normal(size=n)


def scores(X, y, keys, k, measure="normalised", gamma=0.5):
    """Nonconformity scores of all rows, each from its nearest others; keys say who is first at equal distances."""
    n = len(y)
    predicted, sums = np.empty(n), np.empty(n)
    for i in range(n):
        others = [(np.sqrt(((X[i] - X[j]) ** 2).sum()), keys[j], y[j]) for j in range(n) if j != i]
        distance, _, labels = np.array(sorted(others)[:k]).T
        predicted[i], sums[i] = labels.mean(), distance.sum()
    median = np.median(sums)
    ratio = sums / median if median > 0 else np.zeros(n)
    scale = {"plain": np.ones(n), "normalised": gamma + ratio, "exponential": np.exp(gamma * ratio)}[measure]
    return np.abs(y - predicted) / scale


def keys_of(n_rows, seed):
    """Place of each training row, and last of the test row, in the order that the model draws."""
    return np.argsort(np.random.RandomState(seed).permutation(n_rows + 1))


def p_value(X, y, x, label, **parameters):
    found = scores(np.vstack([X, x]), np.append(y, label), keys_of(len(y), 0), **parameters)
    return np.mean(found >= found[-1] * (1 - 1e-12))


def assert_regions_agree_with_counting(X, y, new, level, k, **parameters):
    """Labels are in the region exactly when their p-value exceeds delta: on a grid and on both sides of each end."""
    model = unscaled(k, **parameters).fit(X, y)
    regions = model.predict_set(new, level)
    for x, region, hull in zip(new, regions, model.predict_interval(new, level), strict=True):
        np.testing.assert_array_equal(hull, [region[0, 0], region[-1, 1]])
        ends = region[np.isfinite(region)]
        for label in np.concatenate([np.linspace(-6.03, 7.01, 21), ends - 1e-6, ends + 1e-6]):
            inside = bool(((region[:, 0] <= label) & (label <= region[:, 1])).any())
            assert inside == (p_value(X, y, x, label, k=k, **parameters) > 1 - level + 1e-9)


@parametrize_with_checks(
    [ConformalNeighbours(), ConformalNeighbours(1, measure="exponential", scale_inputs=False, random_state=0)]
)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("plain", [[-0.25, 3.5], [-0.25, 2.75], [0.0, 2.75]]),
        (
            "normalised",
            [[0.5769230769, 2.3415841584], [0.5878378378, 1.9230769231], [0.6475409836, 1.9121621622]],
        ),
    ],
)
def test_worked_example(measure, expected):
    found = unscaled(2, measure=measure).fit(X6, Y6).predict_interval([[1.5]], [0.85, 0.7, 0.55])
    np.testing.assert_allclose(found[0].T, expected, atol=1e-10)


def test_lines_of_the_worked_example():
    model = unscaled(2, measure="plain").fit(X6, Y6)
    lines = model._lines(np.array([[1.5]]))
    order = np.argsort(model._X[:, 0])
    a, b = np.array([-0.5, 1, 1, 1.25, -1.5, 1.5]), np.array([-0.5, -0.5, -0.5, 0, 0, 0])
    np.testing.assert_allclose(lines.centre, [1.25])
    np.testing.assert_allclose(lines.slope[0, order], b)
    np.testing.assert_allclose(lines.offset[0, order], a + 1.25 * b)
    lam = np.array([1, 0.6, 0.76, 1.32, 1.72, 2.72, 0.48])
    normalised = unscaled(2).fit(X6, Y6)._lines(np.array([[1.5]]))
    np.testing.assert_allclose(normalised.slope[0, order], b * (0.5 + lam[-1]) / (0.5 + lam[:-1]))


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("k", [1, 2, 5, 18])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_regions_hold_the_labels_whose_p_value_by_counting_exceeds_delta(level, k, measure):
    X, y = make_rows(1, 19)
    new = np.vstack([make_rows(2, 3)[0], X[:1], [[5.0, -5.0]]])
    assert_regions_agree_with_counting(X, y, new, level, k, measure=measure)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("k", [1, 2, 4])
def test_equal_distances_and_duplicates(k, measure):
    X, y = make_ties(3, 19)
    assert_regions_agree_with_counting(X, y, X[:4], 0.75, k, measure=measure, gamma=1.5)


@pytest.mark.parametrize("measure", MEASURES)
def test_a_median_distance_of_zero(measure):
    X = np.repeat([[0.0], [1.0]], [16, 3], axis=0)
    y = np.random.default_rng(4).normal(size=19)
    assert_regions_agree_with_counting(X, y, np.array([[0.0], [1.0], [4.0]]), 0.75, 1, measure=measure)


def test_equal_distances_are_broken_by_a_new_order_for_every_seed():
    X, y = make_ties(5, 19)
    found = {tuple(unscaled(2, random_state=seed).fit(X, y).predict_interval(X[:1], 0.75)[0]) for seed in range(20)}
    assert len(found) > 1
    again = unscaled(2, random_state=7).fit(X, y)
    np.testing.assert_array_equal(
        again.predict_interval(X[:3], 0.75), unscaled(2, random_state=7).fit(X, y).predict_interval(X[:3], 0.75)
    )


def test_the_test_row_takes_every_place_in_the_order():
    places = [unscaled(1, random_state=seed).fit(X6, Y6)._rows_before_test for seed in range(700)]
    # Each of 7 places has probability 1/7: 100 of 700, with a standard error of 9.3.
    assert np.abs(np.bincount(places, minlength=7) - 100).max() < 40


def test_coverage_with_many_ties():
    # 19 rows and level 0.75: the least coverage of a symmetric rule is 0.75; the standard error of 1500 is 0.011.
    covered = []
    for seed in range(1500):
        X, y = make_ties(seed, 20)
        low, high = unscaled(1, random_state=seed).fit(X[:-1], y[:-1]).predict_interval(X[-1:], 0.75)[0]
        covered.append(low <= y[-1] <= high)
    assert np.mean(covered) > 0.75 - 3 * 0.011


@pytest.mark.parametrize("measure", MEASURES)
def test_rows_may_come_in_any_order(measure):
    X, y = make_rows(6, 40)
    new = make_rows(7, 8)[0]
    shuffled = np.random.default_rng(0).permutation(40)
    expected = unscaled(3, measure=measure).fit(X, y).predict_interval(new, [0.8, 0.95])
    found = unscaled(3, measure=measure).fit(X[shuffled], y[shuffled]).predict_interval(new, [0.8, 0.95])
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_answers_do_not_depend_on_which_rows_are_asked_together():
    X, y = make_ties(8, 30)
    model = unscaled(2).fit(X, y)
    new = np.random.default_rng(1).integers(0, 3, size=(9000, 2)).astype(float)
    intervals = model.predict_interval(new, 0.9)
    np.testing.assert_array_equal(model.predict_interval(new[-3:], 0.9), intervals[-3:])
    np.testing.assert_array_equal(model.predict(new[-3:]), model.predict(new)[-3:])
    np.testing.assert_array_equal([[region[0, 0], region[-1, 1]] for region in model.predict_set(new, 0.9)], intervals)


def test_training_rows_may_need_several_blocks(monkeypatch):
    X, y = make_ties(9, 30)
    expected = unscaled(3).fit(X, y).predict_interval(X, 0.9)
    monkeypatch.setattr("reproduction.comparators.neighbours.BLOCK_ENTRIES", 100)
    model = unscaled(3).fit(X, y)
    np.testing.assert_array_equal(model.predict_interval(X, 0.9), expected)


def test_predictions_are_those_of_scikit_learn():
    X, y = make_rows(10, 50)
    new = make_rows(11, 9)[0]
    expected = KNeighborsRegressor(4).fit(X, y).predict(new)
    np.testing.assert_allclose(unscaled(4).fit(X, y).predict(new), expected)


def test_signed_lines_give_the_intervals_of_online_cp():
    regressors = pytest.importorskip("online_cp.regressors", reason="online-cp is a test extra")
    X, y = make_rows(12, 39)
    new = make_rows(13, 5)[0]
    oracle = regressors.ConformalNearestNeighboursRegressor(k=3)
    oracle.learn_initial_training_set(X, y)
    lines = unscaled(3, measure="plain").fit(X, y)._lines(new)
    cuts = np.sort(lines.centre[:, None] + lines.offset / (1.0 - lines.slope), axis=1)
    for x, cut in zip(new, cuts, strict=True):
        expected = oracle.predict(x, epsilon=0.1)
        np.testing.assert_allclose(cut[[1, 37]], [expected.lower, expected.upper], rtol=1e-10)


def test_cross_validation_against_scikit_learn():
    X, y = make_rows(14, 73)
    folds = KFold(10, shuffle=True, random_state=3)
    sizes = [test.size for _, test in folds.split(X)]
    errors = [
        -np.average(
            cross_val_score(KNeighborsRegressor(k), X, y, cv=folds, scoring="neg_mean_squared_error"), weights=sizes
        )
        for k in range(1, 16)
    ]
    assert best_n_neighbors(X, y, random_state=3) == np.argmin(errors) + 1


def test_k_is_chosen_over_the_training_rows():
    X, y = make_rows(15, 60)
    assert 1 <= best_n_neighbors(X, y, largest=4, random_state=0) <= 4
    # A linear label without noise is best by the two neighbours on either side of a row.
    grid = np.linspace(0, 1, 40)[:, None]
    assert ConformalNeighbours(random_state=0).fit(grid, grid[:, 0]).n_neighbors_ == 2
    assert ConformalNeighbours(random_state=0).fit(X[:2], y[:2]).n_neighbors_ == 1


def test_isolated_test_rows_do_not_overflow_the_exponential():
    X, y = make_rows(16, 39)
    intervals = unscaled(2, measure="exponential", gamma=5.0).fit(X, y).predict_interval([[1e6, 0.0]], [0.5, 0.9])
    assert not np.isnan(intervals).any()
    assert (intervals[:, 1] - intervals[:, 0] > 1e100).all()


def test_one_neighbour_may_give_infinite_intervals():
    # The one row at 10 has the test row as its only near neighbour, and so moves with the label as the test row does.
    X = np.append(np.linspace(0, 1, 9), 10.0)[:, None]
    y = np.arange(10.0)
    found = unscaled(1, measure="plain").fit(X, y).predict_interval([[11.0]], 0.9)
    np.testing.assert_array_equal(found, [[-np.inf, np.inf]])


def test_scaling_is_by_the_training_rows():
    X, y = make_rows(17, 30)
    new = make_rows(18, 5)[0]
    scaled, scaled_new = ((Z - X.mean(axis=0)) / X.std(axis=0) for Z in (X, new))
    expected = unscaled(3).fit(scaled, y).predict_interval(scaled_new, 0.9)
    stretch = np.array([1000.0, 0.01])
    found = ConformalNeighbours(3).fit(X * stretch, y).predict_interval(new * stretch, 0.9)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_cpu_has_the_widths_of_the_paper():
    X, y = load_cpu(return_X_y=True)
    widths = []
    for seed, (train, test) in enumerate(KFold(10, shuffle=True, random_state=0).split(X)):
        model = ConformalNeighbours(2, random_state=seed).fit(X[train], y[train])
        intervals = model.predict_interval(X[test], [0.9, 0.95, 0.99])
        widths.append(intervals[:, 1] - intervals[:, 0])
    np.testing.assert_allclose(np.concatenate(widths).mean(axis=0), [141.57, 206.03, 545.31], rtol=0.1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"n_neighbors": 2.5}, "n_neighbors"),
        ({"n_neighbors": 6}, "n_neighbors=6 needs at least 7 rows in X, got n_samples=6"),
        ({"measure": "median"}, "measure"),
        ({"gamma": 0.0}, "gamma"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        ConformalNeighbours(**parameters).fit(X6, Y6)


def test_bad_rows():
    with pytest.raises(ValueError, match="n_samples=1"):
        ConformalNeighbours().fit(X6[:1], Y6[:1])
    model = unscaled(2).fit(X6, Y6)
    with pytest.raises(ValueError, match="whose square overflows"):
        model.predict_interval([[1e200]])
    far = unscaled(2).fit(np.vstack([X6, [[-1.2e154]]]), np.append(Y6, 0.0))
    with pytest.raises(ValueError, match="too far for squared distances"):
        far.predict_interval([[1.2e154]])
    with pytest.raises(ValueError, match="infinity"):
        model.predict_interval([[np.inf]])
    with pytest.raises(ValueError, match="confidence_level must be one number"):
        model.predict_set(X6, [0.8, 0.9])
