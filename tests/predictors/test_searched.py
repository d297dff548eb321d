"""The search inside the bag against brute force: searched anew on l + 1 rows for each of many candidate labels."""

import pickle
from functools import cache
from itertools import combinations, product
from math import comb, log

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from conformal_gp import ConformalGPRegressor
from conformal_gp.predictors import augmented, searched
from conformal_gp.predictors.searched import SearchedBag

LENGTHS = np.geomspace(0.1, 20.0, 12)
NOISES = np.geomspace(1e-3, 10.0, 12)
KERNEL = ConstantKernel(2.0) * Matern([1.0, 1.5, 2.0], (1e-3, 1e6), nu=2.5)


def problem(seed, l=14, n_new=3, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(l, d))
    y = 3.0 * np.sin(2.0 * X[:, 0]) + 0.3 * rng.standard_t(2, size=l)
    return X, y, rng.normal(size=(n_new, d))


class BruteForce:
    """The definition, on the rows of one bag: dense inverses, one label at a time."""

    def __init__(self, X, y, x_new, y_new, *, gamma=2.0, mean="linear", length_scale=KERNEL.k2.length_scale, nu=2.5):
        self.X, self.y = np.vstack([X, x_new]), np.append(y, y_new)
        n = self.y.size
        self.H = {"constant": np.ones((n, 1)), "linear": np.column_stack([np.ones(n), self.X])}[mean]
        self.gamma, self.length_scale, self.nu = gamma, np.asarray(length_scale), nu

    @cache  # noqa: B019
    def best_noise(self, pattern):
        """Criterion and P of a pattern: the number of a common factor, and a factor for each input."""
        common, factors = pattern
        K = Matern(self.length_scale * LENGTHS[common] * factors, nu=self.nu)(self.X)
        nu, best = self.y.size - self.H.shape[1], (np.inf, None)
        d, off, half = len(factors), factors.count(1e3), factors.count(0.5)
        handicap = (log(d) + log(comb(d, off)) if off else 0) + (log(d - off) + log(comb(d - off, half)) if half else 0)
        for noise in NOISES:
            A = K + noise * np.eye(self.y.size)
            C = np.linalg.inv(A)
            information = self.H.T @ C @ self.H
            P = C - C @ self.H @ np.linalg.solve(information, self.H.T @ C)
            value = nu * np.log(self.y @ P @ self.y) + np.linalg.slogdet(A)[1] + np.linalg.slogdet(information)[1]
            if value + 2.0 * handicap < best[0]:
                best = (value + 2.0 * handicap, P)
        return best

    def walk(self, starts, most):
        here = min(starts, key=lambda pattern: self.best_noise(pattern)[0])
        while True:
            common, factors = here
            near = [(c, factors) for c in (common - 1, common + 1) if 0 <= c < 12]
            for i, factor in enumerate(factors):
                for other in {0.5: [1.0], 1.0: [0.5, 1e3], 1e3: [1.0]}[factor]:
                    near.append((common, (*factors[:i], other, *factors[i + 1 :])))
            near = [p for p in near if sum(f < 1e3 for f in p[1]) <= most]
            best = min(near, key=lambda pattern: self.best_noise(pattern)[0])
            if self.best_noise(best)[0] >= self.best_noise(here)[0] - 1e-10:
                return here
            here = best

    def scores(self, P):
        return np.abs(P @ self.y) / np.diag(P) ** (1 - 1 / self.gamma)

    def p_value(self):
        d = self.X.shape[1]
        alike = [(common, (1.0,) * d) for common in range(12)]
        single = [(c, tuple(1.0 if i == j else 1e3 for i in range(d))) for c, j in product((2, 4, 6, 8), range(d))]
        if d >= 4:
            single += [(4, tuple(1.0 if i in pair else 1e3 for i in range(d))) for pair in combinations(range(d), 2)]
        first = self.scores(min(map(self.best_noise, alike), key=lambda found: found[0])[1])
        top = first >= first.max() * (1 - 1e-11)
        if top[-1] and top.sum() == 1:
            return 1.0 / top.size
        end = self.walk([self.walk(single, d // 2), *alike], d)
        scores = self.scores(self.best_noise(end)[1])
        scores[:-1][top[:-1]] = np.inf
        return np.mean(scores >= scores[-1] * (1 - 1e-10))


@pytest.mark.parametrize(("mean", "gamma"), [("linear", 2.0), ("constant", 2.0), ("constant", 1.0), ("constant", 3.0)])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_region_and_p_values_equal_brute_force(seed, mean, gamma):
    X, y, X_new = problem(seed)
    model = ConformalGPRegressor(KERNEL, mean=mean, gamma=gamma, tuning="augmented", scale_inputs=False).fit(X, y)
    for x, region in zip(X_new, model.predict_set(X_new, 0.8), strict=True):
        ends = region[np.isfinite(region)]
        labels = np.concatenate([np.linspace(-9, 9, 13), ends - 1e-8 * (1 + abs(ends)), ends + 1e-8 * (1 + abs(ends))])
        expected = [BruteForce(X, y, x, label, mean=mean, gamma=gamma).p_value() for label in labels]
        np.testing.assert_allclose(model.predict_p(np.tile(x, (labels.size, 1)), labels), expected, rtol=1e-12)
        inside = ((labels[:, None] >= region[:, 0]) & (labels[:, None] <= region[:, 1])).any(axis=1)
        np.testing.assert_array_equal(inside, np.array(expected) > 0.2 + 1e-12)


def test_pairs_of_inputs_equal_brute_force():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 4))
    y = 2.0 * np.sin(2.0 * X[:, 0]) * X[:, 2] + 0.1 * rng.normal(size=20)
    kernel = Matern(np.ones(4), (1e-3, 1e6), nu=2.5)
    model = ConformalGPRegressor(kernel, mean="constant", tuning="augmented", scale_inputs=False).fit(X, y)
    x = rng.normal(size=4)
    labels = np.linspace(-4, 4, 17)
    expected = [BruteForce(X, y, x, y_new, mean="constant", length_scale=np.ones(4)).p_value() for y_new in labels]
    np.testing.assert_allclose(model.predict_p(np.tile(x, (17, 1)), labels), expected, rtol=1e-12)


def fit(X, y, kernel=KERNEL, **settings):
    return ConformalGPRegressor(kernel, tuning="augmented", **settings).fit(X, y)


def test_equal_rows_and_labels_tie():
    X, y, X_new = problem(4, l=10)
    X, y = np.vstack([X, X[:4]]), np.append(y, y[:4])
    model = fit(X, y, mean="constant", scale_inputs=False)
    x_new = np.vstack([X_new, X[:2]])
    for x in x_new:
        labels = np.append(np.linspace(-6, 6, 7), y[:2])
        expected = [BruteForce(X, y, x, label, mean="constant").p_value() for label in labels]
        np.testing.assert_allclose(model.predict_p(np.tile(x, (labels.size, 1)), labels), expected, rtol=1e-12)


def test_inputs_are_scaled_inside_the_bag():
    X, y, X_new = problem(5)
    units = np.array([1.0, 300.0, 0.02])
    model = fit(X * units, y, mean="constant")
    for x, label in zip(X_new, [0.0, 2.0, -1.0], strict=True):
        bag = np.vstack([X, x]) * units
        scaled = bag / np.sqrt(2.0) ** np.round(np.log(bag.std(axis=0)) / np.log(np.sqrt(2.0)))
        expected = BruteForce(scaled[:-1], y, scaled[-1], label, mean="constant").p_value()
        assert model.predict_p((x * units)[None, :], [label])[0] == pytest.approx(expected)


def test_regions_nest_and_hold_the_labels_whose_p_value_exceeds_delta():
    X, y, X_new = problem(6, l=29, n_new=6)
    model = fit(X, y)
    labels = np.linspace(-5, 5, 41)
    p = model.predict_p(np.repeat(X_new, labels.size, axis=0), np.tile(labels, X_new.shape[0])).reshape(-1, 41)
    for level in (0.5, 0.8, 0.9):
        for row, region in zip(p, model.predict_set(X_new, level), strict=True):
            inside = ((labels[:, None] >= region[:, 0]) & (labels[:, None] <= region[:, 1])).any(axis=1)
            np.testing.assert_array_equal(inside, row > 1 - level + 1e-12)
    ends = model.predict_interval(X_new, [0.5, 0.8, 0.9, 0.95])
    assert (np.diff(ends[:, 0], axis=1) <= 0).all()
    assert (np.diff(ends[:, 1], axis=1) >= 0).all()


def test_order_and_units_do_not_matter():
    X, y, X_new = problem(7, l=24, n_new=5)
    order = np.random.default_rng(0).permutation(y.size)
    ends = fit(X, y).predict_interval(X_new, [0.8, 0.9])
    np.testing.assert_allclose(fit(X[order], y[order]).predict_interval(X_new, [0.8, 0.9]), ends, rtol=1e-8)
    np.testing.assert_allclose(fit(X, 7.0 - 30.0 * y).predict_interval(X_new, [0.8, 0.9])[:, ::-1], 7 - 30 * ends)


def test_test_rows_threads_blocks_and_memory_do_not_matter(monkeypatch):
    X, y, X_new = problem(8, l=24, n_new=9)
    labels = np.linspace(-3, 3, 9)
    model = fit(X, y)
    ends, p = model.predict_interval(X_new, [0.8, 0.9]), model.predict_p(X_new, labels)
    alone = np.vstack([fit(X, y).predict_interval(x[None, :], [0.8, 0.9]) for x in X_new])
    np.testing.assert_allclose(alone, ends, rtol=1e-9)
    monkeypatch.setattr(searched, "KEPT_BYTES", 0)
    monkeypatch.setattr(augmented, "SEARCHED_ROWS", 2)
    frugal = fit(X, y, n_jobs=2)
    np.testing.assert_allclose(frugal.predict_interval(X_new, [0.8, 0.9]), ends, rtol=1e-9)
    np.testing.assert_array_equal(frugal.predict_p(X_new, labels), p)
    assert len(frugal._predictor.main._posteriors) == 1


@pytest.mark.parametrize("seed", range(4))
def test_pruned_and_unpruned_agree(seed):
    X, y, X_new = problem(20 + seed, l=19, n_new=8)
    model = fit(X, y, mean="constant")
    levels = [0.5, 0.8, 0.9, 0.95]
    pruned = model.predict_interval(X_new, levels), [model.predict_interval(X_new, level) for level in levels]
    model._predictor._prune = False
    full = model.predict_interval(X_new, levels)
    np.testing.assert_allclose(pruned[0], full, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.stack(pruned[1], axis=-1), full, rtol=1e-12, atol=1e-12)


def test_inputs_that_do_not_matter_are_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    y = 2.0 * np.sin(2.0 * X[:, 1]) * X[:, 4] + 0.1 * rng.normal(size=60)
    model = fit(X, y, RBF(np.ones(6), (1e-3, 1e9)))
    lengths = model.kernel_.k2.length_scale
    assert lengths[[1, 4]].max() < 0.01 * lengths[[0, 2, 3, 5]].min()
    alike = ConformalGPRegressor("se", tuning="augmented").fit(X, y)
    X_new = rng.normal(size=(20, 6))
    widths = [np.diff(m.predict_interval(X_new, 0.9), axis=1).mean() for m in (model, alike)]
    assert widths[0] < 0.6 * widths[1]


def test_plain_predictions_are_those_of_the_kernel_that_is_reported():
    X, y, X_new = problem(9, l=24)
    model = fit(X, y, scale_inputs=False)
    fixed = ConformalGPRegressor(
        model.kernel_, noise_variance=model.noise_variance_, tuning="fixed", scale_inputs=False
    ).fit(X, y)
    for found, expected in zip(model.predict(X_new, True), fixed.predict(X_new, True), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-8)
    assert model.log_marginal_likelihood_ == pytest.approx(fixed.log_marginal_likelihood_)
    assert model.design_.size == 0
    assert model.guarantee_.startswith("Exact")


def test_labels_far_off_need_no_search():
    X, y, X_new = problem(10, l=24)
    model = fit(X, y, scale_inputs=False)
    known = len(model._predictor.main._criteria)
    np.testing.assert_allclose(model.predict_p(X_new, np.full(3, 1e6)), 1 / 25)
    assert len(model._predictor.main._criteria) == known


def test_pickles_are_small_and_answer_alike():
    X, y, X_new = problem(11, l=24)
    model = fit(X, y)
    ends = model.predict_interval(X_new, 0.8)
    pickled = pickle.dumps(model)
    assert len(pickled) < 0.5 * sum(p._U.nbytes for p in model._predictor.main._posteriors.values())
    np.testing.assert_array_equal(pickle.loads(pickled).predict_interval(X_new, 0.8), ends)


def test_an_empty_region_is_an_interval_without_width_inside_the_wider_ones():
    levels = np.array([0.02, 0.1, 0.3, 0.5, 0.8])
    n_empty = 0
    for seed in (1, 16, 19):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(14, 3))
        y = 3 * np.sin(2 * X[:, 0]) + 0.3 * rng.standard_t(2, size=14)
        X_new = rng.normal(size=(60, 3))
        model = fit(X, y, RBF(np.ones(3)), mean="constant")
        ends = model.predict_interval(X_new, levels)
        assert (np.diff(ends[:, 0], axis=1) <= 0).all()
        assert (np.diff(ends[:, 1], axis=1) >= 0).all()
        for level, at_level in zip(levels, np.moveaxis(ends, -1, 0), strict=True):
            empty = [region.shape[0] == 0 for region in model.predict_set(X_new, level)]
            np.testing.assert_array_equal(at_level[:, 0] == at_level[:, 1], empty)
            n_empty += sum(empty)
    assert n_empty > 0


def test_constant_labels_give_the_constant():
    X, _, X_new = problem(13)
    with pytest.warns(UserWarning, match="reproduced exactly"):
        model = fit(X, np.full(14, 3.0), mean="constant")
    np.testing.assert_allclose(model.predict_interval(X_new, 0.8), 3.0)
    np.testing.assert_allclose(model.predict_p(X_new, [3.0, 3.1, 2.0]), [1.0, 1 / 15, 1 / 15])


def test_design_rows_that_are_asked_for_propose_instead():
    X, y, _ = problem(14, l=30)
    model = fit(X, y, design=0.3, n_restarts=0, random_state=0)
    assert model.design_.size == 9
    assert "design rows" in model.guarantee_


@pytest.mark.parametrize(("l", "d", "searched"), [(40, 3, True), (201, 3, False), (60, 20, True), (60, 21, False)])
def test_the_search_is_for_so_many_rows_and_inputs(l, d, searched):
    rng = np.random.default_rng(15)
    X, y = rng.normal(size=(l, d)), rng.normal(size=l)
    model = fit(X, y, RBF(np.ones(d)), mean="constant", n_restarts=0, random_state=0)
    assert isinstance(model._predictor.main, SearchedBag) is searched
    assert (model.design_.size == 0) is searched


def test_a_direction_that_training_rows_do_not_determine_gives_the_whole_line():
    X, y, X_new = problem(16)
    X[:, 1] = 1.0
    X_new[:, 1] = [1.0, 2.0, 1.0]
    model = fit(X, y)
    widths = np.diff(model.predict_interval(X_new, 0.8), axis=1)[:, 0]
    np.testing.assert_array_equal(np.isinf(widths), [False, True, False])
    assert model.predict_p(X_new[1:2], [1e6])[0] == 1.0
    assert np.isinf(model.predict_interval(X_new[1:2], 0.8)).all()
