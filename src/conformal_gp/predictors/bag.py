r"""Training rows and one test row: the restricted likelihood of all of them, at any hyperparameters and label.

At hyperparameters :math:`\theta` the process has covariance :math:`a (K_\theta + \rho_\theta I)` with the amplitude a
profiled out. Of n rows with a mean basis of p columns, minus twice its restricted log likelihood is, but for
constants, :math:`\nu \log (y'Py) + \log D` with :math:`\nu = n - p` and :math:`D = |K + \rho I| |H'CH|`. By the block
form of the inverse, adding a test row with label y to training rows with quadratic form Q and determinant D gives

.. math:: F(\theta, y) = \nu \log \left( Q + (y - \mu)^2 / s \right) + \log (D s) + \text{penalty}(\theta),

where :math:`\mu` and s are mean and variance of the test row's label. Setting training row i aside turns Q, D, μ and s
into :math:`Q - \alpha_i^2 / P_{ii}, D P_{ii}, \mu - v_i \alpha_i / P_{ii}` and :math:`s + v_i^2 / P_{ii}`.

So :math:`F(\theta', y) < F(\theta, y) - g` is a comparison of two parabolas in y: a quadratic inequality. And so is
:math:`u' \nabla F(\theta, y) < - g`, which says what a step u promises to first order
(:mod:`conformal_gp.gp.slopes`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from copy import copy
from threading import RLock
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.linalg import LinAlgError
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.gp.inputs import Inputs, NewInputs
from conformal_gp.gp.posterior import Posterior
from conformal_gp.gp.whitened_basis import EXPLAINED
from conformal_gp.types import Array

# Factorisations that are kept, in bytes; others are computed again when they are needed.
KEPT_BYTES = 2**29


class Choices(Protocol):
    """Hyperparameters to choose from: a lattice, or a list."""

    def kernel(self, point: Any) -> Kernel:
        """Kernel at a point."""

    def noise_variance(self, point: Any) -> float:
        """Noise variance at a point."""

    def noise_coefficients(self, point: Any) -> Array:
        """Coefficients of varying noise there; none where it is constant."""

    def penalty(self, point: Any) -> float:
        """What is added to minus twice the log likelihood there."""


class Criterion(NamedTuple):
    """What of F does not depend on a test row."""

    quadratic: float
    log_determinant: float
    """Penalty included; infinite where the covariance matrix is numerically singular."""
    largest_variance: float
    """Largest prior variance of a training row's label, noise included."""


class Bag:
    """Training rows under one scaling of their inputs, and the process at any point.

    Parameters
    ----------
    choices : Choices
        The hyperparameters.
    inputs : Inputs
        Training inputs.
    y : ndarray of shape (l,)
        Training labels.
    prior_share : float, default=1.0
        Which part of the penalty counts.
    """

    def __init__(self, choices: Choices, inputs: Inputs, y: Array, prior_share: float = 1.0):
        self.choices = choices
        self.inputs = inputs
        self.y = y
        self._prior_share = prior_share
        self.degrees = y.size - inputs.H.shape[1]
        """Degrees of freedom of the training rows alone, or of as many with the test row among them."""
        self._criteria: dict[Hashable, Criterion] = {}
        self._posteriors: OrderedDict[Hashable, Posterior] = OrderedDict()
        self._lock = RLock()
        self.rounding = (EXPLAINED * float(np.abs(y).max(initial=0.0))) ** 2
        """Square of what is rounding in a label, where the mean function explains all of them."""
        self._most_kept = max(2, KEPT_BYTES // (8 * y.size**2))

    def choosing_from(self, choices: Choices) -> Bag:
        """The same rows with another penalty on the same points."""
        found = copy(self)
        found.choices, found._criteria = choices, {}
        return found

    def posterior(self, point: Any) -> Posterior:
        """The process at a point, given the training rows."""
        with self._lock:
            if point in self._posteriors:
                self._posteriors.move_to_end(point)
            else:
                self._posteriors[point] = Posterior(
                    self.choices.kernel(point),
                    self.choices.noise_variance(point),
                    self.inputs.weighted(self.choices.noise_coefficients(point)),
                    self.y,
                    flat_prior=True,
                    checked=False,
                )
                if len(self._posteriors) > self._most_kept:
                    self._posteriors.popitem(last=False)
            return self._posteriors[point]

    def seen(self, point: Any, new: NewInputs) -> NewInputs:
        """Test rows as the process at a point sees them: with noise that varies as it says."""
        return new.weighted(self.choices.noise_coefficients(point))

    def criterion(self, point: Any) -> Criterion:
        """What of F does not depend on a test row, at a point."""
        known = self._criteria.get(point)
        if known is None:
            try:
                posterior = self.posterior(point)
                value = posterior.log_determinant + self._prior_share * self.choices.penalty(point)
                known = Criterion(posterior.quadratic, value, posterior.largest_variance)
            except LinAlgError:
                known = Criterion(1.0, np.inf, 1.0)
            self._criteria[point] = known
        return known

    def helps(self, new: Any, old: Any, gain: float, other: Bag | None = None) -> bool:
        """Whether the training rows by themselves are likelier at a point than at another, by some gain in F.

        The old point may be one of ``other``: the same rows with other hyperparameters to choose from.
        """
        (q_new, d_new, _), (q_old, d_old, _) = self.criterion(new), (other or self).criterion(old)
        if not (np.isfinite(d_new) and q_new > 0.0 and q_old > 0.0):
            return False
        return bool(self.degrees * np.log(q_new / q_old) + d_new < d_old - gain)
