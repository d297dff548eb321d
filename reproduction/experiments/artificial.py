"""Artificial data: targets that are a draw from a Gaussian process, with noise and outliers."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

from conformal_gp.arrays import Array

# Added to the diagonal of the unit covariance, which rounding can make indefinite. At 4000 rows and an almost
# constant function 1e-13 is too small and 1e-12 is enough.
_JITTER = 1e-10


def make_gp_data(
    n_samples: int = 500,
    n_features: int = 5,
    *,
    noise: float = 0.1,
    outlier_fraction: float = 0.0,
    outlier_noise: float = 1.0,
    length_scale: float = 1.0,
    signal: float = 1.0,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Array, Array]:
    r"""Draw a regression problem from a Gaussian process.

    The inputs are independent standard normal. The targets are :math:`y_i = f(x_i) + \epsilon_i`, where
    :math:`f` is one draw from a Gaussian process with mean zero and squared exponential covariance
    :math:`\sigma_f^2 \exp(-|x - x'|^2 / (2 \ell^2))`, and :math:`\epsilon_i` is normal with mean zero.

    Parameters
    ----------
    n_samples : int, default=500
        Number of rows. Time grows with its cube and memory with its square.
    n_features : int, default=5
        Number of inputs.
    noise : float, default=0.1
        Standard deviation of the noise.
    outlier_fraction : float, default=0.0
        Probability that a row is an outlier, decided for each row on its own. The number of outliers is
        therefore random.
    outlier_noise : float, default=1.0
        Standard deviation of the noise of an outlier, in place of ``noise``.
    length_scale : float, default=1.0
        Length scale :math:`\ell` of the covariance, the same for all inputs.
    signal : float, default=1.0
        Standard deviation :math:`\sigma_f` of the function at any one input.
    random_state : int, RandomState instance or None, default=None
        Seed, or source of random numbers. Pass an int to get the same data each time.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The inputs.
    y : ndarray of shape (n_samples,)
        The targets.

    Notes
    -----
    Each call draws another function, so training and test rows must come out of one call and be split
    afterwards. The rows are exchangeable: any split will do.

    The random numbers drawn do not depend on the scales and the fraction. So with one seed the inputs stay the same
    when any of these changes, the function stays the same when the noise changes, and the outliers at a smaller
    fraction are among those at a larger one.

    The default values are those of the first artificial experiment in [1]_, 500 training rows; the second has
    ``outlier_fraction=0.1``. The number of inputs is not given there: 5 reproduces the widths it reports.

    References
    ----------
    .. [1] H. Papadopoulos, "Guaranteed Coverage Prediction Intervals with Gaussian Process Regression",
       IEEE Transactions on Pattern Analysis and Machine Intelligence, 2024, doi:10.1109/TPAMI.2024.3418214.

    Examples
    --------
    500 training rows and 1000 test rows of one function:

    >>> from reproduction.experiments.artificial import make_gp_data
    >>> X, y = make_gp_data(1500, random_state=1)
    >>> X.shape, y.shape
    ((1500, 5), (1500,))
    >>> X_train, X_test, y_train, y_test = X[:500], X[500:], y[:500], y[500:]

    The same data with about one outlier in ten rows; the other rows do not change:

    >>> X_out, y_out = make_gp_data(1500, outlier_fraction=0.1, random_state=1)
    >>> bool((X_out == X).all()), int((y_out != y).sum())
    (True, 145)
    """
    random = check_random_state(random_state)

    # All random numbers are drawn here, whatever the scales: see the notes.
    X = random.standard_normal((n_samples, n_features))
    weights = random.standard_normal(n_samples)
    errors = random.standard_normal(n_samples)
    is_outlier = random.uniform(size=n_samples) < outlier_fraction

    function = signal * (_unit_covariance_factor(X, length_scale) @ weights)
    return X, function + np.where(is_outlier, outlier_noise, noise) * errors


def _unit_covariance_factor(X: Array, length_scale: float) -> Array:
    """Lower Cholesky factor of the squared exponential covariance of the rows, at unit variance."""
    K = cdist(X, X)
    with np.errstate(over="ignore"):  # far rows at a tiny length scale: exp(-inf) = 0 is right
        K /= length_scale
        K *= K
    K *= -0.5
    np.exp(K, out=K)
    K.flat[:: len(K) + 1] += _JITTER
    # K is symmetric, so its transpose is the same matrix in the memory order that LAPACK overwrites in place.
    return cholesky(K.T, lower=True, overwrite_a=True, check_finite=False)
