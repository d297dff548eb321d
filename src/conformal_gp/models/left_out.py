r"""Models without one of their calibration rows, in closed form, to predict that row by the others.

With P the inverse of the covariance matrix of all rows (:mod:`conformal_gp.gp.posterior`), row i has by the others the
weights :math:`v = -P_{\cdot i} / P_{ii}`, and mean and variance of Rasmussen and Williams (2006), equation 5.12:
:math:`y_i - \alpha_i / P_{ii}` and :math:`s = 1 / P_{ii}`. What the others have without it is

.. math::
    P_{jj} - P_{ij}^2 / P_{ii}, \quad \alpha_j - P_{ij} \alpha_i / P_{ii}, \quad Q - \alpha_i^2 / P_{ii}, \quad
    \log |K| + \log P_{ii}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np

from conformal_gp.answers import Answers, Block, Question
from conformal_gp.arrays import Array, Indices
from conformal_gp.conformal.lines import whole_lines
from conformal_gp.gp.inputs import NewInputs
from conformal_gp.gp.mixture import Mixture, MixturePrediction
from conformal_gp.gp.posterior import Posterior, Prediction
from conformal_gp.models.exact import ExactModel
from conformal_gp.models.integrated import IntegratedModel, Key
from conformal_gp.rows import Rows
from conformal_gp.threads import slices

# Entries of P that are computed at a time.
PRECISIONS = 2**24


def left_out(answers: Answers) -> Iterator[tuple[int, Answers]]:
    """Each calibration row, by its number, and answers about it from the other rows."""
    model = answers.model
    if isinstance(model, IntegratedModel):
        precision = model.mixture.precision()
        for row in model.calibration:
            yield int(row), answers.by(_IntegratedWithout(model, int(row), precision[:, :, row]))
    elif isinstance(model, ExactModel):
        for part in slices(model.calibration.size, max(1, PRECISIONS // model.n_rows)):
            rows = model.calibration[part]
            for row, column in zip(rows, model.posterior.columns(rows).T, strict=True):
                others = model.among(model.calibration[model.calibration != row])
                others.posterior = _PosteriorWithout(model.posterior, int(row), column)
                yield int(row), answers.by(others)
    else:
        raise ValueError(
            "model must be an exact GP, of which rows are left out in closed form, and it is low-rank; use "
            "cross_validate_intervals, which fits again, or low_rank=False."
        )


class _PosteriorWithout(Posterior):
    """The GP given all training rows except one, which alone it can predict; entries of that row are 0."""

    def __init__(self, whole: Posterior, row: int, column: Array):
        self.__dict__.update(vars(whole))
        own = whole.diagonal[row]
        weights = np.zeros(column.size)
        mean = whole.y[row]
        variance = np.inf
        if own > 0.0:
            weights = -column / own
            mean -= whole.residuals[row] / own
            variance = 1.0 / own
        alpha = whole.residuals + weights * whole.residuals[row]
        diagonal = np.maximum(whole.diagonal - own * weights**2, 0.0)
        for values in (alpha, diagonal, weights):
            values[row] = 0.0
        self.alpha = alpha
        self.__dict__ |= {"diagonal": diagonal, "residuals": alpha, "sizes": whole.sizes}
        self._prediction = Prediction(weights[None], np.array([mean]), np.array([variance]), whole.prior[[row]])

    def prepare(self) -> None:
        """Nothing is left to compute."""

    def predict(self, new: NewInputs) -> Prediction:
        """See Posterior; ``new`` is the row that is left out."""
        return self._prediction

    def mean(self, new: NewInputs) -> Array:
        """See Posterior."""
        return self._prediction.mean

    def moments(self, new: NewInputs) -> tuple[Array, Array]:
        """See Posterior."""
        return self._prediction.mean, self._prediction.variance


class _MixtureWithout(Mixture):
    """The processes of all draws given all training rows except one, which alone they can predict."""

    def __init__(self, whole: Mixture, row: int, column: Array):
        self.__dict__.update(vars(whole))
        own = whole.diagonal[:, row]
        known = np.where(own > 0.0, own, 1.0)
        weights = -column / known[:, None]
        residual = whole.alpha[:, row]
        mean = whole.transformed[:, row] - residual / known
        self.alpha = np.delete(whole.alpha + weights * residual[:, None], row, axis=1)
        self.diagonal = np.maximum(np.delete(whole.diagonal - own[:, None] * weights**2, row, axis=1), 0.0)
        self.quadratic = np.maximum(whole.quadratic - residual**2 / known, whole.least_quadratic)
        self.log_determinant = whole.log_determinant + np.log(known)
        self.degrees = whole.degrees - 1
        weights = np.delete(weights, row, axis=1)
        self._prediction = MixturePrediction(weights[:, :, None], mean[:, None], 1.0 / known[:, None])

    def predict(self, new: Array, H: Array, known: Array | None) -> MixturePrediction:
        """See Mixture; ``new`` is the row that is left out."""
        return self._prediction


class _IntegratedWithout(IntegratedModel):
    """The average over draws, without one training row, which alone it can predict."""

    def __init__(self, whole: IntegratedModel, row: int, column: Array):
        self.__dict__.update(vars(whole))
        self._key = whole._training_key()
        self._alone = bool((whole.mixture.diagonal[:, row] == 0.0).any())
        self.mixture = _MixtureWithout(whole.mixture, row, column)
        self._scaled = lru_cache(1)(lambda key: (self.inputs, self.mixture))
        self.n_rows = whole.n_rows - 1
        self.y = np.delete(whole.y, row)
        others = whole.calibration[whole.calibration != row]
        self.calibration = others - (others > row)

    def _blocks(self, new: Rows) -> list[tuple[Indices, Key]]:
        return [(np.arange(len(new.X)), self._key)]

    def visit(self, new: Rows, question: Question, fill: Callable[[Block], None]) -> None:
        """See Model; ``new`` is the row that is left out."""
        if self._alone:
            alone = (self.mixture.diagonal[:, self.calibration] == 0.0).any(axis=0)
            fill(Block(np.arange(1), whole_lines(1, alone)))
        else:
            super().visit(new, question, fill)

    def moments(self, new: Rows) -> tuple[Array, Array]:
        """See Model."""
        mean, variance = super().moments(new)
        if self._alone:
            variance = np.full(1, np.inf)
        return mean, variance
