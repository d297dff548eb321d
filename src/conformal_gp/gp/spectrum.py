r"""A process with one kernel at several noise levels at once, through an eigendecomposition.

With known noise variances or none, the covariance of the training labels is :math:`A = D^{1/2} (\tilde K + \rho I)
D^{1/2}`, :math:`\tilde K = D^{-1/2} K D^{-1/2} = U \Lambda U'`: without known noise D = I and ρ is the noise; with it D
holds the noise of each row and ρ = 1. In the coordinates :math:`U' D^{-1/2}` all matrices are diagonal, so likelihood
and predictions at many ρ cost little more than at one. See :mod:`conformal_gp.gp.posterior` for the formulas.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.gp.covariance import check_matrix, check_variances, covariance
from conformal_gp.gp.inputs import Inputs, NewInputs
from conformal_gp.gp.posterior import ALONE, EXPLAINED
from conformal_gp.types import Array


class Spectrum:
    """Restricted likelihood and predictions of a Gaussian process at several noise levels.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Covariance function.
    noises : ndarray of shape (R,)
        Noise variances of labels; one only where noise is known, to which it is added.
    inputs : Inputs
        Training inputs, their mean basis and their known noise.
    y : ndarray of shape (l,)
        Training labels.

    Attributes
    ----------
    quadratic : ndarray of shape (R,)
        y'Py at each noise; 0 where the mean explains the labels, up to rounding.
    log_determinant : ndarray of shape (R,)
        log |A| |H'CH|.
    largest : float
        Largest prior variance of a training row's label, without noise.
    """

    def __init__(self, kernel: Kernel, noises: Array, inputs: Inputs, y: Array):
        self._kernel, self._X = kernel, inputs.X
        self._known = bool(inputs.known.any())
        self._noises = noises
        weight = np.sqrt(inputs.known + noises[0]) if self._known else np.ones(y.size)
        levels = np.ones(1) if self._known else noises
        K = covariance(kernel, inputs.X)[0]
        check_matrix(kernel, np.tril(K))
        self.largest = float(K.diagonal().max())
        eigenvalues, U = eigh(K / (weight * weight[:, None]), driver="evd", overwrite_a=True, check_finite=False)
        self._U = U / weight[:, None]  # D^-1/2 U
        self._precision = 1.0 / (np.maximum(eigenvalues, 0.0)[:, None] + levels)  # (l, R)
        H = self._U.T @ inputs.H  # (l, p)
        first_fit = inputs.H.T @ y
        labels = y - inputs.H @ first_fit
        rotated = self._U.T @ labels
        information = np.einsum("ip,ir,iq->rpq", H, self._precision, H)
        self._inverse_information = np.linalg.inv(information)
        target = np.einsum("rpq,iq,ir,i->pr", self._inverse_information, H, self._precision, rotated, optimize=True)
        error = rotated[:, None] - H @ target  # (l, R)
        explained = np.abs(labels[:, None] - inputs.H @ target).max(axis=0) <= EXPLAINED * np.abs(y).max()
        error[:, explained] = 0.0
        self._alpha = self._precision * error
        self._coefficients = first_fit[:, None] + target
        self._weighted_basis = self._precision[:, :, None] * H[:, None, :]  # (l, R, p)
        self.quadratic = np.einsum("ir,ir->r", self._alpha, error)
        self.log_determinant = (
            2.0 * float(np.log(weight).sum()) - np.log(self._precision).sum(axis=0) + np.linalg.slogdet(information)[1]
        )

    def prior(self, new: NewInputs) -> Array:
        """Prior variances of new labels, without noise, (m,)."""
        return self._kernel.diag(new.X)

    def moments(self, new: NewInputs) -> tuple[Array, Array]:
        """Means and variances of new labels, (m, R) each; variances are infinite where means are not determined."""
        rotated = covariance(self._kernel, new.X, self._X)[0] @ self._U
        mean = rotated @ self._alpha + new.H @ self._coefficients
        noise = new.known[:, None] + self._noises
        prior = self.prior(new)[:, None]
        left = prior - rotated**2 @ self._precision
        check_variances(self._kernel, left.ravel(), (prior + noise).ravel())
        variance = np.maximum(left + noise, noise)
        p = new.H.shape[1]
        if p == 0:
            return mean, variance
        l, levels, _ = self._weighted_basis.shape
        gap = new.H[:, None, :] - (rotated @ self._weighted_basis.reshape(l, -1)).reshape(-1, levels, p)
        if p == 1:
            spread = gap[:, :, 0] ** 2 * self._inverse_information[:, 0, 0]
        else:
            spread = np.einsum("mrp,rpq,mrq->mr", gap, self._inverse_information, gap, optimize=True)
        undetermined = new.undetermined[:, None] | (variance <= ALONE**2 * spread)
        return mean, np.where(undetermined, np.inf, variance + spread)
