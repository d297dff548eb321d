"""Checks of estimators' parameters: what the package takes from scikit-learn's private modules, all of it here.

Estimators say in ``_parameter_constraints`` what each parameter takes, and scikit-learn's own code checks it, so that
errors read as scikit-learn's do. That code is private and may move. It was tested with scikit-learn 1.6 to 1.9:
``make test-lowest`` runs the tests with the first of them, ``make test`` with the newest release.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions, validate_parameter_constraints

__all__ = ["HasMethods", "Interval", "StrOptions", "validate_parameter_constraints", "without_gone"]

# Parameters that have gone, and what to use instead.
GONE = {
    "noise": "Widths follow the difficulty of rows by default: difficulty='auto' is what noise='varying' was for",
    "length_scale_prior": "Whether inputs have length scales of their own is now chosen by BIC; length_scales='one' "
    "gives them one",
}


def without_gone(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor that warns of parameters that have gone; its signature stays what it is."""

    @wraps(init)
    def checked(self: BaseEstimator, *arguments: Any, **options: Any) -> None:
        for name in GONE.keys() & options.keys():
            warnings.warn(f"{name}= has gone and changes nothing. {GONE[name]}.", FutureWarning, stacklevel=2)
            del options[name]
        init(self, *arguments, **options)

    return checked
