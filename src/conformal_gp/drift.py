r"""Tests of exchangeability for rows in an order, such as that of time.

:func:`watch` is for rows that come one after the other, and may be read after each of them: a conformal test
martingale. In the *online protocol* the smoothed p-value of each row is among the calibration rows before it, which it
then joins. Such p-values of exchangeable rows are independent and uniform. Bets on them whose mean is 1 under a uniform
distribution, such as :math:`\epsilon p^{\epsilon - 1}`, turn a capital of 1 into a martingale M, and by Ville's
inequality

.. math:: P(\max_n M_n \ge c) \le 1 / c :

a capital of 100 is evidence of 100 to 1 against exchangeability, whenever one looks.

Bets are those of Vovk's Simple Jumper (Vovk, Gammerman and Shafer, *Algorithmic Learning in a Random World*, 2022,
algorithm 8.1) with six accounts: three powers :math:`\epsilon`, which gain from small p-values, of targets that do not
fit; :math:`1 \pm (p - 1/2)`, the latter for targets that fit too well, as when noise falls; and no bet. A hundredth of
the capital is divided again before each row, so that some is left when rows change late.

:func:`shift_test` is for a table that is complete. It compares errors of held-out predictions with the order of their
rows, and has power against a small shift, a slow trend and a change of spread. The martingale finds such changes late
or never.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from conformal_gp.arrays import Array
from conformal_gp.plotting.frame import Display, accent, ink
from conformal_gp.regressor import ConformalGPRegressor

__all__ = ["Drift", "Shift", "shift_test", "watch"]

# Share of the capital that is divided again before each row, and a capital that is an alarm.
JUMPS = 0.01
ALARM = 100
# Random orders that errors are compared in.
PERMUTATIONS = 999
# No shift is looked for in this share of the rows at either end.
MARGIN = 0.05
# With normal errors, a half-way shift of so many standard deviations over the root of the number of rows is found in
# four of five cases.
FOUND_SHIFT = 9.0


def watch(
    model: ConformalGPRegressor,
    X: Any,
    y: ArrayLike,
    y_variance: ArrayLike | None = None,
    *,
    groups: Any = None,
    random_state: int | np.random.RandomState | None = None,
) -> Drift:
    """Evidence that rows, in their order, differ from those before them; the model stays as it is.

    Each row costs a ``partial_fit``: :math:`O(l^2)` with l rows, and with a low-rank GP a pass over all of them.
    p-values are independent and uniform if the calibration rows of the model and these rows are exchangeable and its
    coverage is valid. Rows are given in their order as in ``partial_fit``; with groups each is calibrated on its group.
    ``random_state`` is the seed of the tie breaks.

    Examples
    --------
    >>> from conformal_gp import ConformalGPRegressor
    >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
    >>> model = model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    >>> found = watch(model, [[0.5], [1.5]], [0.6, 9.0], random_state=0)
    >>> found.p_values.round(2)
    array([0.89, 0.14])
    >>> print(found)
    No evidence of drift by the martingale test: it reached 1.0 to 1; 100 to 1, which ...
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
            calibration = answers.model.calibration
            answers = answers.among(calibration[all_groups.codes[calibration] == all_groups.codes[first + i]])
        p[row] = answers.about(rows.take(row)).shares(targets[row], ties[row])
        model = model._with_rows(rows.take(row), targets[row], None)
    return Drift(p)


class Drift(Display):
    r"""A martingale of rows in their order, what it says, and a picture of it.

    Parameters
    ----------
    p_values : array-like of shape (n,)
        Smoothed p-values of the online protocol.

    Attributes
    ----------
    path : ndarray of shape (n,)
        Logarithms to base 10 of the martingale after each row; before the first row it is 1.
    maximum : float
        The largest of them, or 0. Exchangeable rows reach it with probability at most ``10**-maximum``.
    alarm : bool
        Whether the maximum is at least 2, evidence of 100 to 1.
    start : int
        Number, from 1, of the row where rows changed, if they did: the most likely one, if p-values have a density
        :math:`\epsilon p^{\epsilon - 1}` from there to the alarm.

    Examples
    --------
    >>> drift = Drift([0.5, 0.9, 0.3] + 4 * [0.002])
    >>> drift.alarm, drift.start, round(drift.maximum, 1)
    (True, 4, 3.9)
    """

    def __init__(self, p_values: ArrayLike):
        self.p_values = np.asarray(p_values, dtype=np.float64)
        if self.p_values.ndim != 1 or not self.p_values.size or not np.all(np.abs(self.p_values - 0.5) <= 0.5):
            raise ValueError(f"p_values must be a list of numbers from 0 to 1, got {p_values!r}.")
        p = np.maximum(self.p_values, np.finfo(float).tiny)
        self.path = _martingale(p)
        self.maximum = max(float(self.path.max()), 0.0)
        self.alarm = bool(self.maximum >= np.log10(ALARM))
        # log likelihood of the p-values from each row to the alarm, under the power that fits them best
        end = int(np.argmax(self.path >= min(self.path.max(), np.log10(ALARM))))
        n = np.arange(end + 1, 0, -1)
        total = np.cumsum(-np.log(p)[end::-1])[::-1]
        power = 1.0 / np.clip(total / n, 0.1, 10.0)  # the mean of -log p is 1 before a change
        self.start = int(np.argmax(n * np.log(power) - (power - 1.0) * total)) + 1

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
        from matplotlib.ticker import MaxNLocator

        (self.line_,) = ax.plot(
            np.arange(1, self.path.size + 1), self.path, color=accent(), label="capital of the bets"
        )
        label = f"alarm: {1 / ALARM:.0%} of exchangeable sequences get here, at most"
        ax.axhline(np.log10(ALARM), color=ink(), linewidth=0.8, linestyle=":", label=label)
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
        ax.yaxis.set_major_formatter(lambda value, _: f"$10^{{{value:g}}}$")
        return {"xlabel": "row", "ylabel": "evidence against exchangeability, to 1"}


def _martingale(p: Array) -> Array:
    """Logarithms to base 10 of the capital after each row."""
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


class Shift(NamedTuple):
    """Result of :func:`shift_test`.

    Examples
    --------
    >>> from conformal_gp.drift import Shift
    >>> print(Shift(0.001, "161", "errors of predictions average", 0.1, 3.9, 240))
    From about row 161 on, errors of predictions average 3.9, before 0.1 (p = 0.001): rows are not exchangeable.
    """

    p_value: float
    start: str
    """What the row is called where errors change most."""
    what: str
    """What changes there, in words: the mean error, or the median absolute error."""
    before: float
    """Its value in the rows before."""
    after: float
    """Its value from that row on."""
    n_rows: int

    @property
    def alarm(self) -> bool:
        """Whether the p-value is at most 1%."""
        return self.p_value <= 1.0 / ALARM

    def __str__(self) -> str:
        p_value = f"p = {self.p_value:.2g}"
        if self.alarm:
            return (
                f"From about row {self.start} on, {self.what} {self.after:.3g}, before {self.before:.3g} ({p_value}): "
                "rows are not exchangeable."
            )
        return (
            f"No shift, trend or change of spread in the errors of predictions in the order of {self.n_rows} rows "
            f"({p_value}); a shift half-way of {FOUND_SHIFT / np.sqrt(self.n_rows):.2g} standard deviations, or a "
            "trend of twice that from end to end, is found in 4 of 5 cases."
        )


def shift_test(
    errors: ArrayLike,
    names: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> Shift:
    r"""Permutation test for a shift, a trend or a change of spread of errors in the order of their rows.

    With :math:`S_k` the sum of the first k standardised ranks of the errors, or of their distances from their median,
    the statistic is the largest difference before and after a row, :math:`\max_k |S_k| / \sqrt{k (n - k) / n}` of both.
    Errors of predictions from cross-validation with random folds are exchangeable if rows are, so the p-value, the
    rank of the statistic among those of random orders, is valid: at most a share :math:`\alpha` of exchangeable tables
    has :math:`p \le \alpha`. Inputs that drift while targets still fit are not found.

    Parameters
    ----------
    errors : array-like of shape (n,)
        True value minus prediction of each row, by models that were not fitted to it.
    names : array-like of shape (n,), or None, default=None
        What rows are called; None numbers them from 1.
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
    '117'
    """
    values = np.asarray(errors, dtype=np.float64)
    if values.ndim != 1 or values.size < 2 or not np.isfinite(values).all():
        raise ValueError(f"errors must be a list of at least two finite numbers, got {errors!r}.")
    n = values.size
    margin = max(1, int(MARGIN * n))
    k = np.arange(margin, n - margin + 1)
    k = k[k < n]
    scale = np.sqrt(k * (n - k) / n)
    distances = np.abs(values - np.median(values))
    scores = np.stack([_standardised(rankdata(values)), _standardised(rankdata(distances))])

    def statistics(scores: Array) -> Array:
        return np.abs(np.cumsum(scores, axis=1)[:, k - 1]) / scale

    observed = statistics(scores)
    rng = check_random_state(random_state)
    n_as_large = sum(
        statistics(scores[:, rng.permutation(n)]).max() >= observed.max() * (1.0 - 1e-12) for _ in range(PERMUTATIONS)
    )
    which, place = np.unravel_index(np.argmax(observed), observed.shape)
    split = int(k[place])
    if names is None:
        names = np.arange(1, n + 1)
    what = "errors of predictions average"
    before, after = (float(part.mean()) for part in np.split(values, [split]))
    if which == 1:
        what = "half of the errors of predictions exceed"
        before, after = (float(np.median(np.abs(part))) for part in np.split(values, [split]))
    return Shift(float(1 + n_as_large) / (1 + PERMUTATIONS), str(np.asarray(names)[split]), what, before, after, n)


def _standardised(ranks: Array) -> Array:
    centred = ranks - ranks.mean()
    return centred / (centred.std() or 1.0)
