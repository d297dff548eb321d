r"""Tests of exchangeability for rows in an order, such as that of time.

:func:`watch` is a conformal test martingale. In the *online protocol* the smoothed p-value of each row is among the
calibration rows before it, which it then joins. Such p-values of exchangeable rows are independent and uniform. Bets on
them whose mean is 1 under a uniform distribution, such as :math:`\epsilon p^{\epsilon - 1}`, turn a capital of 1 into
a martingale M, and by Ville's inequality

.. math:: P(\max_n M_n \ge c) \le 1 / c :

a capital of 100 is evidence of 100 to 1 against exchangeability, whenever one looks.

Bets are those of Vovk's Simple Jumper (Vovk, Gammerman and Shafer, *Algorithmic Learning in a Random World*, 2022,
algorithm 8.1) with six accounts: three powers :math:`\epsilon`, which gain from small p-values, of targets that do not
fit; :math:`1 \pm (p - 1/2)`, the latter for targets that fit too well, as when noise falls; and no bet. A hundredth of
the capital is divided again before each row, so that some is left when rows change late.

:func:`shift_test` compares errors of held-out predictions with the order of their rows. It has power against a small
shift of the mean and a slow trend, which p-values, blind to signs and fed row by row, find late or never.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted

from conformal_gp.arrays import Array, Indices
from conformal_gp.calibration import TestRows
from conformal_gp.plotting.frame import Display, accent, ink
from conformal_gp.regressor import ConformalGPRegressor

__all__ = ["Drift", "Shift", "martingale", "online_p_values", "shift_test", "watch"]

# Share of the capital that is divided again before each row, and a capital that is an alarm.
JUMPS = 0.01
ALARM = 100
# Random orders that errors are compared in.
PERMUTATIONS = 999
# A half-way shift of so many standard deviations over the root of the number of rows is found in four of five cases.
FOUND_SHIFT = 8.5
# Tests of a table fit the model to a third of the rows, at least so many, and take at most so many rows.
FIRST_ROWS = 40
ORDERED_ROWS = 1000


def martingale(p_values: ArrayLike) -> Array:
    """Capital after each row, as logarithms to base 10; before the first row it is 1.

    >>> martingale([0.6, 0.3, 0.01, 0.02]).round(2)
    array([-0.09, -0.11,  0.22,  0.65])
    """
    p = _positive(p_values)
    # bets e p^(e - 1), and lines of mean 1
    powers = [e * p ** (e - 1.0) for e in (0.25, 0.5, 0.75, 1.0)]
    bets = np.stack([*powers, 1.0 - (p - 0.5), 1.0 + (p - 0.5)], axis=1)
    accounts = np.full(bets.shape[1], 1.0 / bets.shape[1])  # as shares of the capital
    growth = np.empty(p.size)
    for i, bet in enumerate(bets):
        accounts = ((1.0 - JUMPS) * accounts + JUMPS / accounts.size) * bet
        growth[i] = accounts.sum()
        accounts /= growth[i]
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

    Each row costs a ``partial_fit``: :math:`O(l^2)` with l rows, and with a low-rank GP a pass over all of them. They
    are independent and uniform if the calibration rows of the model and these rows are exchangeable and its coverage is
    valid. Rows are given in their order as in ``partial_fit``; with groups each is calibrated on its group.
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
    rows, targets, all_groups = model._later_rows(X, y, y_variance, groups)
    ties = check_random_state(random_state).uniform(size=targets.size)
    first = model._source.n_rows
    p = np.empty(targets.size)
    for i in range(targets.size):
        answers = model._answers.of_recorded
        row = slice(i, i + 1)
        if all_groups is not None:
            same = all_groups.codes[answers.calibration] == all_groups.codes[first + i]
            answers = answers.among(answers.calibration[same])
        p[row] = TestRows.of(rows.take(row), answers).shares(targets[row], ties[row])
        model = model._with_rows(rows.take(row), targets[row], None)
    return p


def watch(model: ConformalGPRegressor, X: Any, y: ArrayLike, **options: Any) -> Drift:
    """Evidence that rows, in their order, differ from those before them; parameters are those of `online_p_values`.

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
        self.numbers = _row_numbers(numbers, self.path.size)
        self.maximum = max(float(self.path.max()), 0.0)
        self.alarm = bool(self.maximum >= np.log10(ALARM))
        # log likelihood of the p-values from each row to the alarm, under the power that fits them best
        end = int(np.argmax(self.path >= min(self.path.max(), np.log10(ALARM))))
        n = np.arange(end + 1, 0, -1)
        total = np.cumsum(-np.log(_positive(p_values))[end::-1])[::-1]
        power = 1.0 / np.clip(total / n, 0.1, 10.0)  # the mean of -log p is 1 before a change
        self.start = self.numbers[np.argmax(n * np.log(power) - (power - 1.0) * total)].item()

    def __str__(self) -> str:
        if self.alarm:
            return (
                f"From about row {self.start} on, rows differ from those before: by the martingale test, evidence "
                f"against exchangeability, which the guarantee assumes, is 10^{self.maximum:.1f} to 1."
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


class Shift(NamedTuple):
    """Result of :func:`shift_test`.

    Examples
    --------
    >>> from conformal_gp.drift import Shift
    >>> print(Shift(0.001, 161, 0.1, 3.9, 240))
    From about row 161 on, errors of predictions average 3.9, before 0.1 (p = 0.001): rows are not exchangeable.
    """

    p_value: float
    start: int | str
    """Number of the row where the mean changes most, or what the row is called."""
    before: float
    """Mean error of the rows before it."""
    after: float
    """Mean error from it on."""
    n_rows: int

    @property
    def alarm(self) -> bool:
        """Whether the p-value is at most 1%."""
        return self.p_value <= 1.0 / ALARM

    def __str__(self) -> str:
        p_value = f"p = {self.p_value:.2g}"
        if self.alarm:
            return (
                f"From about row {self.start} on, errors of predictions average {self.after:.3g}, before "
                f"{self.before:.3g} ({p_value}): rows are not exchangeable."
            )
        return (
            f"No shift and no trend in the errors of predictions ({p_value}); a shift half-way of "
            f"{FOUND_SHIFT / np.sqrt(self.n_rows):.2g} standard deviations, or a trend of twice that from end to end, "
            "is found in 4 of 5 cases."
        )


def shift_test(
    errors: ArrayLike,
    numbers: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> Shift:
    r"""Permutation test for a shift of the mean, or a trend, of errors in the order of their rows.

    The statistic is the largest standardised difference of mean ranks before and after a row,
    :math:`\max_k |S_k| / \sqrt{k (n - k) / n}` with :math:`S_k` the sum of the first k centred ranks. Errors of
    predictions from cross-validation with random folds are exchangeable if rows are, so the p-value, the rank of the
    statistic among those of random orders, is valid: at most a share :math:`\alpha` of exchangeable tables has
    :math:`p \le \alpha`.

    Parameters
    ----------
    errors : array-like of shape (n,)
        True value minus prediction of each row, by models that were not fitted to it.
    numbers : array-like of int of shape (n,), or None, default=None
        Row numbers; None counts from 1.
    random_state : int, RandomState or None, default=None
        Seed of the random orders.

    Examples
    --------
    >>> import numpy as np
    >>> from conformal_gp.drift import shift_test
    >>> errors = np.random.default_rng(0).normal(size=200)
    >>> shift_test(errors, random_state=0).alarm
    False
    >>> shift_test(errors + (np.arange(200) >= 120), random_state=0).start
    117
    """
    values = np.asarray(errors, dtype=np.float64)
    if values.ndim != 1 or values.size < 2 or not np.isfinite(values).all():
        raise ValueError(f"errors must be a list of at least two finite numbers, got {errors!r}.")
    n = values.size
    margin = max(1, int(0.05 * n))  # no shift is looked for nearer to either end
    k = np.arange(margin, n - margin + 1)
    k = k[k < n]
    scale = np.sqrt(k * (n - k) / n)

    def statistics(centred: Array) -> Array:
        return np.abs(np.cumsum(centred)[k - 1]) / scale

    centred = rankdata(values) - (n + 1) / 2.0
    observed = statistics(centred)
    rng = check_random_state(random_state)
    n_as_large = sum(
        statistics(rng.permutation(centred)).max() >= observed.max() * (1.0 - 1e-12) for _ in range(PERMUTATIONS)
    )
    split = int(k[np.argmax(observed)])
    return Shift(
        float(1 + n_as_large) / (1 + PERMUTATIONS),
        _row_numbers(numbers, n)[split].item(),
        float(values[:split].mean()),
        float(values[split:].mean()),
        n,
    )


def _row_numbers(numbers: ArrayLike | None, n_rows: int) -> NDArray[Any]:
    """What rows are called: numbers from 1, unless they are given."""
    if numbers is None:
        return np.arange(1, n_rows + 1)
    return np.asarray(numbers)


class Examined(NamedTuple):
    """What tests of rows in their order found, in sentences, and whether one of them is an alarm."""

    sentences: list[str]
    alarm: bool


def examine_order(
    model: ConformalGPRegressor,
    X: Any,
    y: Array,
    errors: Array,
    held_out: Indices,
    *,
    y_variance: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    random_state: int | None = None,
) -> Examined:
    """Test rows in their order both ways.

    Parameters
    ----------
    model : ConformalGPRegressor
        Model to fit, with ``tuning="holdout"``, to the first third of the rows; the martingale test takes the others.
        Of very many rows, rows at equal distances are taken.
    X, y, y_variance
        All rows in their order.
    errors, held_out
        Errors of held-out predictions, and the places of their rows.
    labels : array-like of str or None, default=None
        What the rows are called; None numbers them from 1.
    random_state : int or None, default=None
        Seed of random orders and of tie breaks.
    """
    numbers = np.arange(1, y.size + 1).astype(str)
    if labels is not None:
        numbers = np.asarray(labels).astype(str)
    shift = shift_test(errors, numbers[held_out], random_state)
    sentences = [f"Drift, errors in order of {errors.size} rows: {shift}"]
    rows = np.linspace(0, y.size - 1, min(y.size, ORDERED_ROWS)).astype(int)
    first, later = np.split(rows, [max(rows.size // 3, FIRST_ROWS)])
    if later.size < FIRST_ROWS // 2:
        return Examined([*sentences, f"Drift, martingale: {rows.size} rows are too few for the test."], shift.alarm)

    def some(places: Indices) -> tuple[Any, ...]:
        if y_variance is None:
            return _safe_indexing(X, places), y[places]
        return _safe_indexing(X, places), y[places], np.asarray(y_variance)[places]

    fitted = clone(model).set_params(tuning="holdout").fit(*some(first))
    drift = Drift(online_p_values(fitted, *some(later), random_state=random_state), numbers[later])
    sentences.append(f"Drift, p-values of rows {numbers[later[0]]} to {numbers[later[-1]]}: {drift}")
    return Examined(sentences, shift.alarm or drift.alarm)
