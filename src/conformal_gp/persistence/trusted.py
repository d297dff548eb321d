"""What other tools that save models have to trust: the types that a fitted regressor is made of."""

from __future__ import annotations

from conformal_gp.frames import Encoding
from conformal_gp.gp.inputs import Scaling
from conformal_gp.gp.noise import Trend, VaryingNoise
from conformal_gp.gp.warps import Functions
from conformal_gp.persistence.model import MODELS
from conformal_gp.persistence.plans import PLANS, WARPS
from conformal_gp.persistence.values import KERNELS
from conformal_gp.rows import ArrayRows
from conformal_gp.tuning.plan import Candidate

_PARTS = (*MODELS.values(), *PLANS.values(), *WARPS.values(), *KERNELS.values())

TRUSTED_TYPES: list[str] = sorted(
    f"{kind.__module__}.{kind.__qualname__}"
    for kind in (*_PARTS, ArrayRows, Candidate, Encoding, Functions, Scaling, Trend, VaryingNoise)
)
"""Types to allow in ``skops.io.load(file, trusted=TRUSTED_TYPES)``, for both regressors however they are fitted.

It has scikit-learn's kernels and this package's classes, no more. Classes and functions of your own, as in a kernel or
in a pair of functions for ``warp``, are yours to add.
"""
