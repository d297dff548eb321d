"""Which tuning method, and which tuning rows."""

from dataclasses import replace

import numpy as np
import pytest

from conformal_gp.models.settings import Settings
from conformal_gp.models.tuning_rows import MOST_TUNING_ROWS, calibration_size, content_keys, draw_tuning_rows


def settings(**options):
    """Settings of a default regressor, but for these."""
    return Settings(["se"], "zero", None, 2.0, True, 0, 1, **options)


@pytest.mark.parametrize("n_rows", [40, 61, 150, 400, 999, 5000])
def test_ranked_rows_and_one_are_a_multiple_of_twenty_that_supports_95_percent(n_rows):
    calibration = calibration_size(n_rows)
    assert calibration >= 19
    assert (calibration + 1) % 20 == 0
    assert n_rows - calibration <= MOST_TUNING_ROWS + 10
    assert calibration >= 0.3 * n_rows - 10


@pytest.mark.parametrize(("mean", "fewest"), [("zero", 3), ("constant", 4), ("linear", 6)])
def test_the_mean_function_has_rows_enough(mean, fewest):
    def drawn(size, n_rows):
        own = replace(settings(tuning_rows=size, n_inputs=2), mean=mean)
        return draw_tuning_rows(own, n_rows, None, np.random.RandomState(0))

    assert drawn(fewest, 50).size == fewest
    with pytest.raises(ValueError, match=f"tuning_rows must be at least {fewest} with mean='{mean}' and 2 inputs"):
        drawn(fewest - 1, 50)
    with pytest.raises(ValueError, match=f"needs {fewest} tuning rows"):
        drawn(fewest, fewest)


def test_rows_are_drawn_by_the_seed_in_order_and_from_all():
    found = [
        draw_tuning_rows(settings(tuning_rows=5), 30, None, np.random.RandomState(seed))
        for seed in (0, 0, *range(1, 40))
    ]
    np.testing.assert_array_equal(found[0], found[1])
    assert all((np.diff(rows) > 0).all() for rows in found)
    assert set(np.concatenate(found).tolist()) == set(range(30))


@pytest.mark.parametrize("equal", [False, True])
def test_the_order_of_the_rows_does_not_matter(equal):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 2)), rng.standard_normal(30)
    if equal:  # rows of few values, many of them equal
        X, y = np.round(X), np.round(y)
    order = rng.permutation(30)
    chosen, again = (
        draw_tuning_rows(settings(tuning_rows=12), 30, (X[rows], y[rows]), np.random.RandomState(3))
        for rows in (np.arange(30), order)
    )
    assert (np.diff(again) > 0).all()
    both = (np.column_stack([X, y])[rows] for rows in (chosen, order[again]))
    first, second = (rows[np.lexsort(rows.T)] for rows in both)
    np.testing.assert_array_equal(first, second)


def test_a_fixed_seed_leaves_calibration_rows_exchangeable_with_a_new_row():
    """Rows drawn by a place in the order of their values would not be: coverage would be 87% with some seeds."""
    rng = np.random.default_rng(0)
    for seed in (0, 1):
        covered = 0
        for _ in range(2000):
            x = rng.uniform(size=41)
            y = x * rng.normal(size=41)  # noise that grows with the input
            rest = np.argsort(content_keys(x[:40, None], y[:40], seed))[21:]
            covered += np.abs(y[40]) <= np.sort(np.abs(y[rest]))[17]
        assert abs(covered / 2000 - 0.9) < 4 * np.sqrt(0.09 / 2000)
