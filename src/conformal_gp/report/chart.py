"""Data of the interactive chart, as JSON inside the page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformal_gp.evaluation import HeldOut, chance_range, percent
from conformal_gp.metrics import coverage, mean_width
from conformal_gp.report.numbers import CONFORMAL, LEVELS, PERCENTS, PLAIN, QUANTILE_PERCENTS, Rounding, general
from conformal_gp.types import Array

INPUTS_SHOWN = 8


def chart_data(
    X: Array,
    held_out: HeldOut,
    names: Sequence[str],
    target_name: str,
    row_numbers: NDArray[np.int64],
    *,
    max_rows: int,
    random_state: int | None,
) -> dict[str, Any]:
    """Intervals and quantiles of some rows, and the texts of coverage and mean width over all rows."""
    rounding = Rounding.of(held_out.y)
    chosen = np.random.default_rng(random_state).permutation(held_out.y.size)[:max_rows]
    y, prediction, intervals = held_out.y, held_out.prediction[CONFORMAL], held_out.intervals[CONFORMAL]
    chosen = chosen[np.argsort(prediction[chosen], kind="stable")]
    inside = inside_from(y, intervals)
    return {
        "target": target_name,
        "inputs": list(names[:INPUTS_SHOWN]),
        "decimals": rounding.decimals,
        "levels": PERCENTS,
        "quantiles": QUANTILE_PERCENTS,
        "view": view(y, prediction, intervals, rounding),
        "chance": chance_range(LEVELS, y.size).round(4).tolist(),
        "conformal": _summary(y, intervals, rounding),
        "plain": _summary(y, held_out.intervals[PLAIN], rounding),
        "rows": [
            {
                "row": int(row_numbers[i]),
                "x": [general(value) for value in X[i, :INPUTS_SHOWN]],
                "y": rounding.plain(y[i]),
                "prediction": rounding.plain(prediction[i]),
                "p": round(float(held_out.p_values[CONFORMAL][i]), 4),
                "insideFrom": int(inside[i]),
                "beyond": bool(held_out.beyond[i]),
                "low": [rounding.plain(end) for end in intervals[i, 0]],
                "high": [rounding.plain(end) for end in intervals[i, 1]],
                "steps": rounding.differences(held_out.quantiles[CONFORMAL][i]),
            }
            for i in chosen
        ],
    }


def inside_from(y: Array, intervals: Array) -> NDArray[np.int64]:
    """For each row the least whole percent from which on all intervals hold the label; 100 if none does.

    >>> ends = np.tile([[-1.0], [1.0]], (2, 1, 50))
    >>> ends[0, 1, :30] = 0.0
    >>> inside_from(np.array([0.5, 2.0]), ends)
    array([ 80, 100])
    """
    labels = y[:, None]
    outside = (labels < intervals[:, 0]) | (labels > intervals[:, 1])
    last_outside = outside.shape[1] - np.argmax(outside[:, ::-1], axis=1)
    return PERCENTS[0] + np.where(outside.any(axis=1), last_outside, 0)


def view(y: Array, prediction: Array, intervals: Array, rounding: Rounding) -> list[float | None]:
    """Vertical limits of the chart, the same at all levels so that one can see intervals grow.

    They include all labels and predictions, and 90% of the intervals at the highest level where all are finite.
    Intervals that go further end in an arrow.
    """
    values = [y, prediction]
    finite = np.flatnonzero(np.isfinite(intervals).all(axis=(0, 1)))
    if finite.size:
        low_ends, high_ends = intervals[:, :, finite[-1]].T
        values += [np.quantile(low_ends, [0.05]), np.quantile(high_ends, [0.95])]
    everything = np.concatenate(values)
    low, high = float(everything.min()), float(everything.max())
    room = max(0.04 * (high - low), 10.0**-rounding.decimals)
    return [rounding.plain(low - room), rounding.plain(high + room)]


def _summary(y: Array, intervals: Array, rounding: Rounding) -> dict[str, Any]:
    shares = coverage(y, intervals)
    return {
        "coverage": shares.round(6).tolist(),
        "inside": [percent(share, 1) for share in shares],
        "width": [rounding.text(width) for width in mean_width(intervals)],
    }


def as_json(data: dict[str, Any]) -> str:
    r"""JSON that is safe inside a script element: it has no ``<``, so no tag can begin or end in it.

    >>> as_json({"a": "</script>"})
    '{"a":"\\u003c/script>"}'
    """
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c")
