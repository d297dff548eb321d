r"""GPR-RB: recalibration by a beta link with varying parameters, GP-Beta (Song, Diethe, Kull and Flach, ICML 2019).

Under its predictive distribution a label has the level :math:`t = \Phi((y - \mu) / \sqrt s)`. The beta link maps it to

.. math::
    \tilde F(y) = \operatorname{sigmoid}(z), \quad z = a \ln t - b \ln(1 - t) + c, \quad a, b > 0,

the identity for a = b = 1, c = 0. The parameters (ln a, ln b, c) = d + B f depend on the base prediction through three
Gaussian processes f (:mod:`reproduction.comparators.latent_process`), mixed by a lower triangular B. Training
minimises

.. math::
    -\sum_i \ln \frac1S \sum_{k \le S} \tilde f(y_i \mid f_{ik})
    + \tfrac12 \bigl(\|A\|^2 + \|M\|^2 - \ln |M M^T| - 3 u\bigr),

with samples :math:`f_{ik}` of the posterior and :math:`\tilde f` the density of :math:`\tilde F`. The first term is the
negative logarithm of the mean likelihood, the second the divergence of the posterior from the prior.

Model, objective and settings are the authors'. These differences make gradients shorter:

- the posterior is that of whitened values and starts at the prior, and B also mixes the jitter;
- the scales of f that the authors learn in addition to B are left out, since they only multiply it;
- labels are standardised, so that the inducing rows start at a sensible scale in any unit of the labels;
- progress is measured on the same samples each time, and Adam keeps its running means from step to step.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_ndtr, logsumexp
from sklearn.utils import check_random_state, gen_batches

from conformal_gp.arrays import Array, Indices
from conformal_gp.threads import one_blas_thread
from reproduction.comparators.adam import Adam
from reproduction.comparators.latent_process import Moments, Posterior, Projection
from reproduction.comparators.split import CALIBRATION_SHARE, SplitRegressor

# The authors' training: rows in a batch, steps between checks of the objective, checks without a gain before it stops.
BATCH_ROWS = 16
LOOK_EVERY = 8
PATIENCE = 16
# Halvings that find a quantile to the last digit, and test rows handled at once.
HALVINGS = 60
ROWS_AT_ONCE = 256


class Parameters(NamedTuple):
    """All learnt parameters, as views of one vector."""

    offset: Array
    """d, (3,)."""
    mixing: Array
    """B, (3, 3), lower triangular."""
    posterior: Posterior
    """The process."""

    @classmethod
    def of(cls, vector: Array, n_inducing: int) -> Parameters:
        """The parameters in a vector."""
        u = n_inducing
        shapes = [(3,), (3, 3), (1,), (u,), (u,), (u, 3), (3 * u, 3 * u)]
        ends = np.cumsum([np.prod(shape) for shape in shapes])
        parts = [part.reshape(shape) for part, shape in zip(np.split(vector, ends[:-1]), shapes, strict=True)]
        return cls(parts[0], parts[1], Posterior(*parts[2:]))

    def vector(self) -> Array:
        """The parameters as one vector."""
        return np.concatenate([part.ravel() for part in (self.offset, self.mixing, *self.posterior)])


class Rows(NamedTuple):
    """Base predictions in standard units, and the logarithms of the levels of their labels, all (n,)."""

    mean: Array
    std: Array
    log_below: Array
    """ln t."""
    log_above: Array
    """ln(1 - t)."""

    def take(self, index: Indices) -> Rows:
        """Some of the rows."""
        return Rows(*(column[index] for column in self))


def link(log_below: Array, log_above: Array, parameters: Array) -> Array:
    """z of the beta link, with (ln a, ln b, c) along the last axis but one of ``parameters``.

    >>> from scipy.stats import norm
    >>> parameters = np.array([[np.log(0.6)], [np.log(0.8)], [0.2]])
    >>> expit(link(norm.logcdf(1.3), norm.logsf(1.3), parameters)).round(10)
    array([0.88152961])
    """
    log_a, log_b, c = np.moveaxis(parameters, -2, 0)
    return np.exp(log_a) * log_below - np.exp(log_b) * log_above + c


def log_density(log_below: Array, log_above: Array, parameters: Array) -> tuple[Array, Array]:
    r"""Logarithm of the ratio of the link's density to the base density, and its gradient.

    The ratio is :math:`(a / t + b / (1 - t))\, \tilde F (1 - \tilde F)`. ln t and ln(1 - t) are (n, 1), the parameters
    (ln a, ln b, c) and the gradient (n, 3, samples), the value (n, samples).
    """
    a, b = np.exp(parameters[:, 0]), np.exp(parameters[:, 1])
    z = a * log_below - b * log_above + parameters[:, 2]
    rarer = np.minimum(log_below, log_above)  # t or 1 - t may underflow
    by_a, by_b = a * np.exp(rarer - log_below), b * np.exp(rarer - log_above)
    both = by_a + by_b
    size = np.abs(z)
    ebb = np.exp(-size)
    value = np.log(both / (1 + ebb) ** 2) - rarer - size
    pull = np.copysign((1 - ebb) / (1 + ebb), z)
    gradient = np.stack([by_a / both - pull * a * log_below, by_b / both + pull * b * log_above, -pull], axis=1)
    return value, gradient


def divergence(posterior: Posterior) -> float:
    """Kullback-Leibler divergence of the whitened posterior from the standard normal prior."""
    log_determinant = 2 * np.log(np.abs(np.diag(posterior.spread))).sum()
    squares = (posterior.centre**2).sum() + (posterior.spread**2).sum()
    return float(squares - log_determinant - posterior.spread.shape[0]) / 2


def objective(parameters: Parameters, rows: Rows, draws: Array, weight: float = 1.0) -> tuple[float, Parameters]:
    """The objective, and its gradient.

    ``draws``, (n, 3, samples), are the standard normal draws from which f is sampled; ``weight`` is that of each row:
    all rows divided by the rows of the batch.
    """
    offset, mixing, posterior = parameters
    projection = Projection(posterior, rows.mean, rows.std)
    f = samples(projection.moments, draws)
    ratios, slopes = log_density(rows.log_below[:, None], rows.log_above[:, None], offset[:, None] + mixing @ f)
    totals = logsumexp(ratios, axis=1)
    slopes *= -weight * np.exp(ratios - totals[:, None])[:, None]
    to_f = mixing.T @ slopes
    process = projection.backward(Moments(to_f.sum(axis=2), to_f @ draws.transpose(0, 2, 1)))
    process.centre[:] += posterior.centre
    process.spread[:] += posterior.spread
    process.spread[np.diag_indices_from(process.spread)] -= 1 / np.diag(posterior.spread)
    value = divergence(posterior) - weight * float((totals - np.log(draws.shape[2])).sum())
    to_mixing = np.tril((slopes @ f.transpose(0, 2, 1)).sum(axis=0))
    return value, Parameters(slopes.sum(axis=(0, 2)), to_mixing, process)


def samples(moments: Moments, draws: Array) -> Array:
    """f of each row for each draw, (n, 3, samples)."""
    return moments.mean[:, :, None] + moments.factor @ draws


def start(rows: Rows, n_inducing: int) -> Parameters:
    """The start of training: the prior, and inducing rows spaced evenly over the means."""
    posterior = Posterior(
        log_length=np.zeros(1),
        means=np.linspace(rows.mean.min(), rows.mean.max(), n_inducing),
        stds=np.ones(n_inducing),
        centre=np.zeros((n_inducing, 3)),
        spread=np.eye(3 * n_inducing),
    )
    return Parameters(np.zeros(3), np.eye(3), posterior)


def train(
    parameters: Parameters, rows: Rows, n_samples: int, step_size: float, max_steps: int, rng: np.random.Generator
) -> tuple[Parameters, int]:
    """Minimise the objective by Adam on small batches; returns the best parameters and the number of steps."""
    n_rows, n_inducing = rows.mean.size, parameters.posterior.means.size
    batch = min(BATCH_ROWS, n_rows)
    watched = rng.standard_normal((n_rows, 3, n_samples))
    vector = parameters.vector()
    best, lowest, looks = vector.copy(), np.inf, 0
    adam = Adam(vector.shape)
    while adam.n_steps < max_steps:
        chosen = rng.permutation(n_rows)[:batch]
        draws = rng.standard_normal((batch, 3, n_samples))
        here = Parameters.of(vector, n_inducing)
        slope = objective(here, rows.take(chosen), draws, n_rows / batch)[1].vector()
        adam.step(vector, slope, step_size)
        if adam.n_steps % LOOK_EVERY == 0 or adam.n_steps == max_steps:
            value = objective(Parameters.of(vector, n_inducing), rows, watched)[0]
            looks += 1
            if value < lowest:
                best, lowest, looks = vector.copy(), value, 0
            if looks >= PATIENCE:
                break
    return Parameters.of(best, n_inducing), adam.n_steps


class BetaRecalibration(SplitRegressor):
    r"""GP-Beta recalibration.

    The predictive distribution function of a new label is a beta link of the Gaussian one. Its parameters vary with the
    predicted mean and standard deviation, and the link is averaged over samples of them. Intervals have equal tails.
    Their ends are found by bisection. Small a or b make the tails very heavy: an end that lies further than
    ``max_sigma`` standard deviations from the mean is infinite. There is no guarantee.

    Parameters
    ----------
    estimator, calibration_size, random_state
        See :class:`~reproduction.comparators.split.SplitRegressor`. The seed is also of the training.
    n_inducing : int, default=64
        Inducing rows of the sparse Gaussian process.
    n_samples : int, default=1024
        Samples of the link's parameters, in training and in prediction.
    step_size : float, default=1e-2
        Adam's step size.
    max_steps : int, default=4096
        Largest number of training steps. Training stops earlier after 128 steps without a gain.
    max_sigma : float, default=16.0
        Standard deviations from the mean beyond which an end is infinite.

    Attributes
    ----------
    parameters_ : Parameters
        The learnt parameters.
    n_steps_ : int
        Training steps taken.

    Notes
    -----
    Training to the end overfits a few dozen calibration rows: intervals become narrower, cover less, and are infinite
    for more rows. Of several numbers of steps, 256 came closest to the paper's numbers.

    Examples
    --------
    Errors are twice what the base predictions say:

    >>> errors = 2 * np.random.default_rng(0).normal(size=100)
    >>> method = BetaRecalibration(n_inducing=4, n_samples=64, random_state=0)
    >>> method = method.calibrate(np.zeros(100), np.ones(100), errors)
    >>> width = float(np.diff(method.intervals([0.0], [1.0], 0.9))[0, 0])
    >>> 5.5 < width < 7.5
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        calibration_size: float = CALIBRATION_SHARE,
        random_state: int | np.random.RandomState | None = None,
        n_inducing: int = 64,
        n_samples: int = 1024,
        step_size: float = 1e-2,
        max_steps: int = 4096,
        max_sigma: float = 16.0,
    ):
        super().__init__(estimator, calibration_size=calibration_size, random_state=random_state)
        self.n_inducing = n_inducing
        self.n_samples = n_samples
        self.step_size = step_size
        self.max_steps = max_steps
        self.max_sigma = max_sigma

    def _calibrate(self, mean: Array, std: Array, y: Array) -> None:
        self._unit = float(y.mean()), float(y.std()) or 1.0
        residuals = (y - mean) / std
        rows = Rows(*self._standardised(mean, std), log_ndtr(residuals), log_ndtr(-residuals))
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        first = start(rows, self.n_inducing)
        with one_blas_thread():
            self.parameters_, self.n_steps_ = train(first, rows, self.n_samples, self.step_size, self.max_steps, rng)
        # The same draws for all rows: an interval does not depend on the rows beside it.
        self._draws = rng.standard_normal((3, self.n_samples))

    def _ends(self, mean: Array, std: Array, levels: Sequence[Fraction]) -> Array:
        ends = np.empty((mean.size, 2, len(levels)))
        for some in gen_batches(mean.size, ROWS_AT_ONCE):
            links = self._links(mean[some], std[some])
            for k, level in enumerate(levels):
                for side, tail in enumerate(((1 - level) / 2, (1 + level) / 2)):
                    ends[some, side, k] = quantiles(links, float(tail), self.max_sigma)
        return mean[:, None, None] + std[:, None, None] * ends

    def _links(self, mean: Array, std: Array) -> Array:
        """Samples of the link's parameters for test rows, (m, 3, samples)."""
        offset, mixing, posterior = self.parameters_
        projection = Projection(posterior, *self._standardised(mean, std))
        return offset[:, None] + mixing @ samples(projection.moments, self._draws)

    def _standardised(self, mean: Array, std: Array) -> tuple[Array, Array]:
        """Base predictions of labels in standard units."""
        centre, scale = self._unit
        return (mean - centre) / scale, std / scale


def quantiles(links: Array, level: float, max_sigma: float) -> Array:
    """Quantile of the averaged links of each row, in standard deviations; infinite beyond ``max_sigma``.

    One sample for each of two rows, a = b = 1/2 and a = b = 1/100:

    >>> links = np.log([[[0.5], [0.5], [1.0]], [[0.01], [0.01], [1.0]]])
    >>> quantiles(links, 0.975, max_sigma=16.0).round(5)
    array([3.21289,     inf])
    """
    low, high = np.full(links.shape[0], -max_sigma), np.full(links.shape[0], max_sigma)
    below, above = distribution(links, low) > level, distribution(links, high) < level
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        short = distribution(links, middle) < level
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return np.where(below, -np.inf, np.where(above, np.inf, high))


def distribution(links: Array, residuals: Array) -> Array:
    """Averaged distribution function of each row at a label ``residuals`` standard deviations from its mean."""
    return expit(link(log_ndtr(residuals)[:, None], log_ndtr(-residuals)[:, None], links)).mean(axis=1)
