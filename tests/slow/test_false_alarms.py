"""False alarms of the drift martingale stay below Ville's bound, and changes are found."""

import numpy as np
import pytest

from cases import make_data
from conformal_gp import ConformalGPRegressor, drift

pytestmark = pytest.mark.slow

RUNS = 600


def maxima(change, runs):
    """Largest evidence of 100 rows after 60, the last half of them changed."""
    found = []
    for seed in range(runs):
        X, y = make_data(seed, 160)
        y[110:] += change
        model = ConformalGPRegressor(tuning="holdout", n_restarts=0, random_state=seed).fit(X[:60], y[:60])
        found.append(drift.watch(model, X[60:], y[60:], random_state=seed).maximum)
    return np.array(found)


def test_false_alarms_are_as_rare_as_ville_says():
    found = maxima(0.0, RUNS)
    for c in (2, 5, 10, 20, 100):
        assert np.mean(found >= np.log10(c)) <= 1 / c + 3 * np.sqrt(1 / c / RUNS)


@pytest.mark.parametrize(("change", "share"), [(1.0, 0.5), (2.0, 0.95)])
def test_changes_of_two_and_four_standard_deviations_are_found(change, share):
    assert np.mean(maxima(change, 60) >= 2) >= share
