"""p-values of the candidate labels of one test row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from conformal_gp.conformal.levels import read_levels
from conformal_gp.evaluation import percent
from conformal_gp.plotting.arguments import like, one_label, one_row, vector
from conformal_gp.plotting.display import Display
from conformal_gp.plotting.infinite import NOTE, limits_of
from conformal_gp.plotting.style import BLUE, COLOURS, LINES, axes_or_new, finish, ink, nth, tint
from conformal_gp.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class PValueDisplay(Display):
    r"""The p-value of each candidate label of a test row, and the prediction regions.

    The region of level :math:`1 - \delta` consists of the labels whose p-value is greater than :math:`\delta` (Equation
    7 of the paper): where the curve lies above height :math:`\delta`. One curve gives the regions of all levels.

    Made by :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    candidates : ndarray of shape (n_points,)
        Labels, ascending.
    p_values : ndarray of shape (n_points,)
        Their p-values.
    regions : list of ndarrays of shape (n_pieces, 2)
        The exact region of each level.
    confidence_level : float or sequence of floats
        Level or levels, kept as the list ``levels``.
    y : float or None, default=None
        The row's true label, if known.
    target_name : str or None
        What the label is called.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    line_ : matplotlib Line2D
        The p-values.
    bars_ : list of matplotlib LineCollection
        The region of each level, at height 1 - level.

    Examples
    --------
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.datasets import load_auto_mpg
    >>> from conformal_gp.plotting import PValueDisplay
    >>> X, y = load_auto_mpg(return_X_y=True)
    >>> model = ConformalGPRegressor(tuning="holdout", length_scales="one", random_state=0).fit(X[:100], y[:100])
    >>> display = PValueDisplay.from_estimator(model, X[100], y[100], confidence_level=[0.8, 0.9])
    >>> [region.shape for region in display.regions]
    [(1, 2), (1, 2)]
    """

    def __init__(
        self,
        candidates: ArrayLike,
        p_values: ArrayLike,
        regions: Sequence[ArrayLike],
        *,
        confidence_level: Any,
        y: float | None = None,
        target_name: str | None = None,
    ):
        self.candidates = np.ravel(np.asarray(candidates, dtype=float))
        self.p_values = vector("p_values", p_values, self.candidates.size)
        self.levels = [float(level) for level in read_levels(confidence_level)[0]]
        self.regions = [np.reshape(np.asarray(region, dtype=float), (-1, 2)) for region in regions]
        if len(self.regions) != len(self.levels):
            raise ValueError(f"regions must be one for each of {len(self.levels)} levels, got {len(self.regions)}.")
        self.y = one_label(y)
        self.target_name = target_name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        x: Any,
        y: float | None = None,
        *,
        confidence_level: float | ArrayLike = (0.5, 0.8, 0.95),
        candidates: ArrayLike | None = None,
        n_points: int = 500,
        target_name: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Compute p-values over candidate labels of one row and draw them.

        Parameters
        ----------
        estimator : fitted ConformalGPRegressor
            The model.
        x : array-like of shape (n_features,) or (1, n_features), or data frame of one row
            The row.
        y : float or None, default=None
            Its true label, to be marked.
        confidence_level : float or sequence of floats, default=(0.5, 0.8, 0.95)
            Levels whose regions are marked.
        candidates : array-like of shape (n_points,) or None, default=None
            Candidate labels. None takes the widest finite region with a margin.
        n_points : int, default=500
            Number of candidate labels, where ``candidates`` is None.
        target_name : str or None, default=None
            What to call the label.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : PValueDisplay
            The display.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> from conformal_gp.plotting import PValueDisplay
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
        >>> display = PValueDisplay.from_estimator(model, [1.5], candidates=[-9.0, 0.5, 9.0], confidence_level=0.5)
        >>> display.p_values
        array([0.25, 1.  , 0.25])
        """
        row = one_row(x)
        levels = read_levels(confidence_level)[0]
        regions = [estimator.predict_set(row, level)[0] for level in levels]
        if candidates is None:
            mean, std = estimator.predict(row, return_std=True)
            around = [mean - std, mean + std] if not np.isfinite(regions[0]).all() else []
            shown = limits_of(*regions, *around, None if y is None else [y], margin=0.15)
            candidates = np.linspace(*shown, n_points)
        labels = np.asarray(candidates, dtype=float)
        rows = like(row, np.repeat(np.asarray(row, dtype=float), labels.size, axis=0))
        return cls.from_predictions(
            labels,
            estimator.predict_p(rows, labels),
            regions,
            confidence_level=levels,
            y=y,
            target_name=target_name,
            ax=ax,
        )

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into ``ax``, or into a new figure.

        Examples
        --------
        >>> from conformal_gp.plotting import PValueDisplay
        >>> display = PValueDisplay([0, 1, 2], [0.25, 1.0, 0.25], [[[0.5, 1.5]]], confidence_level=0.5, y=1.2)
        >>> display.plot().ax_.get_legend_handles_labels()[1]
        ['50%: 0.5 to 1.5', 'true label: 1.2']
        """
        ax = axes_or_new(ax)
        edges = float(self.candidates[0]), float(self.candidates[-1])
        ax.fill_between(self.candidates, self.p_values, step="mid", color=tint(BLUE, 0.18), linewidth=0)
        (self.line_,) = ax.plot(self.candidates, self.p_values, drawstyle="steps-mid", color=BLUE, linewidth=1.2)
        self.bars_ = []
        note: str | None = NOTE
        for number, (level, region) in enumerate(zip(self.levels, self.regions, strict=True)):
            height = 1.0 - level
            bars = ax.hlines(
                np.full(len(region), height),
                *np.clip(region, *edges).T,
                color=nth(COLOURS[1:], number),
                linestyle=nth(LINES, number),
                linewidth=3,
                label=f"{percent(level)}: {_written(region)}",
            )
            self.bars_.append(bars)
            for end, edge, marker in ((region[:1, 0], edges[0], "<"), (region[-1:, 1], edges[1], ">")):
                if np.isinf(end).any():
                    ax.plot(
                        edge, height, marker, color=ink(), markersize=6, clip_on=False, linestyle="none", label=note
                    )
                    note = None
        if self.y is not None:
            ax.axvline(self.y, color=ink(), linewidth=1, linestyle=":", label=f"true label: {self.y:.4g}")
        ax.set(xlabel=self.target_name or "label", ylabel="p-value", xlim=edges, ylim=(0.0, 1.05))
        finish(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _written(region: Array) -> str:
    text = " and ".join(f"{low:.4g} to {high:.4g}" for low, high in region) or "none"
    return text.replace("inf", "∞").replace("-", "\N{MINUS SIGN}")
