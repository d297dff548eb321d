"""All of scikit-learn's checks on the default; tests/test_sklearn.py has them on models that are quick to fit."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from conformal_gp import ConformalGPRegressor


@pytest.mark.slow
@parametrize_with_checks([ConformalGPRegressor()])
@pytest.mark.filterwarnings("ignore:y is reproduced exactly:UserWarning")
def test_estimator_checks_of_the_default(estimator, check):
    check(estimator)
