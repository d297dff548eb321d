"""The predictive distribution of one test row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from conformal_gp.conformal.levels import read_levels
from conformal_gp.evaluation import percent
from conformal_gp.plotting.arguments import one_label, one_row, vector
from conformal_gp.plotting.display import Display
from conformal_gp.plotting.infinite import NOTE, limits_of
from conformal_gp.plotting.style import BLUE, COLOURS, LINES, axes_or_new, finish, ink, nth, tint
from conformal_gp.steps import PredictiveDistribution

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class DistributionDisplay(Display):
    """The distribution function of a test row's label, and some of its quantiles.

    With n steps it is known up to 1 / (n + 1): the shade shows the values that tie breaks may give, the line those in
    the middle, as ``cdf`` gives them.

    Made by :meth:`from_estimator`, :meth:`from_predictions` or
    :meth:`PredictiveDistribution.plot <conformal_gp.steps.PredictiveDistribution.plot>`.

    Parameters
    ----------
    steps : ndarray of shape (n_steps,)
        Labels at which the distribution function rises, by equal steps, sorted.
    quantiles : float or sequence of floats, default=(0.05, 0.5, 0.95)
        Quantiles to mark.
    y : float or None, default=None
        The row's true label, if known.
    target_name : str or None, default=None
        What the label is called.

    Attributes
    ----------
    values : ndarray of shape (n_quantiles,)
        The marked quantiles.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    line_ : matplotlib StepPatch
        The distribution function.

    Examples
    --------
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.plotting import DistributionDisplay
    >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    >>> display = DistributionDisplay.from_estimator(model, [1.5], y=0.4, quantiles=0.5)
    >>> display.steps.size
    3
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
        self.y = one_label(y)
        self.target_name = target_name

    @classmethod
    def from_estimator(
        cls, estimator: Any, x: Any, y: float | None = None, *, ax: Axes | None = None, **described: Any
    ) -> Self:
        """Predict the distribution of one row and draw it.

        Parameters
        ----------
        estimator : fitted regressor with ``predict_distribution``
            The model.
        x, y, ax
            As in :meth:`PValueDisplay.from_estimator`.
        **described
            ``quantiles`` and ``target_name``, as in the class.

        Returns
        -------
        display : DistributionDisplay
            The display.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> from conformal_gp.plotting import DistributionDisplay
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
        >>> display = DistributionDisplay.from_estimator(model, [1.5], y=0.4, target_name="weight")
        >>> display.ax_.get_xlabel()
        'weight'
        """
        (steps,) = estimator.predict_distribution(one_row(x)).steps
        return cls.from_predictions(steps, y=y, ax=ax, **described)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into ``ax``, or into a new figure.

        Examples
        --------
        >>> from conformal_gp.plotting import DistributionDisplay
        >>> DistributionDisplay([1.0, 2.0, 4.0], quantiles=0.5).plot().ax_.get_legend_handles_labels()[1]
        ['50% quantile: 2']
        """
        ax = axes_or_new(ax)
        edges = limits_of(self.steps, None if self.y is None else [self.y], margin=0.08)
        finite = self.steps[np.isfinite(self.steps)]
        below = np.isneginf(self.steps).sum() + np.arange(finite.size + 1.0)  # steps to the left
        places = np.concatenate([edges[:1], finite, edges[1:]])
        count = self.steps.size + 1.0
        ax.stairs((below + 1.0) / count, places, baseline=below / count, fill=True, color=tint(BLUE, 0.35))
        self.line_ = ax.stairs((below + 0.5) / count, places, color=BLUE, linewidth=1.4, baseline=None)
        for number, (quantile, value) in enumerate(zip(self.quantiles, self.values, strict=True)):
            style = {"color": nth(COLOURS[1:], number), "linestyle": nth(LINES, number), "linewidth": 1.6}
            if np.isfinite(value):
                ax.plot([edges[0], value, value], [quantile, quantile, 0.0], label=_written(quantile, value), **style)
            else:
                ax.plot(edges, [quantile, quantile], label=f"{_written(quantile, value)} ({NOTE})", **style)
        if self.y is not None:
            ax.axvline(self.y, color=ink(), linewidth=1, linestyle=":", label=f"true label: {self.y:.4g}")
        ax.set(xlabel=self.target_name or "label", ylabel="probability of at most this", xlim=edges, ylim=(0.0, 1.02))
        finish(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _written(quantile: float, value: float) -> str:
    text = f"{percent(quantile)} quantile: {value:.4g}"
    return text.replace("inf", "∞").replace("-", "\N{MINUS SIGN}")
