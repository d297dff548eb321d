"""Which tuning method, and which tuning rows."""

import numpy as np
import pytest
from conformal_gp.tuning.tuning_rows import MOST_TUNING_ROWS, ROWS_FOR_INTEGRATED, automatic, calibration_size, drawn

from conformal_gp.models.settings import Settings


def settings(**options):
    """Settings of a default regressor, but for these."""
    return Settings(["se"], "zero", None, [2.0], True, 0, 1, **options)


def test_the_automatic_method():
    assert automatic(settings(), ROWS_FOR_INTEGRATED) == "integrated"
    assert automatic(settings(), ROWS_FOR_INTEGRATED + 1) == "holdout"
    assert automatic(settings(tuning_rows=5), 20) == "holdout"


@pytest.mark.parametrize("n_rows", [40, 61, 150, 400, 999, 5000])
def test_ranked_rows_and_one_are_a_multiple_of_twenty_that_supports_95_percent(n_rows):
    calibration = calibration_size(n_rows)
    assert calibration >= 19
    assert (calibration + 1) % 20 == 0
    assert n_rows - calibration <= MOST_TUNING_ROWS + 10
    assert calibration >= 0.3 * n_rows - 10


@pytest.mark.parametrize(("mean", "fewest"), [("zero", 3), ("constant", 4), ("linear", 6)])
def test_the_mean_function_has_rows_enough(mean, fewest):
    assert drawn(mean, 1, 50, 2, np.random.RandomState(0)).size == fewest
    assert drawn(mean, 20, 50, 2, np.random.RandomState(0)).size == 20
    with pytest.raises(ValueError, match=f"needs {fewest} tuning rows"):
        drawn(mean, 1, fewest, 2, np.random.RandomState(0))


def test_rows_are_drawn_by_the_seed_in_order_and_from_all():
    found = [drawn("zero", 5, 30, 2, np.random.RandomState(seed)) for seed in (0, 0, *range(1, 40))]
    np.testing.assert_array_equal(found[0], found[1])
    assert all((np.diff(rows) > 0).all() for rows in found)
    assert set(np.concatenate(found).tolist()) == set(range(30))
