"""Data of the interactive charts, as JSON inside the page."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from conformal_gp.arrays import Array
from conformal_gp.evaluation import Finding, HeldOut
from conformal_gp.extrapolation import columns_of
from conformal_gp.formatting import CONFORMAL, STANDARD, number, percent
from conformal_gp.plotting.frame import limits_of

PERCENTS = tuple(range(50, 100))
LEVELS = tuple(Fraction(percents, 100) for percents in PERCENTS)
TABLED = tuple(Fraction(percents, 100) for percents in (50, 80, 90, 95, 99))
USUAL = Fraction(9, 10)
INPUTS_SHOWN, MOST_ROWS = 8, 200
# Targets are drawn on a logarithmic scale if fewer of them than this share are in the upper half of a linear one.
UPPER_HALF = 0.1


def shown_level(held_out: HeldOut) -> Fraction:
    """The highest level up to 90% at which most intervals are finite; the lowest if there is none."""
    finite = np.isfinite(held_out.intervals[CONFORMAL]).any(axis=1).mean(axis=0) > 0.5
    candidates = [level for level in TABLED if level <= USUAL and finite[held_out.levels.index(level)]]
    return max(candidates, default=TABLED[0])


def chart_data(
    X: Any, held_out: HeldOut, target_name: str, labels: Sequence[str], level: Fraction, random_state: int | None
) -> dict[str, Any]:
    """Intervals of some rows at every level, and coverage and median width of all rows.

    ``labels`` are what the held-out rows are called; at ``level`` the page opens.
    """
    y = held_out.y
    prediction = held_out.prediction[CONFORMAL]
    intervals = held_out.intervals[CONFORMAL]
    digits = decimals(y, intervals)
    opening = intervals[:, :, held_out.levels.index(level)]
    logarithmic = is_logarithmic(opening, y, prediction)
    chosen = np.random.default_rng(random_state).permutation(y.size)[:MOST_ROWS]
    chosen = chosen[np.argsort(prediction[chosen], kind="stable")]
    inputs = dict(list(columns_of(X).items())[:INPUTS_SHOWN])
    findings = held_out.findings()
    own = [finding for finding in findings if finding.method == CONFORMAL]
    # intervals of higher levels contain those of lower ones
    n_covering = ((intervals[:, 0] <= y[:, None]) & (y[:, None] <= intervals[:, 1])).sum(axis=1)
    limits = np.zeros(y.size, dtype=np.int64)
    if held_out.censoring is not None:
        limits = held_out.censoring

    def rounded(value: float) -> float | None:
        if not math.isfinite(value):
            return None
        if logarithmic:
            return float(f"{value:.4g}")
        return round(float(value), digits)

    return {
        "target": target_name,
        "inputs": list(inputs),
        "decimals": digits,
        "levels": PERCENTS,
        "logarithmic": logarithmic,
        "view": _view(opening, y, prediction, logarithmic),
        "chance": [[round(share, 4) for share in finding.expected()] for finding in own],
        "expected": [finding.expected_in_words for finding in own],
        "conformal": _summary(own, digits),
        "standard": _summary([finding for finding in findings if finding.method == STANDARD], digits),
        "rows": [
            {
                "row": labels[i],
                "x": [v[i] if v.dtype.kind == "U" else number(float(v[i]), 6) for v in inputs.values()],
                "y": rounded(y[i]),
                "limit": int(limits[i]),
                "prediction": rounded(prediction[i]),
                "coveredFrom": int(100 - n_covering[i]),
                "beyond": bool(held_out.beyond[i]),
                "low": [rounded(end) for end in intervals[i, 0]],
                "high": [rounded(end) for end in intervals[i, 1]],
            }
            for i in chosen
        ],
    }


def _summary(findings: Sequence[Finding], digits: int) -> dict[str, Any]:
    """Coverage and median width at every level, as numbers and as they are written."""
    return {
        "coverage": [round(finding.coverage, 6) for finding in findings],
        "covered": [percent(finding.coverage, 1) for finding in findings],
        "width": [text(finding.median_width, digits) for finding in findings],
    }


def is_logarithmic(intervals: Array, y: Array, prediction: Array) -> bool:
    """Whether to draw positive targets on a logarithmic scale: few of them are in the upper half of a linear one.

    >>> ends = np.array([[0.5, 2.0], [1.0, 4.0], [50.0, 200.0]])
    >>> is_logarithmic(ends, np.array([1.0, 2.0, 100.0]), ends[:, 0]), is_logarithmic(ends, np.ones(3), -ends[:, 0])
    (False, False)
    >>> is_logarithmic(np.repeat(ends, [30, 30, 1], axis=0), np.repeat([1.0, 2.0, 100.0], [30, 30, 1]), np.ones(61))
    True
    """
    ends = intervals[np.isfinite(intervals)]
    if min(ends.min(initial=np.inf), y.min(), prediction.min()) <= 0.0:
        return False
    return bool((y > 0.5 * (y.min() + y.max())).mean() < UPPER_HALF)


def _view(intervals: Array, y: Array, prediction: Array, logarithmic: bool) -> tuple[float, float]:
    """Limits of the chart; on a logarithmic scale, of logarithms to base 10."""
    if logarithmic:
        with np.errstate(invalid="ignore"):  # intervals without a lower bound
            return limits_of(np.log10(intervals), np.log10(y), np.log10(prediction))
    return limits_of(intervals, y, prediction)


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
    """Write a number with some decimals, commas between thousands, and signs for minus and infinity.

    >>> text(31415.9, 2), text(-np.inf, 2)
    ('31,415.90', '−∞')
    """
    return f"{value:,.{digits}f}".replace("inf", "∞").replace("-", "\N{MINUS SIGN}")


def as_json(data: dict[str, Any]) -> str:
    r"""JSON that is safe inside a script element: it has no ``<``, so no tag can begin or end in it.

    >>> as_json({"a": "</script>"})
    '{"a":"\\u003c/script>"}'
    """
    return json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")
