"""Tables of where labels are outside, and of which inputs matter."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from html import escape

from conformal_gp.evaluation import HeldOut, Judgement, Part, accuracy, coverage_by_parts, importance, percent
from conformal_gp.evaluation import where_it_fails as words
from conformal_gp.evaluation.parts import PREDICTION
from conformal_gp.report.numbers import CONFORMAL, Rounding, general
from conformal_gp.report.tables import COLUMNS_SHOWN, table
from conformal_gp.types import Array

LEVEL = Fraction(9, 10)
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


def importance_table(held_out: HeldOut) -> str:
    """Growth of the error when each input is shuffled, and how good predictions are."""
    rows = [(name, f"{growth:+.0%}".replace("-", "\N{MINUS SIGN}")) for name, growth in importance(held_out).items()]
    found = accuracy(held_out)[CONFORMAL]
    quality = f"Root mean squared error {general(found.rmse)}, R² {found.r2:.3f}, of held-out predictions."
    return f"<p>{quality}</p>" + table(
        ("input", "growth of the error"), rows[:COLUMNS_SHOWN], caption="Error when an input is shuffled"
    )
