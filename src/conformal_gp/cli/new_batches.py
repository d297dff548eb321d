"""Cross-validation for rows of new batches or of a later time, beside that of rows at random."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformal_gp.formatting import number, percent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from conformal_gp.evaluation import HeldOut

PERIODS = 5
# Differences of coverage of less than this many standard errors may be chance.
STANDARD_ERRORS = 2.0


def later_rows(folds: int | None, n_rows: int) -> Any:
    """Splits that train on earlier rows and test on those that follow."""
    from sklearn.model_selection import TimeSeriesSplit

    return TimeSeriesSplit(min(folds or PERIODS, n_rows - 1))


def rows_at_random(n_rows: int, seed: int) -> Any:
    """Folds of rows at random, replicates and batches divided among them."""
    from sklearn.model_selection import KFold

    return KFold(min(10, n_rows), shuffle=True, random_state=seed)


def in_comparison(held_out: HeldOut, random_folds: HeldOut, by: str | None, batches: NDArray[Any] | None) -> str:
    """Compare coverage and width of conformal intervals, in a sentence that says which of both to expect."""
    own = held_out.findings()[0]
    other = random_folds.findings()[0]
    what = "later rows, predicted from earlier ones"
    which = "later rows"
    if by is not None:
        what = f"rows of a new {by}"
        which = what
    said = (
        f"Of {what}, {percent(own.level)} intervals covered {percent(own.coverage, 1)} "
        f"(median width {number(own.median_width)}); of rows at random {percent(other.coverage, 1)} "
        f"({number(other.median_width)})."
    )
    variance = own.coverage * own.miscoverage / own.n_rows
    if batches is not None:
        variance = _variance_by_batches(held_out, batches[held_out.rows])
    spread = (variance + other.coverage * other.miscoverage / other.n_rows) ** 0.5
    guarantee = "The guarantee is for rows like the training rows"
    if own.coverage >= min(float(own.level), other.coverage):
        return f"{said} {guarantee}; there is no sign that {which} differ from them."
    if other.coverage - own.coverage > STANDARD_ERRORS * spread:
        return f"{said} {guarantee}, and {which} differ from them: expect the first coverage, not the second."
    return f"{said} {guarantee}; whether {which} differ from them, so few cannot tell."


def _variance_by_batches(held_out: HeldOut, batches: NDArray[Any]) -> float:
    """Variance of the coverage, batches being independent and their rows not."""
    import numpy as np

    low, high = next(iter(held_out.intervals.values()))[:, :, 0].T
    covered = (low <= held_out.y) & (held_out.y <= high)
    names = np.unique(batches)
    excess = [float((covered[batches == name] - covered.mean()).sum()) for name in names]
    return float(np.sum(np.square(excess))) / covered.size**2 * names.size / (names.size - 1)
