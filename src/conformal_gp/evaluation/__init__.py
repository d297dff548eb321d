r"""Cross-validation of prediction intervals: their coverage, its expected range, and a verdict.

If each of n held-out targets is missed with probability :math:`\delta` = 1 - level, the number of misses is binomial.
The verdict (:class:`Judgement`) compares the coverage with the central 95% and 99% of that distribution
(:func:`chance_range`):

- "as expected": not below the 95% range, nor above the 99% range;
- "too few rows to tell": the same, but fewer than 10 misses are expected;
- "in doubt": below the 95% range, but not below the 99% range;
- "too narrow", "too wide": below, or above, the 99% range;
- "infinite": no interval is finite;
- "unknown between the levels": not below the 99% range, but rows are runs of a designed grid
  (:mod:`conformal_gp.extrapolation`), which do not tell the coverage between its levels.

If overall coverage is within its range but a fifth of the rows, by prediction or by an input, is covered significantly
too little, the verdict names these rows. Valid intervals are called too narrow in at most 1 of 200 cases. Folds share
training rows, so the number of misses varies less than a binomial one: large errors in one fold widen the intervals of
the others.
"""

from conformal_gp.evaluation.cross_validation import cross_validate_intervals
from conformal_gp.evaluation.findings import Finding, Judgement, chance_range, supported_levels, verdict
from conformal_gp.evaluation.held_out import HeldOut
from conformal_gp.evaluation.left_out import LeftOutRows, leave_one_out

__all__ = [
    "Finding",
    "HeldOut",
    "Judgement",
    "LeftOutRows",
    "chance_range",
    "cross_validate_intervals",
    "leave_one_out",
    "supported_levels",
    "verdict",
]
