"""The ways by name, and which of them "auto" takes."""

from __future__ import annotations

from collections.abc import Callable

from conformal_gp.tuning import augmented, fixed, holdout, train
from conformal_gp.tuning.plan import Plan
from conformal_gp.tuning.settings import Settings

WAYS: dict[str, Callable[..., Plan]] = {
    "fixed": fixed.plan,
    "train": train.plan,
    "holdout": holdout.plan,
    "augmented": augmented.plan,
}

# Most rows, and most inputs, with which "auto" tunes inside the bag; beyond, a design set costs less and loses little.
ROWS_FOR_AUGMENTED = 1000
INPUTS_FOR_AUGMENTED = 15


def automatic(settings: Settings, n_rows: int, n_inputs: int) -> str:
    """The way that ``tuning="auto"`` takes: it depends on the numbers of rows and inputs and the kind of kernel."""
    if settings.candidates is not None:
        return "augmented"
    affordable = n_inputs <= INPUTS_FOR_AUGMENTED or (settings.named and not settings.each_length_scale)
    return "augmented" if n_rows <= ROWS_FOR_AUGMENTED and affordable else "holdout"
