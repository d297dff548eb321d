r"""Cross-validation of prediction intervals, and whether they kept their promise.

Intervals of level :math:`1 - \delta` promise that a label lies outside with probability at most :math:`\delta`. Of n
held-out labels the number outside scatters. If each lies outside with probability :math:`\delta`, independently of the
others, it has a binomial distribution, and 95 in 100 such numbers lie in its central 95% range. The verdict compares
with this range and with the central 99% range (:func:`chance_range`):

- "kept": not more labels outside than the 95% range allows, nor fewer than the 99% range;
- "in doubt": more outside than the 95% range allows, but not more than the 99% range;
- "too narrow": more outside than the 99% range allows;
- "too wide": fewer outside than the 99% range allows;
- "infinite": no interval is finite, so nothing was promised.

Labels below and labels above are judged in the same way, each against half of :math:`\\delta`. Intervals with equal
tails promise that; others only the whole.

Chance alone thus calls intervals that are exactly right in doubt or too narrow in at most 1 of 40 cases, and too narrow
in at most 1 of 200.

In cross-validation labels are not quite independent, because folds share training rows. With five folds or more this
makes the number outside conformal intervals scatter less than the binomial distribution says, because large errors in
one fold widen the intervals of the others. The verdict on them is then more cautious than these figures.
"""

from conformal_gp.evaluation.accuracy import Accuracy, accuracy, importance
from conformal_gp.evaluation.cross_validation import HeldOut, cross_validate_intervals, folds
from conformal_gp.evaluation.judgement import Finding, Judgement, chance_range
from conformal_gp.evaluation.parts import Part, coverage_by_parts, where_it_fails
from conformal_gp.evaluation.words import percent, verdict

__all__ = [
    "Accuracy",
    "Finding",
    "HeldOut",
    "Judgement",
    "Part",
    "accuracy",
    "chance_range",
    "coverage_by_parts",
    "cross_validate_intervals",
    "folds",
    "importance",
    "percent",
    "verdict",
    "where_it_fails",
]
