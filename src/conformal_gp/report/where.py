"""Tables of where labels are outside, and of which inputs matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from html import escape

import numpy as np

from conformal_gp.evaluation import HeldOut, Judgement, Part, accuracy, coverage_by_parts, importance, percent
from conformal_gp.evaluation import where_it_fails as words
from conformal_gp.evaluation.parts import PREDICTION
from conformal_gp.report.numbers import CONFORMAL, Rounding, general
from conformal_gp.report.tables import COLUMNS_SHOWN, table
from conformal_gp.types import Array

LEVEL = Fraction(9, 10)
BARS = 15
MARKS = {
    Judgement.TOO_NARROW: "✕ too many outside",
    Judgement.IN_DOUBT: "perhaps too many outside",
    Judgement.TOO_WIDE: "wider than need be",
    Judgement.INFINITE: "infinite",
}


def parts_section(held_out: HeldOut, X: Array, names: Sequence[str]) -> str:
    """Labels outside by fifths of the prediction, and of the inputs behind a button that unfolds them."""
    parts = coverage_by_parts(held_out, X, names, LEVEL)
    write = Rounding.of(held_out.y)
    by_prediction = [part for part in parts if part.of == PREDICTION]
    of_inputs = [part for part in parts if part.of != PREDICTION][: 5 * COLUMNS_SHOWN]
    first = table(
        HEAD[1:], [_cells(part, write)[1:] for part in by_prediction], caption="By fifths of the prediction, at 90%"
    )
    second = table(HEAD, [_cells(part, write) for part in of_inputs], caption="By fifths of each input, at 90%")
    return f"<p>{escape(words(parts))}</p>{first}<details><summary>By each input</summary>{second}</details>"


HEAD = ("input", "values", "rows", "labels outside", "mean width", "promised 10%")


def _cells(part: Part, write: Rounding) -> tuple[str, ...]:
    where = part.where if part.of != PREDICTION else f"{write.text(part.low)} to {write.text(part.high)}"
    mark = MARKS.get(part.judgement, "kept")
    return part.of, where, str(part.n_rows), percent(part.miscoverage, 1), write.text(part.mean_width), mark


def rows_beyond(held_out: HeldOut) -> str:
    """How many rows lay beyond the rows that they were predicted from, and what that means."""
    found = int(held_out.beyond.sum())
    return (
        f"Rows beyond the rows that they were predicted from: {found} of {held_out.y.size}. Such a row has an input "
        "outside the range of the others by more than a tenth of it; its interval rests on the model alone."
    )


def importance_section(held_out: HeldOut) -> str:
    """Growth of the error when each input is shuffled, drawn and in numbers, and how good predictions are."""
    growth = importance(held_out)
    rows = [(name, f"{share:+.0%}".replace("-", "\N{MINUS SIGN}")) for name, share in growth.items()]
    found = accuracy(held_out)[CONFORMAL]
    quality = f"Root mean squared error {general(found.rmse)}, R² {found.r2:.3f}, of held-out predictions."
    numbers = table(("input", "growth of the error"), rows[:COLUMNS_SHOWN], caption="Error when an input is shuffled")
    return f"<p>{quality}</p>{_bars(growth)}{numbers}"


def _bars(growth: Mapping[str, float]) -> str:
    """A bar for each of the inputs that matter most."""
    drawn = {name: share for name, share in list(growth.items())[:BARS] if np.isfinite(share)}
    longest = max([*drawn.values(), 1e-9])
    bars = "".join(
        f'<text x="140" y="{22 * i + 16}" text-anchor="end">{escape(name[:20])}</text>'
        f'<rect class="growth" x="147" y="{22 * i + 4}" width="{200 * max(share, 0.0) / longest:.1f}" height="16"/>'
        for i, (name, share) in enumerate(drawn.items())
    )
    words = "How much the error grows when each input is shuffled"
    return f'<svg role="img" class="bars" aria-label="{words}" viewBox="0 0 350 {22 * len(drawn) + 6}">{bars}</svg>'
