"""Inducing inputs: the few inputs through which a low-rank Gaussian process sees all others."""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import Kernel
from threadpoolctl import threadpool_limits

from conformal_gp.arrays import Array, Indices
from conformal_gp.gp.covariance import Cholesky, covariance, shared_variance

# An input whose variance given those chosen before is below this share of the largest variance adds nothing but
# rounding; the covariance matrix of the chosen ones then needs no jitter.
LEAST_SHARE = 1e-8


def greedy(kernel: Kernel, X: Array, n_inducing: int) -> Indices:
    """Rows of ``X``, each the one of largest variance given those before: pivots of a Cholesky factorisation.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Covariance function.
    X : ndarray of shape (n, d)
        Inputs to choose from.
    n_inducing : int
        Number to choose. Fewer are chosen if no other input has variance left given those chosen.

    Returns
    -------
    rows : ndarray of int
        Row numbers, in the order of choice.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> greedy(RBF(1.0), np.array([[0.0], [0.1], [5.0], [0.0]]), 3)
    array([0, 2, 1])
    """
    left = shared_variance(kernel, X)
    least = LEAST_SHARE * left.max()
    factor = np.empty((min(n_inducing, X.shape[0]), X.shape[0]))
    # one row after the other takes much longer, unless few are needed
    every = covariance(kernel, X, X)[0] if 2 * factor.shape[0] >= X.shape[0] else None
    chosen: list[int] = []
    for row in factor:
        pivot = int(np.argmax(left))
        if left[pivot] <= least:
            break
        earlier = factor[: len(chosen)]
        known = covariance(kernel, X[[pivot]], X)[0][0] if every is None else every[pivot]
        row[:] = known - earlier[:, pivot] @ earlier
        row /= np.sqrt(left[pivot])
        left -= row**2
        left[pivot] = 0.0
        chosen.append(pivot)
    return np.array(chosen, dtype=np.int64)


def centres(kernel: Kernel, X: Array, n_inducing: int, rng: np.random.RandomState) -> Array:
    """Centres of k-means: they cover the bulk of the rows, where greedy selection prefers outlying rows.

    Parameters
    ----------
    kernel, X, n_inducing
        As in :func:`greedy`.
    rng : numpy.random.RandomState
        Draws the start of k-means.

    Returns
    -------
    Z : ndarray of shape (at most n_inducing, d)
        Inducing inputs whose covariance matrix is not singular up to rounding.
    """
    from sklearn.cluster import KMeans  # takes half a second to import, so only where it is needed

    n_clusters = min(n_inducing, np.unique(X, axis=0).shape[0])
    with threadpool_limits(1, user_api="openmp"):  # sums and centres then do not depend on the order of threads
        found = KMeans(n_clusters, n_init=1, random_state=rng).fit(X)
    return independent(kernel, found.cluster_centers_)


def unexplained_variance(kernel: Kernel, X: Array, Z: Array) -> float:
    """Mean variance at rows ``X`` given the process at inducing inputs ``Z``."""
    half = Cholesky(covariance(kernel, Z, Z)[0]).half_solve(covariance(kernel, Z, X)[0])
    return float(np.mean(shared_variance(kernel, X) - np.einsum("ij,ij->j", half, half)))


def independent(kernel: Kernel, Z: Array) -> Array:
    """Inputs whose covariances are linearly independent up to rounding, in the order of pivots."""
    return Z[greedy(kernel, Z, Z.shape[0])]
