"""Base class of displays that draw the values they are given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Display(ABC):
    """A display whose parameters are what it draws."""

    @classmethod
    def from_predictions(cls, *predictions: Any, ax: Axes | None = None, **described: Any) -> Self:
        """Draw given predictions.

        Parameters
        ----------
        *predictions
            The first parameters of the class, in its order.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.
        **described
            The other parameters of the class, by name.

        Returns
        -------
        display : object
            The display.

        Examples
        --------
        >>> from conformal_gp.plotting import FanDisplay
        >>> values = [[1.0, 2.0], [1.0, 4.0]]
        >>> display = FanDisplay.from_predictions([0.0, 1.0], values, quantiles=[0.1, 0.9], target_name="weight")
        >>> display.ax_.get_ylabel()
        'weight'
        """
        return cls(*predictions, **described).plot(ax)

    @abstractmethod
    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into ``ax``, or into a new figure."""
