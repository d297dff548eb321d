r"""Whether rows that come in an order are alike: a capital that grows where they are not.

In the *online protocol* the smoothed p-value of each row is among the calibration rows before it, which it then joins.
Of exchangeable rows such p-values are independent and uniform. Bets on them whose mean is 1 under a uniform
distribution, such as :math:`\epsilon p^{\epsilon - 1}`, then make of a capital of 1 a martingale M, and by Ville's
inequality

.. math:: P(\max_n M_n \ge c) \le 1 / c :

a capital of 100 is evidence of 100 to 1 against exchangeability, whenever one looks.

Bets are those of Vovk's Simple Jumper (Vovk, Gammerman and Shafer, *Algorithmic Learning in a Random World*, 2022,
algorithm 8.1) with six accounts: three powers :math:`\epsilon`, which gain from small p-values, labels that do not fit;
:math:`1 \pm (p - 1/2)`, the latter for labels that fit too well, as when noise falls; and no bet. Before each row a
hundredth of the capital is divided anew, so that some is at hand when rows change late. Powers below 1
alone do not see labels that fit too well, and linear bets alone gain at most a half from a row, however small its
p-value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from conformal_gp.answers import TestRows
from conformal_gp.arrays import Array, Indices
from conformal_gp.plotting.frame import Display, accent, ink
from conformal_gp.regressor import ConformalGPRegressor

__all__ = ["Drift", "martingale", "online_p_values", "watch"]

POWERS = (0.25, 0.5, 0.75, 1.0)
SLOPES = (-1.0, 1.0)
# Share of the capital that is divided anew before each row, and a capital that is an alarm.
JUMPS, ALARM = 0.01, 100
# Means of -log p that rows may have after a change; it is 1 before.
CHANGED = (0.1, 10.0)


def martingale(p_values: ArrayLike) -> Array:
    """Capital after each row, as logarithms to base 10; before the first row it is 1.

    >>> martingale([0.6, 0.3, 0.01, 0.02]).round(2)
    array([-0.09, -0.11,  0.22,  0.65])
    """
    p = _positive(p_values)
    bets = np.stack([e * p ** (e - 1.0) for e in POWERS] + [1.0 + slope * (p - 0.5) for slope in SLOPES], axis=1)
    held, growth = np.full(bets.shape[1], 1.0 / bets.shape[1]), np.empty(p.size)  # accounts, as shares of the capital
    for i, bet in enumerate(bets):
        held = ((1.0 - JUMPS) * held + JUMPS / held.size) * bet
        growth[i] = held.sum()
        held /= growth[i]
    return np.cumsum(np.log10(growth))


def _positive(p_values: ArrayLike) -> Array:
    """Checked p-values, above 0."""
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or p.size == 0 or not ((p >= 0.0) & (p <= 1.0)).all():
        raise ValueError(f"p_values must be a list of numbers from 0 to 1, got {p_values!r}.")
    return np.maximum(p, np.finfo(float).tiny)


def online_p_values(
    model: ConformalGPRegressor,
    X: Any,
    y: ArrayLike,
    y_variance: ArrayLike | None = None,
    *,
    groups: Any = None,
    random_state: int | np.random.RandomState | None = None,
) -> Array:
    """Smoothed p-value of each row among the calibration rows before it, which it then joins; the model stays as it is.

    Each row costs a ``partial_fit``: :math:`O(l^2)` with l rows, and with a low-rank process a pass over all of them.
    They are independent and uniform if the calibration rows of the model and these are exchangeable and its coverage is
    exact. Rows are given in their order as in ``partial_fit``; with groups each is ranked among those of its group.
    ``random_state`` is the seed of the tie breaks.

    Examples
    --------
    >>> from conformal_gp import ConformalGPRegressor
    >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
    >>> model = model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    >>> online_p_values(model, [[0.5], [1.5]], [0.6, 9.0], random_state=0).round(2)
    array([0.89, 0.14])
    """
    check_is_fitted(model)
    rows, labels, all_groups = model._later_rows(X, y, y_variance, groups)
    ties = check_random_state(random_state).uniform(size=labels.size)
    first = model._source.n_rows
    p = np.empty(labels.size)
    for i in range(labels.size):
        own = model._answers.of_recorded
        row = slice(i, i + 1)
        if all_groups is not None:
            own = own.among(own.calibration[all_groups.codes[own.calibration] == all_groups.codes[first + i]])
        p[row] = TestRows(rows.take(row), own).shares(labels[row], ties[row])
        model = model._with_rows(rows.take(row), labels[row], None)
    return p


def watch(model: ConformalGPRegressor, X: Any, y: ArrayLike, **options: Any) -> Drift:
    """Evidence that rows, in their order, are not like those before them; parameters are those of `online_p_values`.

    Examples
    --------
    >>> from conformal_gp import ConformalGPRegressor
    >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    >>> print(watch(model, [[0.5], [1.5]], [0.6, 0.7], random_state=0))
    No evidence of drift by the martingale test: it reached 1.0 to 1; 100 to 1, which ...
    """
    return Drift(online_p_values(model, X, y, **options))


class Drift(Display):
    r"""A martingale of rows in their order, what it says, and a picture of it.

    Parameters
    ----------
    p_values : array-like of shape (n,)
        Smoothed p-values of the online protocol.
    numbers : array-like of int of shape (n,), or None, default=None
        What the rows are called; None counts from 1.

    Attributes
    ----------
    path : ndarray of shape (n,)
        Logarithms to base 10 of the martingale after each row.
    maximum : float
        The largest of them, or 0. Exchangeable rows reach it with probability at most ``10**-maximum``.
    alarm : bool
        Whether the maximum is at least 2, evidence of 100 to 1.
    start : int
        Number of the row where rows changed, if they did: the most likely one, if p-values have a density
        :math:`\epsilon p^{\epsilon - 1}` from there to the alarm.

    Examples
    --------
    >>> drift = Drift([0.5, 0.9, 0.3] + 4 * [0.002])
    >>> drift.alarm, drift.start, round(drift.maximum, 1)
    (True, 4, 3.9)
    """

    def __init__(self, p_values: ArrayLike, numbers: Indices | None = None):
        self.path = martingale(p_values)
        self.numbers = np.arange(1, self.path.size + 1) if numbers is None else np.asarray(numbers)
        self.maximum = max(float(self.path.max()), 0.0)
        self.alarm = bool(self.maximum >= np.log10(ALARM))
        # log likelihood of the p-values from each row to the alarm, under the power that fits them best
        end = int(np.argmax(self.path >= min(self.path.max(), np.log10(ALARM))))
        n, total = np.arange(end + 1, 0, -1), np.cumsum(-np.log(_positive(p_values))[end::-1])[::-1]
        power = 1.0 / np.clip(total / n, *CHANGED)
        self.start = int(self.numbers[np.argmax(n * np.log(power) - (power - 1.0) * total)])

    def __str__(self) -> str:
        if self.alarm:
            return (
                f"Rows from about number {self.start} on are not like those before: evidence of 10^{self.maximum:.1f} "
                f"to 1 against exchangeability, which the guarantee needs."
            )
        return (
            f"No evidence of drift by the martingale test: it reached {10**self.maximum:.1f} to 1; {ALARM} to 1, which "
            f"exchangeable rows reach with probability {1 / ALARM:.0%} at most, is an alarm. Slow or small changes may "
            "stay below it."
        )

    def _draw(self, ax: Any) -> dict[str, str]:
        (self.line_,) = ax.plot(self.numbers, self.path, color=accent(), label="capital of the bets")
        label = f"alarm: {1 / ALARM:.0%} of exchangeable sequences get here, at most"
        ax.axhline(np.log10(ALARM), color=ink(), linewidth=0.8, linestyle=":", label=label)
        ax.yaxis.set_major_formatter(lambda value, _: f"$10^{{{value:g}}}$")
        return {"xlabel": "row", "ylabel": "evidence against exchangeability, to 1"}
