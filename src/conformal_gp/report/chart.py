"""Data of the interactive chart, as JSON inside the page; rounded to three digits of the narrowest median width."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformal_gp.arrays import Array
from conformal_gp.design import columns_of
from conformal_gp.evaluation import HeldOut, chance_range
from conformal_gp.formatting import number, percent
from conformal_gp.metrics import coverage
from conformal_gp.plotting.frame import limits_of

CONFORMAL, STANDARD = "conformal", "standard GP"
PERCENTS = tuple(range(50, 100))
LEVELS = tuple(Fraction(percents, 100) for percents in PERCENTS)
INPUTS_SHOWN, MOST_ROWS = 8, 200


def chart_data(
    X: Any, held_out: HeldOut, target_name: str, row_numbers: NDArray[Any], random_state: int | None
) -> dict[str, Any]:
    """Intervals of some rows at every level, and coverage and median width over all rows."""
    y, prediction, intervals = held_out.y, held_out.prediction[CONFORMAL], held_out.intervals[CONFORMAL]
    digits = decimals(y, intervals)
    chosen = np.random.default_rng(random_state).permutation(y.size)[:MOST_ROWS]
    chosen = chosen[np.argsort(prediction[chosen], kind="stable")]
    inputs = dict(list(columns_of(X).items())[:INPUTS_SHOWN])

    def plain(value: float) -> float | None:
        return round(float(value), digits) if math.isfinite(value) else None

    def summary(ends: Array) -> dict[str, Any]:
        shares, widths = coverage(y, ends), np.median(ends[:, 1] - ends[:, 0], axis=0)
        inside = [percent(share, 1) for share in shares]
        return {"coverage": shares.round(6).tolist(), "inside": inside, "width": [text(w, digits) for w in widths]}

    return {
        "target": target_name,
        "inputs": list(inputs),
        "decimals": digits,
        "levels": PERCENTS,
        "view": limits_of(intervals[:, :, np.isfinite(intervals).all(axis=(0, 1))][:, :, -1:], y, prediction),
        "chance": chance_range(LEVELS, y.size).round(4).tolist(),
        "conformal": summary(intervals),
        "plain": summary(held_out.intervals[STANDARD]),
        "rows": [
            {
                "row": int(row_numbers[i]),
                "x": [v[i] if v.dtype.kind == "U" else number(float(v[i]), 6) for v in inputs.values()],
                "y": plain(y[i]),
                "prediction": plain(prediction[i]),
                "insideFrom": int(inside),
                "beyond": bool(held_out.beyond[i]),
                "low": [plain(end) for end in intervals[i, 0]],
                "high": [plain(end) for end in intervals[i, 1]],
            }
            for i, inside in zip(chosen, inside_from(y, intervals)[chosen], strict=True)
        ],
    }


def inside_from(y: Array, intervals: Array) -> NDArray[np.int64]:
    """Least whole percent from which on all intervals of a row contain its target; 100 if none does.

    >>> ends = np.tile([[-1.0], [1.0]], (2, 1, 50))
    >>> ends[0, 1, :30] = 0.0
    >>> inside_from(np.array([0.5, 2.0]), ends)
    array([ 80, 100])
    """
    outside = (y[:, None] < intervals[:, 0]) | (y[:, None] > intervals[:, 1])
    last_outside = outside.shape[1] - np.argmax(outside[:, ::-1], axis=1)
    return PERCENTS[0] + np.where(outside.any(axis=1), last_outside, 0)


def decimals(y: Array, intervals: Array) -> int:
    """Decimals that show three digits of the narrowest median width; none if it is above 100.

    Without a finite and positive width, those of a thousandth of the target's standard deviation.

    >>> ends = np.array([[[10.0], [12.5]], [[30.0], [32.5]]])
    >>> y = np.array([10.0, 30.0])
    >>> decimals(y, ends), decimals(y, 1e3 * ends), decimals(np.ones(2), 0.0 * ends)
    (2, 0, 3)
    """
    widths = np.median(intervals[:, 1] - intervals[:, 0], axis=0)
    widths = widths[np.isfinite(widths) & (widths > 0.0)]
    if widths.size:
        return max(0, 2 - math.floor(math.log10(widths.min())))
    spread = float(np.std(y))
    if spread <= 1e-12 * float(np.abs(y).max()):  # constant up to rounding
        return 3
    return max(0, 3 - math.floor(math.log10(spread)))


def text(value: float, digits: int) -> str:
    """Write a number with some decimals, with signs for minus and infinity.

    >>> text(3.14159, 2), text(-np.inf, 2)
    ('3.14', '−∞')
    """
    return f"{value:.{digits}f}".replace("inf", "∞").replace("-", "\N{MINUS SIGN}")


def as_json(data: dict[str, Any]) -> str:
    r"""JSON that is safe inside a script element: it has no ``<``, so no tag can begin or end in it.

    >>> as_json({"a": "</script>"})
    '{"a":"\\u003c/script>"}'
    """
    return json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")
