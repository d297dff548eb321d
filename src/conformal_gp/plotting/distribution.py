"""The predictive distribution of one row."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from conformal_gp.conformal.levels import read_levels
from conformal_gp.evaluation import percent
from conformal_gp.plotting.frame import COLOURS, LINES, Display, accent, ink, limits_of, tint, vector
from conformal_gp.steps import PredictiveDistribution


class DistributionDisplay(Display):
    """The distribution function of a row's label, and some of its quantiles.

    With n steps it is known up to 1 / (n + 1): the shade shows the values that tie breaks may give, the line those in
    the middle, as ``cdf`` gives them.

    Parameters
    ----------
    steps : array-like of shape (n_steps,)
        Labels at which the distribution function rises, sorted: a row of ``predict_distribution(X).steps``.
    quantiles : float or sequence of floats, default=(0.05, 0.5, 0.95)
        Quantiles to mark; ``values`` has them.
    y : float or None, default=None
        The row's true label, if known.
    target_name : str or None, default=None
        What the label is called.

    Examples
    --------
    >>> from conformal_gp.plotting import DistributionDisplay
    >>> DistributionDisplay([1.0, 2.0, 4.0], quantiles=0.5).values
    array([2.])
    """

    def __init__(
        self,
        steps: ArrayLike,
        *,
        quantiles: float | ArrayLike = (0.05, 0.5, 0.95),
        y: float | None = None,
        target_name: str | None = None,
    ):
        self.steps = vector("steps", steps, np.size(steps))
        self.quantiles = [float(quantile) for quantile in read_levels(quantiles, "quantiles")[0]]
        self.values = PredictiveDistribution(self.steps[None]).quantile(self.quantiles)[0]
        self.y = None if y is None else float(vector("y", np.ravel(y), 1)[0])
        self.target_name = target_name

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: float | None = None, **described: Any) -> Self:
        """Predict the distribution of one row and draw it.

        Parameters
        ----------
        estimator, X, y
            A fitted regressor with ``predict_distribution``, a row of inputs, (1, n_features), and its label, if known.
        **described
            ``quantiles`` and ``target_name``, as in the class, and ``ax``, where to draw.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> from conformal_gp.plotting import DistributionDisplay
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
        >>> DistributionDisplay.from_estimator(model, [[1.5]], y=0.4, quantiles=0.5).steps.size
        3
        """
        steps = estimator.predict_distribution(X).steps
        if len(steps) != 1:
            raise ValueError(f"X must be one row, got {len(steps)}.")
        return cls.from_predictions(steps[0], y=y, **described)

    def _draw(self, ax: Any) -> dict[str, str]:
        edges = limits_of(self.steps, self.y, margin=0.08)
        finite = self.steps[np.isfinite(self.steps)]
        below = np.isneginf(self.steps).sum() + np.arange(finite.size + 1.0)  # steps to the left
        places, count = np.concatenate([edges[:1], finite, edges[1:]]), self.steps.size + 1.0
        ax.stairs((below + 1.0) / count, places, baseline=below / count, fill=True, color=tint(accent(), 0.35))
        self.line_ = ax.stairs((below + 0.5) / count, places, color=accent(), linewidth=1.4, baseline=None)
        for k, (quantile, value) in enumerate(zip(self.quantiles, self.values, strict=True)):
            style: dict[str, Any] = {"color": COLOURS[1 + k % 5], "linestyle": LINES[k % 4], "linewidth": 1.6}
            written = f"{value:.4g}".replace("inf", "∞ (no finite end)").replace("-", "\N{MINUS SIGN}")
            x = [edges[0], value, value] if np.isfinite(value) else edges
            height = [quantile, quantile, 0.0][: len(x)]
            ax.plot(x, height, label=f"{percent(quantile)} quantile: {written}", **style)
        if self.y is not None:
            ax.axvline(self.y, color=ink(), linewidth=1, linestyle=":", label=f"true label: {self.y:.4g}")
        ax.set(xlim=edges, ylim=(0.0, 1.02))
        return {"xlabel": self.target_name or "label", "ylabel": "probability of at most this"}
