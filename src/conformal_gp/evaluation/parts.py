"""Where labels lie outside: coverage by fifths of the prediction and of each column, or by its categories.

A guarantee is over all rows together, and misses may gather in one kind of row. Many parts are looked at, and some
would stand out by chance, so the judgement on each of m parts is by :math:`1 / m` of the usual error probability.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformal_gp.arrays import Mask
from conformal_gp.conformal.levels import read_level
from conformal_gp.evaluation.findings import Finding, Level, number
from conformal_gp.validation import holds_categories, is_frame

N_PARTS = 5


def coverage_by_parts(held_out: Any, X: Any, confidence_level: Level) -> list[Finding]:
    """Labels outside by fifths of the first method's prediction and of each column; by category where it has some.

    Parameters
    ----------
    held_out : HeldOut
        Cross-validated intervals.
    X : array-like or data frame of shape (n_samples, n_features), or None
        Inputs of these rows; None looks at the prediction alone.
    confidence_level : float
        One of the levels of ``held_out``.

    Returns
    -------
    parts : list of Finding
        ``among`` says which rows. Equal values stay together, so a column may have fewer than five parts, or none.

    Examples
    --------
    Noise that grows with the input, and intervals that do not:

    >>> import numpy as np
    >>> from fractions import Fraction
    >>> from conformal_gp.evaluation import HeldOut, coverage_by_parts
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=1000)
    >>> ends = {"a": np.tile([[-3.0], [3.0]], (1000, 1, 1))}
    >>> held_out = HeldOut(3 * x * rng.standard_normal(1000), [Fraction(9, 10)], {"a": np.zeros(1000)}, ends)
    >>> [(part.among, part.judgement.value) for part in coverage_by_parts(held_out, x[:, None], 0.9)][-1]
    ('x0 is 0.8133 to 0.9995', 'too narrow')
    """
    level = read_level(confidence_level)
    (name, ends), *_ = held_out.intervals.items()
    ends = ends[:, :, held_out.levels.index(level)]
    columns = {"prediction": held_out.prediction[name]} | ({} if X is None else columns_of(X))
    parts = [(f"{column} is {where}", rows) for column, values in columns.items() for where, rows in _parts(values)]
    return [Finding.of(name, level, held_out.y[rows], ends[rows], among, len(parts)) for among, rows in parts]


def before_and_after(held_out: Any, confidence_level: Level) -> list[tuple[Finding, Finding]]:
    """By fifths of the prediction: without map of labels and difficulty, and with them; empty if there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from fractions import Fraction
    >>> from conformal_gp.evaluation import HeldOut, before_and_after
    >>> y, one_width = np.arange(10.0), np.tile([[-1.0], [5.0]], (10, 1, 1))
    >>> widths_that_follow = {"a": y[:, None, None] + [[-1.0], [1.0]]}
    >>> held_out = HeldOut(y, [Fraction(9, 10)], {"a": y}, widths_that_follow, before=one_width)
    >>> parts = before_and_after(held_out, 0.9)
    >>> sum(before.n_outside for before, _ in parts), sum(after.n_outside for _, after in parts)
    (4, 0)
    """
    if held_out.before is None:
        return []
    name = next(iter(held_out.intervals))
    before = replace(held_out, intervals={name: held_out.before})
    both = (coverage_by_parts(each, None, confidence_level) for each in (before, held_out))
    return list(zip(*both, strict=True))


def columns_of(X: Any) -> dict[str, NDArray[Any]]:
    """Columns of an array or data frame by name: numbers as floats, categories and booleans as text."""
    if not is_frame(X):
        return {f"x{j}": column for j, column in enumerate(np.asarray(X, dtype=np.float64).T)}
    texts = [holds_categories(dtype) or "bool" in str(dtype).lower() for dtype in X.dtypes]
    return {
        str(name): np.asarray(X[name]).astype(str if text else np.float64)
        for name, text in zip(X.columns, texts, strict=True)
    }


def _parts(values: NDArray[Any]) -> Iterator[tuple[str, Mask]]:
    """Rows of each category, or of each fifth of the values, and what they are called."""
    distinct = np.unique(values)
    if distinct.size == 1:
        return
    if values.dtype.kind == "U":
        for value in distinct:
            yield str(value), values == value
        return
    edges = distinct
    if distinct.size > N_PARTS:
        edges = np.unique(np.quantile(values, np.linspace(0.0, 1.0, N_PARTS + 1)[1:], method="inverted_cdf"))
    fifth = np.searchsorted(edges, values)
    for k in np.unique(fifth):
        low, high = number(values[fifth == k].min()), number(values[fifth == k].max())
        yield (low if low == high else f"{low} to {high}"), fifth == k
