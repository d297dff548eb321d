"""Whether predictive distributions are calibrated: where labels lie in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from conformal_gp.evaluation import chance_range, percent
from conformal_gp.metrics import pit_histogram
from conformal_gp.plotting.arguments import named
from conformal_gp.plotting.display import Display
from conformal_gp.plotting.style import COLOURS, HATCHES, axes_or_new, finish, grey, ink, nth, tint

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class PITDisplay(Display):
    """Histogram of the values that distribution functions have at true labels (probability integral transform).

    If distributions are right, values are uniform: each bar is as high as the others, up to chance. Bars that are high
    at both ends tell of distributions that are too narrow, high in the middle too wide, high at one end shifted.

    Made by :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    values : array-like of shape (n_samples,), or mapping of str to such
        Values of ``predict_cdf(X, y, smoothing=True)``, of one method or of several by name.
    n_bins : int, default=10
        Number of bars.
    band : float, default=0.95
        Probability of the band that shows what chance allows each bar.

    Attributes
    ----------
    shares : dict of str to ndarray of shape (n_bins,)
        Share of the values in each bin, for each method.
    band_ : ndarray of shape (2,)
        Shares between which chance keeps each bar (:func:`conformal_gp.evaluation.chance_range`).
    bars_ : dict of str to matplotlib BarContainer
        The bars of each method.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    Examples
    --------
    >>> from conformal_gp.plotting import PITDisplay
    >>> display = PITDisplay.from_predictions([0.1, 0.3, 0.8, 1.0], n_bins=2)
    >>> display.shares["conformal"]
    array([0.5, 0.5])
    """

    def __init__(self, values: ArrayLike | Mapping[str, ArrayLike], *, n_bins: int = 10, band: float = 0.95):
        self.values = {
            name: np.asarray(given, dtype=float) for name, given in named(values, default="conformal").items()
        }
        sizes = {given.size for given in self.values.values()}
        if len(sizes) != 1:
            raise ValueError(f"values must be as many for each method, got {sorted(sizes)}.")
        histograms = {name: pit_histogram(given, n_bins) for name, given in self.values.items()}
        self.shares = {name: shares for name, (shares, _) in histograms.items()}
        self.edges = next(iter(histograms.values()))[1]
        self.band = band
        self.band_ = chance_range(1.0 / n_bins, sizes.pop(), band) if n_bins > 1 else np.ones(2)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        random_state: int | np.random.RandomState | None = None,
        ax: Axes | None = None,
        **described: Any,
    ) -> Self:
        """Find where the labels of test rows lie in their predictive distributions, and draw.

        Parameters
        ----------
        estimator : fitted regressor with ``predict_cdf``, or mapping of str to such
            The model, or several by name.
        X, y, ax
            As in :meth:`CoverageDisplay.from_estimator`.
        random_state : int, RandomState instance or None, default=None
            Seed of the tie breaks.
        **described
            ``n_bins`` and ``band``, as in the class.

        Returns
        -------
        display : PITDisplay
            The display.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> from conformal_gp.plotting import PITDisplay
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
        >>> display = PITDisplay.from_estimator(model, [[0.5], [1.5]], [-9.0, 9.0], n_bins=2, random_state=0)
        >>> display.shares["conformal"]
        array([0.5, 0.5])
        """
        values = {
            name: model.predict_cdf(X, y, smoothing=True, random_state=random_state)
            for name, model in named(estimator, default="conformal").items()
        }
        return cls.from_predictions(values, ax=ax, **described)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into ``ax``, or into a new figure.

        Examples
        --------
        >>> from conformal_gp.plotting import PITDisplay
        >>> len(PITDisplay([0.1, 0.3, 0.8, 1.0], n_bins=4).plot().bars_["conformal"])
        4
        """
        ax = axes_or_new(ax)
        n_bins, n_methods = self.edges.size - 1, len(self.shares)
        ax.axhspan(*self.band_, color=grey(0.12), zorder=0, label=f"chance: {percent(self.band)} of bars")
        ax.axhline(1.0 / n_bins, color=ink(), linewidth=1, linestyle="--", label="calibrated")
        width = 1.0 / n_bins / n_methods
        self.bars_ = {}
        for number, (name, shares) in enumerate(self.shares.items()):
            self.bars_[name] = ax.bar(
                self.edges[:-1] + width * number,
                shares,
                width=width,
                align="edge",
                facecolor=(*tint(nth(COLOURS, number), 0.45), 0.75),
                edgecolor=ink(),
                linewidth=0.8,
                hatch=nth(HATCHES, number),
                label=name if n_methods > 1 else None,
            )
        ax.set(xlabel="value of the distribution function at the label", ylabel="share of rows", xlim=(0.0, 1.0))
        ax.set_ylim(bottom=0.0)
        finish(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
