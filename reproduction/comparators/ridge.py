"""RR-CP: the ridge regression confidence machine, with a radial basis function kernel."""

from __future__ import annotations

from numbers import Real

from numpy.linalg import LinAlgError
from sklearn.gaussian_process.kernels import RBF

from conformal_gp.conformal.lines import Lines, normalised_residual_lines
from conformal_gp.constraints import Interval
from conformal_gp.gp.inputs import Inputs, Scaling
from conformal_gp.gp.posterior import Posterior
from conformal_gp.threads import one_blas_thread
from conformal_gp.types import Array
from reproduction.comparators.automatic_model_selection import search
from reproduction.comparators.full import FullConformalRegressor

__all__ = ["ConformalRidge"]


class ConformalRidge(FullConformalRegressor):
    r"""Full conformal prediction on kernel ridge regression, with absolute residuals.

    A row's score is the absolute residual of a fit to training rows and test row together,
    :math:`|y - K \alpha - \beta|` with :math:`(K + \lambda I) \alpha + \beta = y` and
    :math:`K_{ij} = \exp(-|x_i - x_j|^2 / 2 \sigma^2)`. Residuals are :math:`\lambda \alpha`, so this is Gaussian
    process regression with noise variance :math:`\lambda`, and the bias :math:`\beta` is a constant mean with a flat
    prior: the scores are those of ``ConformalGPRegressor`` with ``gamma=1``.

    Coverage is exact with given ``length_scale`` and ``ridge`` and ``scale_inputs=False``. The search and the scaling
    use the training rows only, as in the paper, and so treat the test row differently.

    Parameters
    ----------
    length_scale : float > 0 or None, default=None
        Length scale σ of the kernel, on scaled inputs. None searches.
    ridge : float > 0 or None, default=None
        Ridge λ. None searches.
    bias : bool, default=True
        Whether to have an unregularised bias, fitted to training rows and test row together.
    bounded : bool, default=False
        Whether to keep the search within a factor of exp(10) of its start. The published search is unbounded, and can
        end at meaningless values when labels are large.
    scale_inputs : bool, default=True
        Standardise inputs to mean 0 and standard deviation 1 over the training rows.

    Attributes
    ----------
    length_scale_ : float
        Length scale in use, on scaled inputs.
    ridge_ : float
        Ridge in use.
    n_features_in_ : int
        Number of inputs.

    Notes
    -----
    Intervals may be infinite at any level. This happens when the test row is close to some training rows and far from
    all others, so that the residuals of these rows grow with the candidate label as fast as its own.

    References
    ----------
    I. Nouretdinov, T. Melluish and V. Vovk, "Ridge Regression Confidence Machine", ICML 2001.

    O. Chapelle, V. Vapnik, O. Bousquet and S. Mukherjee, "Choosing Multiple Parameters for Support Vector Machines",
    Machine Learning 46, 2002 (the span of support vectors, on which the search rests).

    Examples
    --------
    >>> from reproduction.comparators.ridge import ConformalRidge
    >>> from conformal_gp.datasets import load_servo
    >>> X, y = load_servo(return_X_y=True)
    >>> model = ConformalRidge().fit(X[:150], y[:150])
    >>> model.predict_interval(X[150:], confidence_level=[0.9, 0.95]).shape
    (17, 2, 2)
    """

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        "length_scale": [Interval(Real, 0, None, closed="neither"), None],
        "ridge": [Interval(Real, 0, None, closed="neither"), None],
        "bias": ["boolean"],
        "bounded": ["boolean"],
        "scale_inputs": ["boolean"],
    }

    def __init__(
        self,
        length_scale: float | None = None,
        ridge: float | None = None,
        *,
        bias: bool = True,
        bounded: bool = False,
        scale_inputs: bool = True,
    ):
        self.length_scale = length_scale
        self.ridge = ridge
        self.bias = bias
        self.bounded = bounded
        self.scale_inputs = scale_inputs

    def _fit(self, X: Array, y: Array) -> None:
        if y.size < 2:
            raise ValueError(f"X must have at least 2 rows to fit a ridge regression, got n_samples={y.size}.")
        scaling = Scaling.standard(X) if self.scale_inputs else Scaling.none(X)
        self._n_rows = y.size
        self._inputs = Inputs(X, scaling, "constant" if self.bias else "zero")
        with one_blas_thread(rows=y.size):
            self.length_scale_, self.ridge_ = search(
                self._inputs.pairs,
                y,
                length_scale=self.length_scale,
                ridge=self.ridge,
                bias=self.bias,
                bounded=self.bounded,
            )
            try:
                self._posterior = Posterior(RBF(self.length_scale_), self.ridge_, self._inputs, y, flat_prior=True)
            except LinAlgError as error:
                raise LinAlgError(
                    f"ridge={self.ridge_:.3g} is lost in rounding for length_scale={self.length_scale_:.3g}: the "
                    "kernel matrix is numerically singular. Give a larger ridge or a shorter length_scale."
                ) from error

    def _predict(self, X: Array) -> Array:
        return self._posterior.mean(self._inputs.new(X))

    def _lines(self, X: Array) -> Lines:
        posterior, block = self._posterior, self._posterior.predict(self._inputs.new(X))
        return normalised_residual_lines(
            posterior.alpha, posterior.diagonal, block.weights, block.mean, block.variance, gamma=1.0
        )
