"""Which inputs matter: how much worse predictions get when an input is shuffled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from conformal_gp.evaluation.cross_validation import added_squares, growth_of_error
from conformal_gp.evaluation.parts import columns_of
from conformal_gp.plotting.frame import Display, accent, ink, tint


class ImportanceDisplay(Display):
    """A bar for each input: growth of the error of predictions when its values are shuffled among the rows.

    An input that the model does not use has no bar. Inputs that tell the same can stand in for each other, and each of
    them then seems to matter less than both do together.

    Parameters
    ----------
    growth : mapping of str to float
        Growth of the root mean squared error for each input, 0.5 is 50% more: ``importance`` of
        :class:`conformal_gp.evaluation.HeldOut`.
    max_inputs : int, default=20
        How many are drawn, of those with the greatest growth.
    target_name : str or None, default=None
        What the label is called.

    Examples
    --------
    >>> from conformal_gp.plotting import ImportanceDisplay
    >>> display = ImportanceDisplay.from_predictions({"weight": 1.03, "age": 0.0, "year": 0.78}, target_name="price")
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['weight', 'year', 'age']
    """

    def __init__(self, growth: Mapping[str, float], *, max_inputs: int = 20, target_name: str | None = None):
        if not growth or max_inputs < 1:
            raise ValueError(f"growth must hold an input and max_inputs be at least 1, got {growth} and {max_inputs}.")
        self.growth = dict(sorted(growth.items(), key=lambda item: -item[1])[:max_inputs])
        self.n_left_out = len(growth) - len(self.growth)
        self.target_name = target_name

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, random_state: int | None = 0, **described: Any
    ) -> Self:
        """Shuffle each column of test rows in turn, by scikit-learn's ``permutation_importance``, and draw.

        Parameters
        ----------
        estimator, X, y, random_state
            A fitted regressor, rows that it has not seen, and the seed of the order.
        **described
            ``max_inputs`` and ``target_name``, as in the class, and ``ax``, where to draw.

        Examples
        --------
        >>> import numpy as np
        >>> from conformal_gp import ConformalGPRegressor
        >>> from conformal_gp.plotting import ImportanceDisplay
        >>> X = np.random.default_rng(0).uniform(size=(60, 2))
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit(X[:40], X[:40, 0])
        >>> list(ImportanceDisplay.from_estimator(model, X[40:], X[40:, 0]).growth)
        ['x0', 'x1']
        """
        labels = np.asarray(y, dtype=float)
        error = float(np.mean((labels - estimator.predict(X)) ** 2))
        added = added_squares(estimator, X, labels, random_state)
        return cls.from_predictions(growth_of_error(columns_of(X), error, added), **described)

    def _size(self) -> tuple[float, float]:
        return 6.4, max(1.2 + 0.32 * len(self.growth), 2.4)

    def _draw(self, ax: Any) -> dict[str, str]:
        values, places = np.array(list(self.growth.values())), np.arange(len(self.growth))
        longest = max(float(values[np.isfinite(values)].max(initial=0.0)), 0.01)
        lengths = np.where(np.isfinite(values), np.clip(values, 0.0, None), 1.1 * longest)
        style: dict[str, Any] = {"facecolor": tint(accent(), 0.55), "edgecolor": ink(), "linewidth": 0.8}
        self.bars_ = ax.barh(places, lengths, height=0.7, **style)
        texts = [f"{value:+.0%}".replace("-", "\N{MINUS SIGN}") if np.isfinite(value) else "∞" for value in values]
        ax.bar_label(self.bars_, texts, padding=3, fontsize="small", color=ink())
        ax.set_yticks(places, list(self.growth))
        ax.invert_yaxis()
        ax.set_xlim(0.0, 1.15 * max(lengths.max(), longest))
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        of = "" if self.target_name is None else f" of {self.target_name}"
        more = f"\n({self.n_left_out} more inputs below these)" if self.n_left_out else ""
        return {"xlabel": f"growth of the prediction error{of} when the input is shuffled{more}"}
