"""Design rows."""

import numpy as np
import pytest

from conformal_gp import ConformalGPRegressor
from conformal_gp.tuning.design import CHOOSING_SHARE, LEARNING_SHARE, design_rows, draw, even_size


@pytest.mark.parametrize("share", [CHOOSING_SHARE, LEARNING_SHARE])
@pytest.mark.parametrize("n_rows", [20, 37, 60, 61, 150, 999])
def test_ranked_rows_and_one_are_a_multiple_near_the_share(n_rows, share):
    step = 20 if n_rows >= 60 else 10
    ranked = n_rows - even_size(share, n_rows, 3)
    assert (ranked + 1) % step == 0
    assert abs(ranked - (1 - share) * n_rows) <= step


def test_few_rows_are_shared_as_they_are():
    assert even_size(0.5, 9, 3) == 5
    assert even_size(0.2, 12, 6) == 3  # 9 ranked rows would leave too few


def test_given_rows_are_taken():
    rows = np.array([1, 4, 5])
    assert design_rows(rows, "linear", 0.5, (9, 2), np.random.RandomState(0)) is rows


@pytest.mark.parametrize(("mean", "fewest"), [("zero", 3), ("constant", 4), ("linear", 6)])
def test_the_mean_function_has_rows_enough(mean, fewest):
    assert design_rows(1, mean, 0.5, (50, 2), np.random.RandomState(0)).size == fewest
    assert draw(mean, 20, 50, 2, np.random.RandomState(0)).size == 20
    with pytest.raises(ValueError, match=f"needs {fewest} design rows"):
        draw(mean, 1, fewest, 2, np.random.RandomState(0))


@pytest.mark.parametrize(("design", "size"), [(12, 12), (0.25, 10), ([7, 3, 5, 9, 1], 5)])
def test_design_rows_by_number_share_or_name(design, size):
    X = np.linspace(0.0, 1.0, 40)[:, None]
    model = ConformalGPRegressor("se", mean="constant", tuning="holdout", design=design, n_restarts=0, random_state=0)
    assert model.fit(X, np.cos(5.0 * X[:, 0])).design_.size == size


def test_rows_are_drawn_by_the_seed_in_order_and_from_all():
    drawn = [draw("zero", 5, 30, 2, np.random.RandomState(seed)) for seed in (0, 0, *range(1, 40))]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert all((np.diff(rows) > 0).all() for rows in drawn)
    assert set(np.concatenate(drawn).tolist()) == set(range(30))
