"""Leave-one-out predictions of a fitted model: each calibration row by the others, in closed form."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from conformal_gp.arrays import Array, Indices
from conformal_gp.conformal.levels import read_level
from conformal_gp.models.left_out import left_out
from conformal_gp.rows import ArrayRows
from conformal_gp.threads import one_blas_thread


class LeftOutRows(NamedTuple):
    """Leave-one-out predictions of n calibration rows; made by :func:`leave_one_out`.

    Examples
    --------
    >>> import numpy as np
    >>> from conformal_gp.evaluation import LeftOutRows
    >>> LeftOutRows(np.array([7]), np.ones(1), np.zeros(1), np.full(1, 2.0), np.array([[0.0, 2.0]])).residual
    array([0.5])
    """

    rows: Indices
    """Numbers of the rows among the training rows, (n,)."""
    y: Array
    """Targets, (n,)."""
    prediction: Array
    """Predictions by the other rows, (n,)."""
    std: Array
    """Standard deviations under the Gaussian process given the other rows, noise included, (n,)."""
    intervals: Array
    """Conformal prediction intervals by the other rows, (n, 2)."""

    @property
    def residual(self) -> Array:
        """Standardised residuals, (n,): about standard normal if the model is right."""
        return (self.y - self.prediction) / self.std


def leave_one_out(model: Any, confidence_level: float = 0.9) -> LeftOutRows:
    """Predict each calibration row by the other rows, without fitting again.

    Hyperparameters stay as they are, so l rows cost as much as one fit. With "integrated", the draws are weighted again
    without the row. Tuning rows, which hyperparameters were learnt from, are not left out.

    The residuals show which rows the model does not explain. The coverage of the intervals shows nothing: whichever
    rows have the largest residuals, about a share delta of the rows is not covered.
    :func:`cross_validate_intervals` measures coverage, and fits again.

    Parameters
    ----------
    model : ConformalGPRegressor
        A fitted model with an exact Gaussian process; a low-rank one is an error.
    confidence_level : float, default=0.9
        Level of the intervals.

    Returns
    -------
    found : LeftOutRows
        Predictions, standard deviations, intervals and standardised residuals.

    Examples
    --------
    >>> import numpy as np
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.evaluation import leave_one_out
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> y = np.sin(2 * X[:, 0])
    >>> y[17] += 0.1  # a mistyped value
    >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=1e-3, scale_inputs=False).fit(X, y)
    >>> found = leave_one_out(model)
    >>> int(np.argmax(np.abs(found.residual))), float(found.residual[17].round(1))
    (17, 2.9)
    """
    check_is_fitted(model)
    level = read_level(confidence_level)
    source = model._source
    if not isinstance(source, ArrayRows) or not source.in_memory:
        raise ValueError("model must be fitted to rows in memory: leaving rows out reads single rows.")
    found: dict[int, list[Array]] = {}
    with one_blas_thread(rows=source.n_rows):
        for answers in model._group_answers or [model._answers]:
            for row, others in left_out(answers):
                new = source.rows.take(slice(row, row + 1))
                ends = others.about(new).intervals([level])[0, :, 0]
                found[row] = [others.predict(new)[0], others.standard_deviation(new)[0], *ends]
    rows = np.array(sorted(found), dtype=np.int64)
    prediction, std, low, high = np.array([found[row] for row in rows]).T
    return LeftOutRows(model._numbers(rows), source.y[rows], prediction, std, np.column_stack([low, high]))
