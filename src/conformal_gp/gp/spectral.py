r"""One kernel with many noise variances at once, by one eigendecomposition.

With :math:`K = U \Lambda U^\top`, the inverse :math:`C = U (\Lambda + \rho I)^{-1} U^\top` is at hand for every noise
variance :math:`\rho`. After the rotation of a test row's covariances, :math:`U^\top k`, its mean and variance cost O(l)
for each noise variance; only its weights cost O(l²). The mean function's coefficients have a flat prior, as in
:mod:`conformal_gp.gp.posterior`, whose notation this follows.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.gp.covariance import covariance
from conformal_gp.gp.factor import norm_of_lower
from conformal_gp.gp.inputs import Inputs, NewInputs
from conformal_gp.gp.posterior import check_resolved, noise_floor, settle

Array = NDArray[np.float64]


class Moments(NamedTuple):
    """Means and variances of m new labels under R noise variances, and what weights are made from."""

    mean: Array
    """(R, m): means."""
    variance: Array
    """(R, m): variances, noise included."""
    rotated: Array
    """(m, l): covariances with the training rows, rotated."""
    unexplained: Array
    """(R, m, p): h - H'C k."""

    def take(self, rows: NDArray[np.int64]) -> Moments:
        """Some of the new rows."""
        return Moments(self.mean[:, rows], self.variance[:, rows], self.rotated[rows], self.unexplained[:, rows])


class SpectralPosterior:
    """Gaussian process given its training rows, for one kernel and several noise variances.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Covariance function.
    noise_variances : ndarray of shape (R,)
        Positive noise variances.
    inputs : Inputs
        Training inputs and their mean basis.
    y : ndarray of shape (l,)
        Training labels.

    Attributes
    ----------
    coefficients : ndarray of shape (R, p)
        Generalised least squares coefficients of the mean basis.
    quadratic, log_determinant : ndarray of shape (R,)
        ``y' P y``, and log |K + ρ I| + log |H'CH|.
    degrees_of_freedom : int
        l - p.
    """

    def __init__(self, kernel: Kernel, noise_variances: Array, inputs: Inputs, y: Array):
        self.kernel = kernel
        self.noise_variances = noise_variances
        K = inputs.pairs.lower(covariance(kernel, inputs.pairs)[0])
        smallest = noise_floor(norm_of_lower(K))
        if noise_variances.min() < smallest:
            raise LinAlgError(
                f"candidates: noise variance {noise_variances.min():.1e} with kernel {kernel} makes the covariance "
                f"matrix numerically singular; it must be at least {smallest:.1e}."
            )
        eigenvalues, self._U = np.linalg.eigh(K)  # reads the lower triangle
        spectrum = np.maximum(eigenvalues, 0.0) + noise_variances[:, None]  # (R, l)
        self._inverse = 1.0 / spectrum
        H = self._U.T @ inputs.H
        rotated_y = self._U.T @ y
        self._CH = self._inverse[:, :, None] * H  # (R, l, p), rotated
        information = H.T @ self._CH
        self._information_inverse = np.linalg.inv(information)
        self.coefficients = np.einsum("rpq,rq->rp", self._information_inverse, rotated_y @ self._CH)
        residual = rotated_y - self.coefficients @ H.T
        residual[np.abs(residual).max(axis=1) <= 1e-13 * np.abs(y).max()] = 0.0  # nothing but rounding is left
        self._rotated_alpha = self._inverse * residual
        self.quadratic = np.einsum("rl,rl->r", residual, self._rotated_alpha)
        self.log_determinant = np.log(spectrum).sum(axis=1) + np.linalg.slogdet(information)[1]
        self.degrees_of_freedom = y.size - H.shape[1]

    @cached_property
    def _coefficient_weights(self) -> Array:
        """(R, p, l): weights of the training labels in the coefficients."""
        return (self._information_inverse @ self._CH.transpose(0, 2, 1)) @ self._U.T

    @cached_property
    def _settled(self) -> tuple[Array, Array]:
        """Weighted residuals and inverse leave-one-out variances: only candidates that are in use need them."""
        alpha = self._rotated_alpha @ self._U.T
        diagonal = self._inverse @ (self._U**2).T
        lost = np.einsum("rlp,rpl->rl", self._U @ self._CH, self._coefficient_weights)
        settle(alpha, diagonal, lost)
        return alpha, diagonal

    @property
    def alpha(self) -> Array:
        """(R, l): weighted residuals."""
        return self._settled[0]

    @property
    def diagonal(self) -> Array:
        """(R, l): inverse leave-one-out variances."""
        return self._settled[1]

    def moments(self, new: NewInputs) -> Moments:
        """Means and variances for every noise variance."""
        rotated = covariance(self.kernel, new.pairs)[0] @ self._U
        mean = self._rotated_alpha @ rotated.T + self.coefficients @ new.H.T
        total = self.kernel.diag(new.pairs.X) + self.noise_variances[:, None]
        unexplained = new.H - rotated @ self._CH
        variance = total - self._inverse @ (rotated**2).T
        variance += ((unexplained @ self._information_inverse) * unexplained).sum(axis=2)
        variance[:, new.undetermined] = np.inf
        check_resolved(variance, total)
        return Moments(mean, variance, rotated, unexplained)

    def weights(self, moments: Moments, r: int) -> Array:
        """Weights (m, l) of the training labels in the means of new rows, for noise variance number r."""
        weights = (moments.rotated * self._inverse[r]) @ self._U.T
        weights += moments.unexplained[r] @ self._coefficient_weights[r]
        return weights
