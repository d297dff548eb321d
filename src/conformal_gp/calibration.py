"""Calibration rows that test rows are compared with: all, or those of their group, weighted for a covariate shift."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from conformal_gp.answers import Answers
from conformal_gp.arrays import Array, Indices, Mask
from conformal_gp.conformal.levels import Needed, rank, rows_needed, shares
from conformal_gp.models.tuning_rows import batches_needed
from conformal_gp.rows import Rows
from conformal_gp.validation import check_finite, real_numbers

GroupsLike = ArrayLike | str | Callable[[Any], ArrayLike] | None
RatioLike = Callable[[Any], ArrayLike] | tuple[ArrayLike, ArrayLike] | None

UNDETERMINED = (
    "the training rows do not determine the mean function there, as where an input that is constant in them takes "
    "another value; mean='constant' avoids it"
)
COVERING = (
    "however large its target is, calibration rows score as high (with gamma other than 2, with a difficulty, with "
    "hardly any noise at a repeated input, or where a calibration row is outside bounds that were learnt)"
)
TRANSFORMED = "transformed back, an end is infinite; another target_transform avoids it"


@dataclass(frozen=True, eq=False)
class Part:
    """Test rows that are compared with the same calibration rows."""

    new: Rows
    answers: Answers
    """By the calibration rows."""
    places: Indices
    """(m,): places among all test rows."""
    name: str = "the model"
    """Name of the calibration rows in warnings."""
    weights: Array | None = None
    """(n,): weights of the calibration rows; None if all rows weigh the same."""
    own: Array | float = 1.0
    """(m,): weights of the test rows."""
    n_batches: int = 0
    """Number of batches of the training rows, if the calibration rows are one of each calibration batch."""

    @property
    def total(self) -> float:
        """Weight of the calibration rows."""
        if self.weights is None:
            return float(self.answers.n_calibration)
        return float(self.weights.sum())

    def needed(self, levels: Sequence[Fraction]) -> Needed:
        """Weight of the calibration rows that must cover values of the target, by level."""
        if self.weights is None:
            return Needed.of_ranks([rank(level, self.answers.n_calibration) for level in levels])
        return Needed.of_weights(levels, self.weights, np.asarray(self.own))

    def shares(self, y: Array, ties: Array, signed: bool) -> Array:
        """p-values, or values of the distribution function; see TestRows."""
        at_least, greater = self.answers.counts(self.new, y, signed, self.weights)
        if signed:
            at_least, greater = self.total - greater, self.total - at_least
        return shares(at_least, greater, self.total, ties, self.own)


class TestRows:
    """Test rows, in parts that are each compared with their own calibration rows.

    Parameters
    ----------
    new : Rows
        The test rows.
    parts : list of Part
        The same by what they are compared with; each row is in one of them.
    """

    __test__ = False  # pytest takes it for tests

    def __init__(self, new: Rows, parts: list[Part]):
        self.new = new
        self.parts = parts
        self._order = np.argsort(np.concatenate([part.places for part in parts]))

    @classmethod
    def of(cls, new: Rows, answers: Answers, n_batches: int = 0) -> TestRows:
        """All compared with the same calibration rows."""
        return cls(new, [Part(new, answers, np.arange(len(new.X)), n_batches=n_batches)])

    def joined(self, found: list[Array]) -> Array:
        """Answers of all parts, in the order of the test rows."""
        return np.concatenate(found)[self._order]

    def supported(self, levels: Sequence[Fraction]) -> Mask:
        """Whether the calibration rows support the levels, (m, levels)."""
        least = [part.needed(levels).by_row(part.places.size) for part in self.parts]
        return self.joined(least) >= 0.0

    def intervals(self, levels: Sequence[Fraction]) -> Array:
        """Hulls of the prediction sets of several levels, (m, 2, levels)."""
        return self.joined([part.answers.intervals(part.new, part.needed(levels)) for part in self.parts])

    def sets(self, level: Fraction) -> list[Array]:
        """Prediction sets of one level, each (pieces, 2)."""
        found = [pieces for part in self.parts for pieces in part.answers.sets(part.new, part.needed([level]))]
        return [found[place] for place in self._order]

    def bounds(self, below: Sequence[Fraction], above: Sequence[Fraction]) -> Array:
        """Lower bounds of some levels, then upper bounds of others, (m, levels)."""
        found = [part.answers.bounds(part.new, part.needed(below), part.needed(above)) for part in self.parts]
        return self.joined(found)

    def shares(self, y: Array, ties: Array, signed: bool = False) -> Array:
        """p-values of one value for each test row; with ``signed``, values of the predictive distribution function."""
        return self.joined([part.shares(y[part.places], ties[part.places], signed) for part in self.parts])

    def warn_where_unsupported(
        self, name: str, asked: Sequence[tuple[Fraction, Fraction]], what: str, stacklevel: int = 3
    ) -> None:
        """Warn of levels that the calibration rows do not support, on behalf of a public method.

        ``asked`` holds what the caller asked for, and for each the level of the set that it takes; ``what`` follows.
        """
        for value, level in asked:
            for part in self.parts:
                infinite = int((part.needed([level]).least < 0.0).sum())
                if not infinite:
                    continue
                if part.n_batches:
                    needed = f"at least {rows_needed(level)} calibration batches, by default of {batches_needed(level)}"
                    has = f"there are {part.answers.n_calibration} of {part.n_batches}"
                    why = f"needs {needed} batches, {has}; its {what}"
                elif part.weights is None:
                    has = f"{part.name} has {part.answers.n_calibration}"
                    why = f"needs at least {rows_needed(level)} calibration rows, {has}; its {what}"
                else:
                    share = f"weights alone are more than {float(1 - level):.3g} of all those of {part.name}"
                    why = f"is too high for {infinite} of {part.places.size} rows, whose {share}; their {what}"
                warnings.warn(f"{name}={float(value):g} {why}.", UserWarning, stacklevel=stacklevel)

    def warn_where_infinite(
        self, name: str, asked: Sequence[tuple[Fraction, Fraction]], what: str, ends: Array
    ) -> None:
        """Warn of infinite ends, (m, ends, levels): of unsupported levels, and once of those at other levels."""
        self.warn_where_unsupported(name, asked, f"{what} are infinite", stacklevel=4)
        supported = self.supported([level for _, level in asked])
        answers = self.parts[0].answers
        wanted = np.isinf(answers.target.range)
        limits = answers.target.limits
        if limits is not None:  # ends beyond limits of detection are infinite by right
            wanted &= np.isinf([limits.low, limits.high])
        infinite = (np.isneginf(ends) & wanted[0]) | (np.isposinf(ends) & wanted[1])
        found = infinite.any(axis=1) & supported
        if not found.any():
            return
        row, level = np.argwhere(found)[0]
        reason = COVERING
        with np.errstate(all="ignore"):
            variance = answers.model.moments(self.new.take(slice(row, row + 1)))[1]
        if np.isinf(variance[0]):
            reason = UNDETERMINED
        elif answers.model.one_interval and answers.target.transformation is not None:
            reason = TRANSFORMED
        warnings.warn(
            f"{int(found.any(axis=1).sum())} of {len(ends)} rows have infinite {what}; row {row} at "
            f"{name}={float(asked[level][0]):g}: {reason}.",
            UserWarning,
            stacklevel=3,
        )


def split_ratio(likelihood_ratio: Any) -> tuple[Any, Any]:
    """A function for training rows and one for test rows, or the arrays of both."""
    if callable(likelihood_ratio):
        return likelihood_ratio, likelihood_ratio
    if not isinstance(likelihood_ratio, tuple | list) or len(likelihood_ratio) != 2:
        raise ValueError(
            "likelihood_ratio must be a function of X, or a pair of arrays, for the training rows and for the test "
            f"rows; got {type(likelihood_ratio).__name__}."
        )
    training, test = likelihood_ratio
    return training, test


def check_ratios(ratios: Any, n_rows: int, of: str) -> Array:
    """Likelihood ratios as one finite number for each row, not negative."""
    values = real_numbers(f"likelihood_ratio of {of} rows", ratios)
    if values.shape != (n_rows,):
        got = f"an array of shape {values.shape}"
        raise ValueError(f"likelihood_ratio must hold one number for each of the {n_rows} {of} rows, got {got}.")
    check_finite(f"likelihood_ratio of {of} rows", values)
    if (values < 0.0).any():
        row = int(np.argmax(values < 0.0))
        raise ValueError(f"likelihood_ratio of {of} rows is {values[row]} in row {row}; it must not be negative.")
    return values


def effective_rows(ratios: Array) -> float:
    r"""Number of rows of equal weight that would do as well: :math:`(\sum w)^2 / \sum w^2`.

    >>> effective_rows(np.ones(5)), effective_rows(np.array([1.0, 0.0, 0.0]))
    (5.0, 1.0)
    """
    scaled = ratios / max(float(ratios.max(initial=0.0)), np.finfo(float).tiny)
    return float(scaled.sum() ** 2 / max(float((scaled**2).sum()), np.finfo(float).tiny))


def compared(model: Any, X: Any, new: Rows, groups: GroupsLike, likelihood_ratio: RatioLike) -> TestRows:
    """Test rows with the calibration rows of their groups, weighted by a likelihood ratio."""
    check_groups(model, groups)
    n_batches = 0
    if model._batches is not None:
        n_batches = model._batches.n_batches
    parts = TestRows.of(new, model._answers, n_batches).parts
    if model._groups is not None:
        codes = model._groups.of(X, groups, len(new.X))
        parts = []
        for code in np.unique(codes):
            rows = np.flatnonzero(codes == code)
            name = f"group {model._groups.labels[code]!r}"
            parts.append(Part(new.take(rows), model._group_answers[code], rows, name))
    if likelihood_ratio is None:
        return TestRows(new, parts)
    training, test = split_ratio(likelihood_ratio)
    weights = training_ratios(model, training)
    if callable(test):
        test = test(X)
    own = check_ratios(test, len(new.X), "test")
    # ratios that are equal become 1, without rounding
    unit = max(weights[model._answers.calibration].max(), own.max())
    weighted = []
    for part in parts:
        calibration = weights[part.answers.calibration] / unit
        ratio = own[part.places] / unit
        n_effective = effective_rows(calibration)
        if n_effective < min(20, calibration.size / 2):  # one row more or less moves intervals much
            warnings.warn(
                f"likelihood_ratio leaves {n_effective:.1f} effective rows of the {calibration.size} calibration rows "
                f"of {part.name}: intervals are wide, or infinite, and depend on few rows.",
                UserWarning,
                stacklevel=4,
            )
        # nothing is known of a row without weights
        ratio = np.where(calibration.sum() + ratio > 0.0, ratio, 1.0)
        weighted.append(replace(part, weights=calibration, own=ratio))
    return TestRows(new, weighted)


def check_groups(model: Any, groups: GroupsLike) -> None:
    """Raise a ValueError if groups of other rows are given where the training rows have none."""
    if model._groups is None and groups is not None:
        raise ValueError("groups was given, but fit was called without groups.")


def training_ratios(model: Any, ratio: Any) -> Array:
    """Likelihood ratios of all training rows, from a function of X or as they are given."""
    if model._batches is not None:
        raise ValueError("likelihood_ratio was given, and fit was called with batches: leave one of them out.")
    if not callable(ratio):
        ratios = check_ratios(ratio, model._source.n_rows, "training")
    elif (
        model._encoding is not None
        or model._gaps.size
        or (model._groups is not None and model._groups.left_out is not None)
    ):
        raise ValueError(
            "likelihood_ratio must be a pair of arrays, for the training rows and for the test rows, as fit was "
            "given missing values, or a frame with columns that are not numbers, which the model does not keep."
        )
    else:
        names = getattr(model, "feature_names_in_", None)
        ratios = model._source.each(_ratios_of(ratio, names, model._frame), "likelihood ratios")
    if not ratios[model._answers.calibration].any():
        raise ValueError(
            "likelihood_ratio is 0 for all calibration rows: training and test distributions do not overlap."
        )
    return ratios


def _ratios_of(ratio: Callable[[Any], Any], names: Any, frame: str | None) -> Callable[[Rows, Array], Array]:
    """A function of training rows that a cluster can get without the model."""

    def ratios(rows: Rows, y: Array) -> Array:
        X: Any = rows.X
        if frame is not None and names is not None:  # as it was given to fit, to pandas or polars
            X = import_module(frame).DataFrame(dict(zip(names, rows.X.T, strict=True)))
        return check_ratios(ratio(X), y.size, "training")

    return ratios
