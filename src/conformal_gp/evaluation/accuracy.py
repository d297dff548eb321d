"""How good predictions are, and which inputs they rest on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from conformal_gp.evaluation.cross_validation import HeldOut
from conformal_gp.types import Array


class Accuracy(NamedTuple):
    """How close held-out predictions are to the labels.

    Examples
    --------
    >>> from conformal_gp.evaluation import Accuracy
    >>> Accuracy(rmse=2.8, r2=0.87).r2
    0.87
    """

    rmse: float
    """Root of the mean squared error, in units of the label."""
    r2: float
    """Share of the labels' variance that predictions explain; NaN for labels that are all equal."""


def accuracy(held_out: HeldOut) -> dict[str, Accuracy]:
    """Root mean squared error and R² of the predictions of each method.

    Parameters
    ----------
    held_out : HeldOut
        Cross-validated predictions.

    Returns
    -------
    found : dict of str to Accuracy
        For each method.

    Examples
    --------
    >>> import numpy as np
    >>> from conformal_gp.evaluation import HeldOut, accuracy
    >>> accuracy(HeldOut(np.array([0.0, 2.0]), [], {"a": np.array([0.5, 1.5])}, {}))
    {'a': Accuracy(rmse=0.5, r2=0.75)}
    """
    spread = float(np.var(held_out.y))
    found = {}
    for name, prediction in held_out.prediction.items():
        mse = float(np.mean((held_out.y - prediction) ** 2))
        found[name] = Accuracy(mse**0.5, 1.0 - mse / spread if spread > 0.0 else float("nan"))
    return found


def importance(held_out: HeldOut) -> dict[str, float]:
    """How much the error of held-out predictions grows when an input is shuffled among the rows.

    Parameters
    ----------
    held_out : HeldOut
        With ``shuffled`` predictions: made with ``groups``.

    Returns
    -------
    growth : dict of str to float
        Growth of the root mean squared error of the first method for each group, the greatest first: 0.5 is 50% more.
        It is about 0, and may be below, where the model does not use an input.

    Examples
    --------
    >>> import numpy as np
    >>> from conformal_gp.evaluation import HeldOut, importance
    >>> y, prediction = np.array([0.0, 2.0]), {"a": np.array([0.5, 1.5])}
    >>> importance(HeldOut(y, [], prediction, {}, shuffled={"x": np.array([1.0, 1.0]), "z": np.array([0.5, 1.5])}))
    {'x': 1.0, 'z': 0.0}
    """
    if not held_out.shuffled:
        return {}
    error = _error(held_out.y, next(iter(held_out.prediction.values())))
    grown = {name: _error(held_out.y, prediction) for name, prediction in held_out.shuffled.items()}
    growth = {name: found / error - 1.0 if error > 0.0 else float("inf") for name, found in grown.items()}
    return dict(sorted(growth.items(), key=lambda item: -item[1]))


def _error(y: Array, prediction: Array) -> float:
    return float(np.mean((y - prediction) ** 2)) ** 0.5
