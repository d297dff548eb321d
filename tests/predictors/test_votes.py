"""Bags of many rows, in which groups of rows vote: as exact as others, shown on few rows."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, RationalQuadratic

import bag_oracle
import bags
from cases import contains
from conformal_gp import ConformalGPRegressor
from conformal_gp.predictors import selectors, votes
from test_permutation import selected

KERNELS = {
    "each": Matern([1.0, 1.0], nu=2.5),
    "mixture": RationalQuadratic(1.0, 1.0),
    "sum": ConstantKernel() * RBF([1.0, 1.0]) + ConstantKernel() * Matern(1.0, nu=1.5),
}


@pytest.fixture(autouse=True)
def few_rows_vote(monkeypatch):
    monkeypatch.setattr(selectors, "VOTING_ROWS", 9)


def rows(seed, l, noise):
    """Rows of which each group has its share, and three more."""
    rng = np.random.default_rng(seed)
    while True:
        X = rng.uniform(-2, 2, (l + 3, 2))
        if np.bincount(votes.groups(X[:l]), minlength=3).min() >= l // 3 - 1:
            y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + noise * rng.standard_normal(l + 3)
            return X[:l], y[:l], X[l:], y[l:]


@pytest.mark.parametrize("options", [{"mean": "constant"}, {"mean": "linear"}, {"mean": "zero", "scale_inputs": False}])
@pytest.mark.parametrize("name", KERNELS)
def test_p_values_equal_brute_force(name, options):
    for seed, noise in enumerate((0.05, 0.3)):
        X, y, X_new, y_new = rows(seed, 27, noise)
        model = ConformalGPRegressor(clone(KERNELS[name]), **options).fit(X, y)
        labels = np.concatenate([y_new[:1], model.predict(X_new[:1]) + y.std() * np.linspace(-3, 3, 4)])
        found = model.predict_p(np.repeat(X_new[:1], labels.size, axis=0), labels)
        expected = [bag_oracle.p_value(X, y, X_new[0], label, KERNELS[name], votes=True, **options) for label in labels]
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("noise", [0.05, 0.3])
def test_regions_end_where_brute_force_says(noise):
    X, y, X_new, _ = rows(7, 27, noise)
    kernel = KERNELS["each"]
    model = ConformalGPRegressor(clone(kernel), mean="constant").fit(X, y)
    for x in X_new[:2]:
        (region,) = model.predict_set(x[None], 0.8)
        labels = bag_oracle.labels_about(region)
        for label in np.append(labels[:24:4], labels[24:]):  # some in and about it, and next to all ends
            inside = bag_oracle.p_value(X, y, x, label, kernel, votes=True, tie=1e-13) > 0.2 + 1e-9
            assert inside == contains(region, label), (label, region)


@pytest.mark.parametrize("bag", [bags.noisy, bags.far_out_label, bags.far_out_input, bags.near_duplicates])
@pytest.mark.parametrize("name", ["default", "linear mean", "sum"])
def test_p_values_of_a_bag_are_a_permutation(name, bag):
    rng = np.random.default_rng(sum(map(ord, name + bag.__name__)))
    X, y = bag(rng, 28)
    bags.check(X, y, bags.p_values(X, y, name), name)


@pytest.mark.parametrize("seed", range(3))
def test_a_row_alone_in_its_category_among_its_group(seed):
    """It has no say in its group's vote, whether it is the test row or not."""
    rng = np.random.default_rng(seed)
    X, y = bags.smooth(rng, 30)
    lone = False
    while not lone:  # two rows of the category, in different groups
        X[:, 1] = 0.0
        X[rng.choice(30, 2, replace=False), 1] = 1.0
        member = votes.groups(X)
        lone = len(set(member[X[:, 1] == 1.0])) == 2 and np.bincount(member, minlength=3).min() >= 9
    y[np.flatnonzero(X[:, 1] == 0.0)[0]] += 100.0  # stands out
    assert len(set(selected(X, y, mean="linear"))) == 1


def test_without_votes_where_inputs_leave_a_group_with_few_rows(monkeypatch):
    """Inputs of two values fall into two groups at most; then the descent is that of fewer rows."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (24, 1)).astype(float)
    y = X[:, 0] + 0.1 * rng.standard_normal(24)
    voting = ConformalGPRegressor().fit(X[:20], y[:20])
    found = voting.predict_interval(X[20:], 0.8)
    monkeypatch.setattr(selectors, "VOTING_ROWS", 10**9)
    plain = ConformalGPRegressor().fit(X[:20], y[:20])
    np.testing.assert_array_equal(found, plain.predict_interval(X[20:], 0.8))
    assert voting.kernel_ == plain.kernel_


@pytest.mark.parametrize("seed", range(4))
def test_whether_there_are_votes_does_not_depend_on_which_row_is_the_test_row(seed):
    """One group has the fewest rows with which it may vote, or one less; the test row may be one of them."""
    rng = np.random.default_rng(seed)
    X, y = bags.noisy(rng, 200)
    member = votes.groups(X)
    keep = np.concatenate([np.flatnonzero(member == group)[:n] for group, n in enumerate([8 - seed % 2, 11, 11])])
    assert len(set(selected(X[keep], y[keep]))) == 1


def test_groups_depend_on_inputs_alone():
    X = np.random.default_rng(0).standard_normal((3000, 2))
    member = votes.groups(X)
    assert np.bincount(member).min() > 900
    order = np.random.default_rng(1).permutation(3000)
    np.testing.assert_array_equal(votes.groups(X[order]), member[order])
    assert votes.groups(np.array([[0.0, 1.0]])) == votes.groups(np.array([[-0.0, 1.0]]))
