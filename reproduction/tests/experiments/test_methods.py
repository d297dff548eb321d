"""What runs on a fold."""

import numpy as np
import pytest
from scipy.stats import norm

from conformal_gp import ConformalGPRegressor
from reproduction.experiments.folds import BENCHMARKS, make_fold
from reproduction.experiments.methods import LEVELS, UNITS, units_for
from reproduction.experiments.paper import rows_of


@pytest.fixture(scope="module")
def fold():
    return make_fold("servo", seed=0, run=0, fold=0)


@pytest.fixture(scope="module")
def squared_exponential(fold):
    return {found.row: found for found in UNITS["SE"](fold)}


def papers_model(fold, **options):
    """One length scale, a linear mean, maximum likelihood on the training rows."""
    return ConformalGPRegressor(
        "se",
        mean="linear",
        tuning="train",
        length_scales="one",
        n_restarts=3,
        random_state=fold.seed,
        n_jobs=1,
        **options,
    )


def test_one_fit_serves_every_gamma(fold, squared_exponential):
    for row, found in squared_exponential.items():
        if row.method == "GPR-CP":
            refitted = papers_model(fold, gamma=row.gamma).fit(fold.X, fold.y).predict_interval(fold.X_test, LEVELS)
            np.testing.assert_array_equal(found.intervals, refitted)


def test_gpr_intervals_are_gaussian_quantiles_of_the_same_fit(fold, squared_exponential):
    (plain,) = (found for row, found in squared_exponential.items() if row.method == "GPR")
    model = papers_model(fold)
    mean, std = model.fit(fold.X, fold.y).predict(fold.X_test, return_std=True)
    np.testing.assert_allclose(plain.intervals[:, 1, LEVELS.index(0.9)], mean + norm.ppf(0.95) * std)
    assert plain.log_likelihood == pytest.approx(model.log_marginal_likelihood_)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit != "SE"])
def test_every_unit_gives_intervals_at_all_levels(fold, unit):
    for found in UNITS[unit](fold):
        assert found.intervals.shape == (fold.y_test.size, 2, len(LEVELS))
        assert not np.isnan(found.intervals).any()
        assert found.row in rows_of("servo")
        widths = found.intervals[:, 1] - found.intervals[:, 0]
        assert np.all(widths[:, LEVELS.index(0.99)] >= widths[:, LEVELS.index(0.9)])


def test_units_cover_the_papers_tables():
    for data_set in ("artificial_well_specified", "artificial_outliers"):
        assert units_for(data_set) == ["SE"]
    for data_set in BENCHMARKS:
        names = {row.covariance if row.method in {"GPR", "GPR-CP"} else row.method for row in rows_of(data_set)}
        assert names == set(units_for(data_set))


def test_known_hyperparameters_are_the_data_s_own():
    fold = make_fold("artificial_well_specified", seed=0, run=0, fold=0)
    found = list(UNITS["SE"](fold))
    assert [each.row.gamma for each in found] == [None, 1.0, 2.0, np.inf]
    at_90 = found[0].intervals[:, :, LEVELS.index(0.9)]
    outside = np.mean((fold.y_test < at_90[:, 0]) | (fold.y_test > at_90[:, 1]))
    assert abs(outside - 0.1) < 0.04  # four standard errors of 1000 labels
