"""What the fitted model says of its guarantee."""

from __future__ import annotations

PROMISE = (
    "for exchangeable rows the region of level 1 - delta holds the label of a new row with probability at least "
    "1 - delta"
)

FIXED = f"Exact: kernel and noise were fixed beforehand and all rows enter alike, so {PROMISE}."
FIXED_SCALED = (
    "Not exact: inputs were scaled by the training rows alone, so coverage can differ slightly from the level; "
    "with scale_inputs=False it is exact."
)
TRAIN = (
    "Not exact: hyperparameters and mean function were learnt from the training rows alone, so coverage can fall "
    "below the level, most with few rows or many hyperparameters."
)


def holdout(n_design: int, n_ranked: int) -> str:
    """Everything learnt from design rows."""
    return (
        f"Exact: scaling and hyperparameters were learnt from {n_design} design rows and the other {n_ranked} are "
        f"ranked, so {PROMISE}."
    )


def augmented(n_candidates: int | None, n_design: int) -> str:
    """Hyperparameters chosen inside the bag, from candidates or by a descent."""
    way = "by a descent that treats all its rows alike"
    if n_candidates is not None:
        way = f"from {n_candidates} candidates fixed beforehand"
    unranked = f" ({n_design} design rows, which chose gamma, are not ranked)" if n_design else ""
    return f"Exact: hyperparameters are chosen inside the bag {way}{unranked}, so {PROMISE}."


def low_rank(n_design: int, n_ranked: int, given_inducing: bool) -> str:
    """Everything learnt from design rows, in the low-rank model."""
    condition = ", if the inducing inputs given do not come from the latter" if given_inducing else ""
    return (
        f"Exact: everything that was learnt comes from {n_design} design rows and the other {n_ranked} are ranked, "
        f"so {PROMISE}{condition}."
    )
