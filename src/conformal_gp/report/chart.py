"""What the interactive chart needs, as JSON inside the page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformal_gp.metrics import mean_width
from conformal_gp.report.held_out import PERCENTS, HeldOut
from conformal_gp.report.numbers import Rounding, general, percent

Array = NDArray[np.float64]

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
    """Intervals of some rows at every level, and coverage and mean width over all rows as they are to be written."""
    rounding = Rounding.of(held_out.y)
    chosen = np.random.default_rng(random_state).permutation(held_out.y.size)[:max_rows]
    chosen = chosen[np.argsort(held_out.prediction[chosen], kind="stable")]
    inside_from = held_out.inside_from()
    return {
        "target": target_name,
        "inputs": list(names[:INPUTS_SHOWN]),
        "decimals": rounding.decimals,
        "levels": PERCENTS,
        "view": view(held_out, rounding),
        "chance": held_out.chance().round(4).tolist(),
        "conformal": _summary(held_out.coverage(), held_out.intervals, rounding),
        "plain": _summary(held_out.plain_coverage(), held_out.plain, rounding),
        "rows": [
            {
                "row": int(row_numbers[i]),
                "x": [general(value) for value in X[i, :INPUTS_SHOWN]],
                "y": rounding.plain(held_out.y[i]),
                "prediction": rounding.plain(held_out.prediction[i]),
                "p": round(float(held_out.p_values[i]), 4),
                "insideFrom": int(inside_from[i]),
                "low": [rounding.plain(end) for end in held_out.intervals[i, 0]],
                "high": [rounding.plain(end) for end in held_out.intervals[i, 1]],
            }
            for i in chosen
        ],
    }


def view(held_out: HeldOut, rounding: Rounding) -> list[float | None]:
    """Vertical limits of the chart, the same at all levels so that intervals are seen to grow.

    All labels and predictions, and nine tenths of the ends at the highest level where all are finite; intervals that go
    further end in an arrow.
    """
    values = [held_out.y, held_out.prediction]
    finite = np.flatnonzero(np.isfinite(held_out.intervals).all(axis=(0, 1)))
    if finite.size:
        low_ends, high_ends = held_out.intervals[:, :, finite[-1]].T
        values += [np.quantile(low_ends, [0.05]), np.quantile(high_ends, [0.95])]
    everything = np.concatenate(values)
    low, high = float(everything.min()), float(everything.max())
    room = max(0.04 * (high - low), 10.0**-rounding.decimals)
    return [rounding.plain(low - room), rounding.plain(high + room)]


def _summary(shares: Array, intervals: Array, rounding: Rounding) -> dict[str, Any]:
    return {
        "coverage": shares.round(6).tolist(),
        "inside": [percent(share) for share in shares],
        "width": [rounding.text(width) for width in mean_width(intervals)],
    }


def as_json(data: dict[str, Any]) -> str:
    r"""JSON that may stand inside a script element: no ``<``, so no tag can begin or end in it.

    >>> as_json({"a": "</script>"})
    '{"a":"\\u003c/script>"}'
    """
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c")
