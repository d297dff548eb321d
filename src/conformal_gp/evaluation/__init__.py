r"""Cross-validation of prediction intervals, and whether they kept their promise.

Intervals promise that at most a share :math:`\delta` = 1 - level of labels lies outside. If each of n held-out labels
does with probability :math:`\delta`, their number is binomial; the verdict (:class:`Judgement`) compares with the
central 95% and 99% of that distribution (:func:`chance_range`):

- "kept": not more outside than the 95% range allows, nor fewer than the 99% range;
- "too few rows to tell": the same, but fewer than 10 labels are to be expected outside: chance allows nearly anything;
- "in doubt": more outside than the 95% range allows, but not more than the 99% range;
- "too narrow", "too wide": more, or fewer, outside than the 99% range allows;
- "infinite": no interval is finite, so nothing was promised.

Exact intervals are called too narrow in at most 1 of 200 cases. Folds share training rows, which makes the number
outside scatter less than a binomial one: large errors in one fold widen the intervals of the others.
"""

from conformal_gp.evaluation.advice import advice
from conformal_gp.evaluation.cross_validation import HeldOut, cross_validate_intervals
from conformal_gp.evaluation.findings import Finding, Judgement, chance_range, percent, supported_levels, verdict
from conformal_gp.evaluation.parts import before_and_after, coverage_by_parts

__all__ = [
    "Finding",
    "HeldOut",
    "Judgement",
    "advice",
    "before_and_after",
    "chance_range",
    "coverage_by_parts",
    "cross_validate_intervals",
    "percent",
    "supported_levels",
    "verdict",
]
