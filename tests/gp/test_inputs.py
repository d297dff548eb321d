"""Bases of mean functions whose columns depend on each other, and scalings; above all, that one is symmetric."""

import numpy as np
import pytest

from conformal_gp.gp.inputs import STEP, IndependentColumns, Scaling, SymmetricScaling, basis

X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0], [0.0, 1.0]])


@pytest.mark.parametrize(
    ("columns", "rank"),
    [
        (X[:, :1], 2),
        (X, 3),
        (np.column_stack([X[:, 0], 2 * X[:, 0]]), 2),  # collinear
        (np.full((4, 2), 3.0), 1),  # constant
        (np.column_stack([np.eye(4)[:, :2].sum(axis=1), 1 - np.eye(4)[:, :2].sum(axis=1)]), 2),  # indicators
        (np.random.default_rng(0).normal(size=(4, 9)), 4),  # more columns than rows
        (1e8 * X, 3),
    ],
)
def test_kept_directions_are_orthonormal_and_span_the_columns(columns, rank):
    H = basis("linear", columns)
    independent = IndependentColumns(H)
    reduced = independent.reduce(H)
    assert independent.rank == rank
    np.testing.assert_allclose(reduced.T @ reduced, np.eye(rank), atol=1e-12)
    np.testing.assert_allclose(reduced @ (reduced.T @ H), H, atol=1e-9 * np.abs(H).max())


def test_coefficients_in_kept_directions_give_back_the_values():
    H = basis("linear", X[:, [0, 0, 1]])
    independent = IndependentColumns(H)
    values = H @ [1.0, 2.0, -1.0, 0.5]
    coefficients = independent.coefficients(independent.reduce(H).T @ values)
    np.testing.assert_allclose(H @ coefficients, values)
    assert coefficients[1] == pytest.approx(coefficients[2])  # of least norm: shared alike


def test_rows_that_leave_the_span_are_told_apart():
    H = basis("linear", np.column_stack([X[:, 0], np.full(4, 3.0)]))
    independent = IndependentColumns(H)
    new = basis("linear", np.array([[-4.0, 3.0], [100.0, 3.0], [1.0, 3.1]]))
    np.testing.assert_array_equal(independent.leaves(new), [False, False, True])


@pytest.mark.parametrize("stationary", [True, False])
def test_any_row_of_the_bag_may_be_the_test_row(stationary):
    """Exchangeability hangs on it: the key depends on the bag, not on which row is left for last."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        bag = rng.normal(size=(8, 3)) * [1, 50, 0.02] + [0, 300, 1]
        bag[rng.integers(8)] *= 4  # an outlier, so that some keys change
        rests = [np.delete(bag, last, axis=0) for last in range(8)]
        keys = [SymmetricScaling(rest, stationary).keys(x[None])[0] for rest, x in zip(rests, bag, strict=True)]
        assert (np.array(keys) == keys[0]).all()


def test_the_middle_half_of_the_rows_gives_the_scale():
    X = np.random.default_rng(1).lognormal(sigma=2, size=(40, 6)) * np.geomspace(1e-4, 1e4, 6)
    scaling = SymmetricScaling(X, True)
    ordered = np.sort(scaling.scaling(scaling.keys()[0]).transform(X), axis=0)
    half = (ordered[29] - ordered[10]) / 1.5
    assert (np.abs(np.log(half)) <= 0.5 * np.log(STEP) + 1e-12).all()


def test_scales_of_the_usual_distributions_are_near_the_standard_deviation():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.normal(size=500), rng.uniform(size=500)])
        scaling = SymmetricScaling(X, True)
        deviation = scaling.scaling(scaling.keys()[0]).transform(X).std(axis=0)
        assert (np.abs(np.log(deviation)) < 0.5 * np.log(STEP) + np.log(1.25)).all()


@pytest.mark.parametrize("n", [5, 12, 39, 40, 200])
def test_a_far_out_row_counts_no_more_than_the_outermost_row(n):
    X = np.random.default_rng(n).normal(size=(n, 3))
    scaling = SymmetricScaling(X, False)
    far = scaling.keys(np.array([[1e9, -1e9, X[:, 2].max()]]))[0]
    near = scaling.keys(np.array([[X[:, 0].max(), X[:, 1].min(), X[:, 2].max()]]))[0]
    np.testing.assert_array_equal(far, near)


def test_indicators_of_few_rows_have_the_width_of_a_wider_range():
    X = np.zeros((100, 2))
    X[:15, 0] = 4.0
    X[0, 1] = 1e9  # of all rows but the outermost nothing is left: scale 1
    scaling = SymmetricScaling(X, True)
    scale = scaling.scaling(scaling.keys()[0]).scale
    assert abs(np.log(scale[0] * 1.5 / 4.0)) <= 0.5 * np.log(STEP)
    assert scale[1] == 1.0


def test_most_test_rows_share_the_training_key():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 5))
    scaling = SymmetricScaling(X, True)
    same = (scaling.keys(rng.normal(size=(500, 5))) == scaling.keys()[0]).all(axis=1)
    assert same.mean() > 0.8


def test_a_column_constant_in_the_bag_keeps_its_scale():
    X = np.column_stack([np.full(9, 3.7), np.arange(9.0)])
    scaling = SymmetricScaling(X, True)
    assert scaling.keys()[0, 0] == 0
    assert scaling.keys(np.array([[3.7, 2.0]]))[0, 0] == 0
    assert scaling.keys(np.array([[1e6, 2.0]]))[0, 0] == 0  # one row does not make a scale


@pytest.mark.parametrize("stationary", [True, False])
def test_units_and_origins_of_inputs_do_not_matter(stationary):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, 3))
    new = rng.normal(size=(5, 3))
    scaled = []
    for factor, shift in (([1.0, 1.0, 1.0], 0.0), ([0.001, 7.3, 1e5], 32.0)):
        own = X * factor + shift
        test = new * factor + shift
        scaling = SymmetricScaling(own, stationary)
        by = [scaling.scaling(key) for key in scaling.keys(test)]
        scaled.append([one.transform(own) - (one.transform(own[:1]) if stationary else 0.0) for one in by])
    np.testing.assert_allclose(scaled[1], scaled[0], rtol=1e-9, atol=1e-9)


def test_inputs_of_heavy_tails_are_compressed_and_no_others():
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.normal(size=400), rng.lognormal(sigma=1.5, size=400), np.ones(400), rng.uniform(size=400)])
    usual, robust = Scaling.standard(X).transform(X), Scaling.standard(X, compress=True).transform(X)
    np.testing.assert_array_equal(robust[:, [0, 2, 3]], usual[:, [0, 2, 3]])
    assert (robust[:, 1] ** 4).mean() < 4.0 < 20.0 < (usual[:, 1] ** 4).mean()
    np.testing.assert_array_equal(np.argsort(robust[:, 1]), np.argsort(X[:, 1]))
    other = Scaling.standard(X * [1.0, 1e6, 1.0, 1.0], compress=True).transform(X * [1.0, 1e6, 1.0, 1.0])
    np.testing.assert_allclose(other, robust, atol=1e-8)  # whatever the units


def test_a_rare_category_is_only_scaled():
    X = np.zeros((200, 1))
    X[:5] = 1.0
    np.testing.assert_allclose(
        Scaling.standard(X, compress=True).transform(X), Scaling.standard(X).transform(X), atol=1e-12
    )
