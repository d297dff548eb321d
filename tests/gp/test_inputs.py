"""Bases of mean functions whose columns depend on each other."""

import numpy as np
import pytest

from conformal_gp.gp.inputs import IndependentColumns, basis

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
