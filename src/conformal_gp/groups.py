"""Groups and batches of the training rows.

Within groups, coverage is guaranteed by calibration rows of the test row's own group. For rows of new *batches*, one
row drawn at random from each batch that is not tuned on is a calibration row (docs/theory.md has the proofs).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from conformal_gp.arrays import Indices
from conformal_gp.conformal.levels import read_levels, rows_needed
from conformal_gp.encoding import holds_categories, holds_numbers
from conformal_gp.formatting import percent
from conformal_gp.models.settings import Settings
from conformal_gp.models.tuned import NO_ROWS
from conformal_gp.models.tuning_rows import (
    batches_needed,
    calibration_batches,
    check_size,
    content_keys,
    fewest_tuning_rows,
)
from conformal_gp.rows import ArrayRows, RowSource
from conformal_gp.targets.target import check_censoring

USUAL_LEVELS = read_levels([0.8, 0.9, 0.95])[0]


@dataclass(frozen=True)
class Groups:
    """Groups of the training rows, and how those of test rows are found."""

    labels: list[Any]
    """Of the groups, in order of their first rows."""
    codes: Indices
    """(l,): the group of each training row, a place in ``labels``."""
    rule: str | Callable[[Any], Any] | None
    """The column or the function that gives groups; None where labels were given."""
    left_out: str | None = None
    """A column that gives groups and is no input, as it holds neither numbers nor categories."""

    @classmethod
    def learn(cls, X: Any, groups: Any) -> Groups:
        """From training rows as they were given."""
        given = group_labels(X, groups)
        labels = list(dict.fromkeys(given))
        rule = groups if isinstance(groups, str) or callable(groups) else None
        left_out = rule if isinstance(rule, str) and not _is_input(X[rule].dtype) else None
        return cls(labels, _codes(labels, given), rule, left_out)

    def extended(self, X: Any, groups: Any, n_rows: int) -> Groups:
        """With rows that come later; a group that is not among these is added."""
        given = self._given(X, groups, n_rows)
        labels = list(dict.fromkeys([*self.labels, *given]))
        return replace(self, labels=labels, codes=np.append(self.codes, _codes(labels, given)))

    def divided(self, rows: Indices) -> list[Indices]:
        """Numbers of training rows by group."""
        codes = self.codes[rows]
        return [rows[codes == code] for code in range(len(self.labels))]

    def inputs(self, X: Any) -> Any:
        """X without a column that is no input."""
        return without(X, self.left_out)

    def of(self, X: Any, groups: Any, n_rows: int) -> Indices:
        """Groups of test rows, by ``groups`` or as ``fit`` was told; an error names one that ``fit`` did not see."""
        given = self._given(X, groups, n_rows)
        known_labels = set(self.labels)
        unseen = next((row for row, label in enumerate(given) if label not in known_labels), None)
        if unseen is not None:
            known = ", ".join(map(repr, self.labels[:10])) + (", ..." if len(self.labels) > 10 else "")
            raise ValueError(
                f"groups has a group that fit did not see, {given[unseen]!r} in row {unseen}; it saw {known}. Fit "
                "without groups to predict such rows: coverage is then over all groups together."
            )
        return _codes(self.labels, given)

    def _given(self, X: Any, groups: Any, n_rows: int) -> list[Any]:
        """Labels of rows, by ``groups`` or as ``fit`` was told."""
        if groups is None and self.rule is None:
            raise ValueError("groups is needed, one for each row, because fit was called with groups.")
        given = group_labels(X, self.rule if groups is None else groups)
        check_length(given, n_rows)
        return given


def without(X: Any, column: str | None) -> Any:
    """X without a column, if it is a frame that has it."""
    if column is None or not hasattr(X, "columns") or column not in X.columns:
        return X
    return X[[name for name in X.columns if name != column]]


def _codes(labels: list[Any], given: list[Any]) -> Indices:
    """Places of labels among those of the groups."""
    places = {label: place for place, label in enumerate(labels)}
    return np.array([places[label] for label in given], dtype=np.int64)


def check_length(labels: Any, n_rows: int, name: str = "groups") -> None:
    """Raise a ValueError unless there is a value for each row."""
    if len(labels) != n_rows:
        raise ValueError(f"{name} must hold one value for each of the {n_rows} rows, got {len(labels)}.")


def group_labels(X: Any, groups: Any, name: str = "groups") -> list[Any]:
    """A value for each row, none of them missing; ``name`` is what errors call them."""
    if isinstance(groups, str):
        if not hasattr(X, "columns") or groups not in X.columns:
            of = f"; its columns are {', '.join(map(repr, X.columns))}" if hasattr(X, "columns") else ""
            raise ValueError(f"{name} is {groups!r}, and X must be a data frame with a column of that name{of}.")
        groups = X[groups]
    elif callable(groups):
        groups = groups(X)
    if hasattr(groups, "compute"):  # of Dask
        groups = groups.compute()
    as_list = next((getattr(groups, name) for name in ("tolist", "to_list") if hasattr(groups, name)), None)
    if getattr(groups, "ndim", 1) != 1 or not (as_list or hasattr(groups, "__iter__")):
        raise ValueError(f"{name} must hold one value for each row, got {groups!r}.")
    labels = as_list() if as_list else list(groups)
    for row, label in enumerate(labels):
        if _is_missing(label):
            raise ValueError(f"{name} has no value in row {row}: got {label!r}; give such rows one of their own.")
        if getattr(label, "__hash__", None) is None:
            raise ValueError(f"{name} must hold one value for each row, got {label!r} in row {row}.")
    return labels


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except (TypeError, ValueError):  # pandas.NA compares to nothing
        return type(label).__name__ == "NAType"


def _is_input(dtype: Any) -> bool:
    """Whether a column of this type is an input too."""
    return holds_numbers(dtype) or holds_categories(dtype) or "bool" in str(dtype).lower()


@dataclass(frozen=True)
class Batches:
    """Batches of the training rows, and the rows that the model is made of.

    Examples
    --------
    >>> Batches(np.array([0, 1, 0, 2])).n_batches
    3
    """

    codes: Indices
    """(l,): the batch of each row that fit was given, in order of their first rows."""
    column: str | None = None
    """The column that names batches; it is no input, as a new batch has another name."""
    tuning_rows: Indices = field(default_factory=lambda: NO_ROWS)
    """Numbers of the rows of tuning batches, ascending."""
    rows: Indices = field(default_factory=lambda: NO_ROWS)
    """Numbers of the rows that the model is made of, ascending: tuning rows, and one row of each other batch."""

    @classmethod
    def learn(cls, X: Any, batches: Any) -> Batches:
        """From training rows as they were given."""
        labels = group_labels(X, batches, "batches")
        codes = {label: code for code, label in enumerate(dict.fromkeys(labels))}
        if len(codes) < 2:
            raise ValueError(f"batches must hold at least two batches, got {next(iter(codes), None)!r} alone.")
        column = None
        if isinstance(batches, str):
            column = batches
        return cls(np.array([codes[label] for label in labels], dtype=np.int64), column)

    @property
    def n_batches(self) -> int:
        """Number of batches."""
        return int(self.codes.max()) + 1

    @property
    def n_tuning(self) -> int:
        """Number of tuning batches."""
        return np.unique(self.codes[self.tuning_rows]).size

    def inputs(self, X: Any) -> Any:
        """X without the column of batches."""
        return without(X, self.column)

    def drawn(self, source: RowSource, settings: Settings, random_state: Any) -> Batches:
        """The same with rows drawn by seed and content, whatever the order of the rows."""
        check_length(self.codes, source.n_rows, "batches")
        if settings.tuning not in ("holdout", "fixed"):
            raise ValueError(
                "batches are divided into those that are tuned on and those that calibrate: tuning must be 'auto', "
                f"'holdout' or 'fixed', got {settings.tuning!r}."
            )
        if not isinstance(source, ArrayRows) or not source.in_memory:
            raise ValueError("batches are for rows in memory, not for memory maps or Dask collections.")
        keys = content_keys(source.rows.content, source.y, check_random_state(random_state).randint(2**31))
        tuning = self._tuning_batches(settings, source, keys)
        tuning_rows = np.flatnonzero(np.isin(self.codes, tuning))
        order = np.argsort(keys, kind="stable")
        one_of_each = order[np.unique(self.codes[order], return_index=True)[1]]
        return replace(self, tuning_rows=tuning_rows, rows=np.union1d(tuning_rows, one_of_each))

    def _tuning_batches(self, settings: Settings, source: ArrayRows, keys: NDArray[np.uint64]) -> Indices:
        """Batches that are tuned on: those of the given tuning rows, or at random."""
        given = settings.tuning_rows
        sizes = np.bincount(self.codes)
        if isinstance(given, np.ndarray):
            tuning = np.unique(self.codes[given])
            if sizes[tuning].sum() > given.size or tuning.size == sizes.size:
                raise ValueError("tuning_rows must be all rows of some batches, as fit was given batches.")
            return tuning
        if given is None and settings.tuning == "fixed":
            return NO_ROWS
        of_batches = np.zeros(sizes.size, dtype=np.uint64)
        np.add.at(of_batches, self.codes, keys)
        order = np.argsort(of_batches, kind="stable")
        n_rows = np.cumsum(sizes[order])
        n_inputs = source.rows.X.shape[1]
        least = given or fewest_tuning_rows(settings.mean, n_inputs)
        n_tuning = 1
        if given is None:
            n_tuning = sizes.size - calibration_batches(sizes.size)
        n_tuning = max(n_tuning, int(np.searchsorted(n_rows, least)) + 1)
        if n_tuning >= sizes.size:
            raise ValueError(
                f"tuning takes at least {least} rows of whole batches, which leaves no calibration batch: fit was "
                f"given {sizes.size} batches of {source.n_rows} rows."
            )
        check_size(settings.mean, int(n_rows[n_tuning - 1]), source.n_rows, n_inputs)
        return order[:n_tuning]

    def tuned_on(self, rows: Indices) -> Batches:
        """The same after a fit; a low-rank GP takes inducing inputs from rows where nothing else is tuned."""
        return replace(self, tuning_rows=rows)

    def lacking(self, level: Fraction) -> str:
        """What is missing for a level that the calibration batches do not support."""
        n_calibration = self.n_batches - self.n_tuning
        batches = f"at least {rows_needed(level)} calibration batches, by default of {batches_needed(level)} batches"
        return f"needs {batches}, there are {n_calibration} of {self.n_batches}"

    def guarantee(self, sentence: str) -> str:
        """The sentence of ``guarantee_`` about rows of new batches; as it is if coverage is not valid."""
        if not sentence.startswith("Valid"):
            return sentence
        n_calibration = self.n_batches - self.n_tuning
        tuned = "nothing was tuned"
        if self.n_tuning:
            tuned = f"everything was tuned on the {self.tuning_rows.size} rows of {self.n_tuning} batches"
        said = (
            f"Valid: {tuned}, and one row of each of the other {n_calibration} batches, drawn at random, is a "
            "calibration row. If new batches are exchangeable with these, and nothing else was fitted to rows of "
            "these, intervals cover a row of a new batch at least as often as their level."
        )
        for level in USUAL_LEVELS:
            if rows_needed(level) > n_calibration:
                most = percent(n_calibration / (n_calibration + 1), 0)
                needed = batches_needed(level) if self.n_tuning else rows_needed(level)
                return f"{said} The highest level is {most}; {percent(level)} takes {needed} batches."
        return said


def with_fewer_rows(model: Any, source: Any, settings: Settings, censoring: Any) -> tuple[Any, Settings, Any]:
    """Rows that the model is made of, settings with their tuning rows, and their limits; the model keeps which."""
    drawn = model._batches.drawn(source, settings, model.random_state)
    if censoring is not None:
        censoring = check_censoring(censoring, source.n_rows)
    if censoring is not None:
        censoring = censoring[drawn.rows]
    if model._groups is not None:
        model._groups = replace(model._groups, codes=model._groups.codes[drawn.rows])
    if drawn.tuning_rows.size:
        settings = replace(settings, tuning_rows=np.searchsorted(drawn.rows, drawn.tuning_rows))
    model._batches = drawn
    return source.some(drawn.rows), settings, censoring
