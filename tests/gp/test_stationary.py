"""Squared distances."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from conformal_gp.gp.stationary import squared_distances


@pytest.mark.parametrize("n_inputs", [0, 1, 2, 3, 4, 5, 8, 11])
def test_stationary_are_those_of_scipy(n_inputs):
    rng = np.random.default_rng(n_inputs)
    X, Z = rng.normal(size=(7, n_inputs)), rng.normal(size=(9, n_inputs))
    expected = cdist(X, Z, "sqeuclidean") if n_inputs else np.zeros((7, 9))
    np.testing.assert_allclose(squared_distances(X, Z), expected, rtol=1e-14)


def test_duplicates_are_at_distance_zero_exactly():
    X = 1e8 + np.random.default_rng(0).normal(size=(5, 6))
    assert (np.diagonal(squared_distances(X, X)) == 0.0).all()
