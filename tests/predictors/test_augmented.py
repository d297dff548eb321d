"""Tuning inside the bag against brute force: select anew on l + 1 rows for each of many candidate labels."""

import numpy as np
import pytest
from conformal_gp.fitting import Recipe, rebuild
from conformal_gp.gp.candidates import Candidate, lattice
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from conformal_gp import ConformalGPRegressor
from conformal_gp.gp.scaling import STEP, Scaling

FEW = [(kernel, noise) for kernel, noise, _ in lattice("se", 2)[::7]]


def problem(seed, l=14, n_new=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(l, 2)) * [1.0, 7.0]
    y = X[:, 0] + np.sin(X[:, 1]) + 0.3 * rng.standard_t(2, size=l)
    X_new = rng.normal(size=(n_new, 2)) * [1.0, 7.0]
    X_new[-1] *= 6  # far out
    return X, y, X_new


def rounded(X):
    """The symmetric scaling, written out: over all rows of the bag."""
    return (X - X.mean(axis=0)) / STEP ** np.round(np.log(X.std(axis=0)) / np.log(STEP))


def brute_force_p(candidates, X, y, x_new, y_new, *, gamma, mean, scale, ranked=None):
    """p-value with the candidate of best restricted likelihood on the bag, amplitude profiled out."""
    X, y = np.vstack([X, x_new]), np.append(y, y_new)
    n = y.size
    X = rounded(X) if scale else X
    H = {"zero": np.empty((n, 0)), "constant": np.ones((n, 1)), "linear": np.column_stack([np.ones(n), X])}[mean]
    best = np.inf
    for kernel, noise, *handicap in candidates:
        A = kernel(X) + noise * np.eye(n)
        C = np.linalg.inv(A)
        information = H.T @ C @ H
        P = C - C @ H @ np.linalg.solve(information, H.T @ C) if H.shape[1] else C
        criterion = (n - H.shape[1]) * np.log(y @ P @ y) + np.linalg.slogdet(A)[1]
        criterion += np.linalg.slogdet(information)[1] if H.shape[1] else 0.0
        criterion += 2.0 * sum(handicap)
        if criterion < best:
            best, chosen = criterion, P
    scores = np.abs(chosen @ y) / np.diag(chosen) ** (1 - 1 / gamma)
    scores = scores if ranked is None else scores[[*ranked, n - 1]]
    return np.mean(scores >= scores[-1] * (1 - 1e-10))


def fit(X, y, **settings):
    return ConformalGPRegressor("se", tuning="augmented", candidates=FEW, random_state=0, **settings).fit(X, y)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("gamma", [1.0, 2.0, 3.0, np.inf])
@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
def test_region_and_p_values_equal_brute_force(mean, gamma, scale):
    X, y, X_new = problem(seed=1)
    model = fit(X, y, mean=mean, gamma=gamma, scale_inputs=scale)
    for x, region in zip(X_new, model.predict_set(X_new, 0.8), strict=True):
        ends = region[np.isfinite(region)]
        # just inside and just outside every end, and a scan
        labels = np.concatenate(
            [np.linspace(-12, 12, 25), ends - 1e-8 * (1 + abs(ends)), ends + 1e-8 * (1 + abs(ends))]
        )
        expected = [brute_force_p(FEW, X, y, x, label, gamma=gamma, mean=mean, scale=scale) for label in labels]
        np.testing.assert_allclose(model.predict_p(np.tile(x, (labels.size, 1)), labels), expected, rtol=1e-12)
        inside = ((labels[:, None] >= region[:, 0]) & (labels[:, None] <= region[:, 1])).any(axis=1)
        np.testing.assert_array_equal(inside, np.array(expected) > 0.2 + 1e-12)


def test_regions_with_several_pieces_occur():
    pieces = []
    for seed in range(6):
        X, y, X_new = problem(seed)
        pieces += [len(region) for region in fit(X, y, scale_inputs=False).predict_set(X_new, 0.8)]
    assert max(pieces) > 1


@pytest.mark.parametrize("seed", range(8))
def test_pruned_and_unpruned_agree(seed):
    X, y, X_new = problem(seed, l=30, n_new=20)
    model = ConformalGPRegressor("matern52", tuning="augmented").fit(X, y)
    pruned = model.predict_interval(X_new, [0.8, 0.9]), model.predict_set(X_new, 0.7)
    model._predictor._prune = False
    np.testing.assert_allclose(model.predict_interval(X_new, [0.8, 0.9]), pruned[0], rtol=1e-12, atol=1e-12)
    for full, short in zip(model.predict_set(X_new, 0.7), pruned[1], strict=True):
        np.testing.assert_allclose(full, short, rtol=1e-12, atol=1e-12)


def test_pruning_leaves_most_stretches_out(monkeypatch):
    X, y, X_new = problem(3, l=40, n_new=20)
    model = ConformalGPRegressor("matern52", tuning="augmented", scale_inputs=False).fit(X, y)
    bag = model._predictor.main
    asked = []
    original = bag.lines
    monkeypatch.setattr(bag, "lines", lambda use, at, rows, first: asked.append(len(rows)) or original(use, at, rows))
    model.predict_interval(X_new, 0.8)
    with_pruning, asked[:] = sum(asked), []
    model._predictor._prune = False
    model.predict_interval(X_new, 0.8)
    assert with_pruning < 0.8 * sum(asked)


def test_the_order_of_the_training_rows_does_not_matter():
    X, y, X_new = problem(2)
    order = np.random.default_rng(0).permutation(y.size)
    np.testing.assert_allclose(
        fit(X[order], y[order]).predict_interval(X_new, 0.8), fit(X, y).predict_interval(X_new, 0.8), rtol=1e-9
    )


def test_labels_may_change_units():
    X, y, X_new = problem(2)
    np.testing.assert_allclose(
        fit(X, 5.0 + 1000.0 * y).predict_interval(X_new, 0.8),
        5.0 + 1000.0 * fit(X, y).predict_interval(X_new, 0.8),
        rtol=1e-9,
    )


def test_test_rows_do_not_influence_each_other():
    X, y, X_new = problem(4, n_new=9)
    model = fit(X, y)
    alone = np.vstack([fit(X, y).predict_interval(x[None, :], 0.8) for x in X_new])
    np.testing.assert_allclose(model.predict_interval(X_new, 0.8), alone, rtol=1e-12)


def test_design_rows_propose_candidates_for_kernel_objects_and_are_not_ranked():
    X, y, X_new = problem(5, l=30)
    kernel = ConstantKernel(1.0) * Matern([1.0, 1.0], (1e-2, 1e2), nu=1.5) + RBF(2.0)
    model = ConformalGPRegressor(kernel, tuning="augmented", random_state=0, n_restarts=0).fit(X, y)
    assert model.design_.size == 11
    assert model._predictor.n_ranked == 19
    ranked = np.setdiff1d(np.arange(30), model.design_)
    labels = np.array([0.0, 3.0, -2.0])
    candidates = [
        (group.kernel, noise, handicap)
        for group in model._predictor._candidates
        for noise, handicap in zip(group.noise_variances, group.handicaps, strict=True)
    ]
    assert len({handicap for *_, handicap in candidates}) == 2
    expected = [
        brute_force_p(candidates, X, y, x, label, gamma=2.0, mean="linear", scale=True, ranked=ranked)
        for x, label in zip(X_new, labels, strict=True)
    ]
    np.testing.assert_allclose(model.predict_p(X_new, labels), expected, rtol=1e-12)


@pytest.mark.filterwarnings("error")
def test_bounds_that_a_proposal_ends_on_are_not_worth_a_warning():
    X, y, _ = problem(5, l=30)
    kernel = ConstantKernel(1.0) * Matern([1.0, 1.0], (0.9, 1.1), nu=1.5)
    ConformalGPRegressor(kernel, tuning="augmented", design=0.4, random_state=0, n_restarts=0).fit(X, y)
    with pytest.raises(ConvergenceWarning, match="bound"):
        ConformalGPRegressor(kernel, tuning="holdout", random_state=0, n_restarts=0).fit(X, y)


def test_a_handicap_keeps_out_a_candidate_that_is_not_much_likelier():
    X, y, X_new = problem(5, l=30)
    best = fit(X, y, scale_inputs=False)._predictor.main.choice()
    others = [Candidate(kernel, noise) for kernel, noise in FEW if (kernel, noise) != best[:2]]

    def ends(candidates):
        recipe = Recipe(candidates, "linear", Scaling.none(X), 2.0, "", inside_bag=True)
        return rebuild(recipe, X, y, None).predictor.hulls(X_new, [5])

    without = ends(others)
    np.testing.assert_array_equal(ends([Candidate(*best[:2], handicap=1e3), *others]), without)
    assert np.abs(ends([Candidate(*best[:2]), *others]) - without).max() > 1e-3


def test_plain_predictions_are_those_of_the_kernel_that_is_reported():
    X, y, X_new = problem(6, l=30)
    model = ConformalGPRegressor("se", tuning="augmented", scale_inputs=False).fit(X, y)
    fixed = ConformalGPRegressor(
        model.kernel_, noise_variance=model.noise_variance_, tuning="fixed", scale_inputs=False
    ).fit(X, y)
    for found, expected in zip(model.predict(X_new, True), fixed.predict(X_new, True), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-8)
    assert model.log_marginal_likelihood_ == pytest.approx(fixed.log_marginal_likelihood_)


def test_a_direction_that_training_rows_do_not_determine_gives_the_whole_line():
    X, y, X_new = problem(7)
    X = np.column_stack([X, np.ones(y.size)])
    X_new = np.column_stack([X_new, [1.0, 2.0, 1.0]])
    model = fit(X, y)
    widths = np.diff(model.predict_interval(X_new, 0.8), axis=1)[:, 0]
    np.testing.assert_array_equal(np.isinf(widths), [False, True, False])
    assert model.predict_p(X_new, np.full(3, 1e6))[1] == 1.0


def test_constant_labels_give_the_constant():
    X, _, X_new = problem(8)
    with pytest.warns(UserWarning, match="reproduced exactly"):
        model = fit(X, np.full(14, 3.0))
    np.testing.assert_allclose(model.predict_interval(X_new[:2], 0.8), 3.0)
