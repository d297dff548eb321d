"""Checks of estimators' parameters: what the package takes from scikit-learn's private modules, all of it here.

Estimators say in ``_parameter_constraints`` what each parameter takes, and scikit-learn's own code checks it, so that
errors read as scikit-learn's do. That code is private and may move. It was tested with scikit-learn 1.6 to 1.9:
``make test-lowest`` runs the tests with the first of them, ``make test`` with the newest release.
"""

from __future__ import annotations

from sklearn.utils._param_validation import HasMethods, Interval, StrOptions, validate_parameter_constraints

__all__ = ["HasMethods", "Interval", "StrOptions", "validate_parameter_constraints"]
