"""A list of candidates inside the bag: answers over all labels are what brute force finds at each."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

import bag_oracle
import bags
from cases import contains
from conformal_gp import ConformalGPRegressor
from conformal_gp.predictors.bag import Candidate
from conformal_gp.predictors.base import union
from conformal_gp.predictors.envelope import Parabolas, lower_envelope

CANDIDATES = [(RBF(length), noise) for length in (0.3, 1.0, 3.0) for noise in (1e-3, 0.1)]
SUM = ConstantKernel() * RBF([1.0, 1.0]) + ConstantKernel() * DotProduct()
# kernels, means, gammas and scalings, each pair of a kernel and something else somewhere
CASES = {
    "default": {},
    "linear mean": {"mean": "linear", "gamma": 1.0},
    "one length scale": {"kernel": "se", "length_scales": "one", "gamma": np.inf},
    "rq": {"kernel": "rq", "mean": "zero"},
    "nn": {"kernel": "nn", "mean": "linear", "gamma": 3.0},
    "several": {"kernel": ["se", Matern([1.0, 2.0], nu=1.5)], "mean": "linear"},
    "sum": {"kernel": SUM, "gamma": 1.0},
    "no noise": {"noise_variance": 0.0},
    "unscaled": {"scale_inputs": False, "mean": "zero", "gamma": 3.0},
    "design": {"design": [3, 4, 9], "tuning": "augmented"},
    "candidates": {"candidates": CANDIDATES},
    "candidates, zero mean": {"candidates": CANDIDATES, "mean": "zero", "scale_inputs": False, "gamma": np.inf},
    "candidates, linear mean": {"candidates": CANDIDATES, "mean": "linear", "design": [0, 1], "gamma": 1.0},
    "candidates, sum": {"candidates": [(SUM, 0.1), (clone(SUM).set_params(k1__k2__length_scale=[0.3, 3.0]), 0.1)]},
}
KNOWN = {
    "candidates": CANDIDATES,
    "linear mean": [(ConstantKernel(amplitude) * RBF(1.0), 0.05) for amplitude in (0.3, 1.0, 10.0)],
}


def rows(seed, l, noise=0.2, d=2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (l + 4, d))
    y = np.sin(2 * X[:, 0]) + 0.3 * X[:, -1] + noise * rng.standard_normal(l + 4)
    return X[:l], y[:l], X[l:], y[l:]


def fitted(options, l=15, seed=0):
    """A model, and the bag of its first test row by brute force."""
    X, y, X_new, _ = rows(seed, l)
    options = {"mean": "constant", **options}
    model = ConformalGPRegressor(**options).fit(X, y)
    assert model.tuning_ == "augmented"
    given = {name: options[name] for name in ("mean", "gamma", "scale_inputs") if name in options}
    ranked = np.setdiff1d(np.arange(l), model.design_)
    return model, bag_oracle.Bag(model._result.candidates, X, y, X_new[0], ranked=ranked, **given), X_new[:1]


@pytest.mark.parametrize("name", CASES)
def test_p_values_regions_and_bounds_equal_brute_force(name):
    model, bag, x = fitted(CASES[name])
    n = bag.ranked.size
    (region,) = model.predict_set(x, 0.7)
    labels = np.concatenate([bag_oracle.labels_about(region), model.predict(x) + np.linspace(-2, 2, 6)])
    p = model.predict_p(np.repeat(x, labels.size, axis=0), labels)
    np.testing.assert_allclose(p, [bag.p_value(label) for label in labels], atol=1e-12)
    for label, value in zip(labels, p, strict=True):
        assert contains(region, label) == (value > 0.3 + 1e-9), (label, value, region)
    np.testing.assert_allclose(model.predict_interval(x, 0.7)[0], [region[0, 0], region[-1, 1]], rtol=1e-13)
    low, high = (model.predict_bound(x, 0.7, side=side)[0] for side in ("lower", "upper"))
    k = int(0.3 * (n + 1) + 1e-9)
    step = 1e-7 * (1 + np.abs([low, high]).max())
    for distance in (0.0, 0.3, 2.0):
        assert n - bag.signed_counts(high + step + distance)[0] < k
        assert n - bag.signed_counts(low - step - distance)[1] < k
    assert n - bag.signed_counts(high - step)[0] >= k
    assert n - bag.signed_counts(low + step)[1] >= k
    fewer, more = np.transpose([bag.signed_counts(label) for label in labels])
    cdf = model.predict_cdf(np.repeat(x, labels.size, axis=0), labels)
    np.testing.assert_allclose(cdf, (fewer + 0.5 * (n + 1 - fewer - more)) / (n + 1), atol=1e-12)


@pytest.mark.parametrize("gamma", [1.5, 2.0])
@pytest.mark.parametrize("name", KNOWN)
def test_known_noise_with_candidates_equals_brute_force(name, gamma):
    X, y, X_new, _ = rows(1, 15)
    known = 0.1 * np.exp(np.random.default_rng(1).standard_normal(16))
    mean = "linear" if name == "linear mean" else "constant"
    model = ConformalGPRegressor(candidates=KNOWN[name], mean=mean, gamma=gamma)
    model.fit(X, y, noise_variance=known[:-1])
    bag = bag_oracle.Bag(KNOWN[name], X, y, X_new[0], mean=mean, gamma=gamma, known=known)
    (region,) = model.predict_set(X_new[:1], 0.7, noise_variance=known[-1:])
    for label in bag_oracle.labels_about(region):
        p = bag.p_value(label)
        assert model.predict_p(X_new[:1], [label], noise_variance=known[-1:])[0] == pytest.approx(p)
        assert contains(region, label) == (p > 0.3 + 1e-9)


def test_the_list_keeps_what_an_object_fixes_and_its_proportions():
    X, y, _, _ = rows(2, 20)
    kernel = ConstantKernel(1.0) * RBF([1.0, 4.0]) + ConstantKernel(0.5) * RBF(3.0, "fixed")
    candidates = ConformalGPRegressor(kernel).fit(X, y)._result.candidates
    lengths = np.array([candidate.kernel.k1.k2.length_scale for candidate in candidates])
    np.testing.assert_allclose(lengths[:, 1], 4.0 * lengths[:, 0])
    assert {candidate.kernel.k2.k2.length_scale for candidate in candidates} == {3.0}
    assert len({candidate.noise_variance for candidate in candidates}) > 5
    assert all(isinstance(candidate, Candidate) for candidate in candidates)


@pytest.mark.parametrize("options", [{}, {"gamma": 3.0}, {"kernel": ["se", "matern32"]}, {"candidates": CANDIDATES}])
def test_regions_nest_and_hold_the_labels_whose_p_value_exceeds_delta(options):
    X, y, X_new, _ = rows(3, 29)
    model = ConformalGPRegressor(**options).fit(X, y)
    levels = [0.5, 0.8, 0.9]
    intervals, regions = model.predict_interval(X_new, levels), [model.predict_set(X_new, level) for level in levels]
    for j, x in enumerate(X_new):
        labels = model.predict(x[None])[0] + y.std() * np.linspace(-2, 2, 41)
        p = model.predict_p(np.repeat(x[None], labels.size, axis=0), labels)
        for label, value in zip(labels, p, strict=True):
            inside = [contains(region[j], label) for region in regions]
            assert inside == [value > 1 - level + 1e-9 for level in levels]
        for region, hull in zip(regions, intervals[j].T, strict=True):
            np.testing.assert_allclose(hull, [region[j][0, 0], region[j][-1, 1]], rtol=1e-12)


@pytest.mark.parametrize("gamma", [1.0, 3.0, np.inf])
def test_regions_with_holes(gamma):
    """Few rows with little noise, whose scores may move faster with the label than the test row's."""
    shapes = set()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = rng.uniform(-1.5, 1.5, (5, 1)), rng.normal(size=5)
        options = {"candidates": [(RBF(1.0), 0.01), (RBF(0.4), 0.01)], "mean": "zero", "scale_inputs": False}
        model = ConformalGPRegressor(gamma=gamma, **options).fit(X, y)
        for x in np.array([[-1.9], [0.1], [1.0]]):
            bag = bag_oracle.Bag(options["candidates"], X, y, x, "zero", gamma, scale_inputs=False)
            (region,) = model.predict_set(x[None], 0.5)
            shapes.add(len(region))
            hull = model.predict_interval(x[None], [0.4, 0.5])[0, :, 1]
            np.testing.assert_allclose(hull, [region[0, 0], region[-1, 1]], rtol=1e-12)
            labels = bag_oracle.labels_about(region) if np.isfinite(region).any() else np.linspace(-5, 5, 9)
            for label in labels:
                assert contains(region, label) == (bag.p_value(label) > 0.5 + 1e-9), (label, region)
    assert max(shapes) > 1


@pytest.mark.parametrize("factors", [[2.0, 0.25], [1024.0, 8.0]])
def test_units_of_inputs_do_not_matter_to_powers_of_two(factors):
    X, y, X_new, _ = rows(6, 30)
    one, other = (
        ConformalGPRegressor().fit(X * f + 1.0, y).predict_interval(X_new * f + 1.0, 0.9)
        for f in (np.ones(2), np.array(factors))
    )
    np.testing.assert_allclose(one, other, rtol=1e-8)


def test_design_rows_choose_gamma_and_are_not_ranked():
    X, y, X_new, _ = rows(9, 30)
    model = ConformalGPRegressor(tuning="augmented", gamma=[1.0, 2.0, np.inf], random_state=0).fit(X, y)
    assert model.design_.size == 6
    alone = ConformalGPRegressor(tuning="augmented", gamma=model.gamma_, design=model.design_, warp=None).fit(X, y)
    np.testing.assert_array_equal(model.predict_interval(X_new, 0.8), alone.predict_interval(X_new, 0.8))


# Corners


@pytest.mark.parametrize("n", [25, 40])
def test_no_slivers_and_order_and_batch_change_ends_by_rounding_only(n):
    """No piece narrower than 1e-9 of the hull that p-values do not support, and all others where others find them."""
    for seed, mean in enumerate(["constant", "zero", "linear", "linear"]):
        X, y, X_new, _ = rows(seed, n, noise=(0.3, 0.05)[seed % 2], d=1 + seed % 3)
        X_new = np.vstack([X_new, np.random.default_rng(seed).uniform(-2, 2, (16, X.shape[1]))])
        order = np.random.default_rng(seed).permutation(n)
        model = ConformalGPRegressor(mean=mean, tuning="augmented").fit(X, y)
        shuffled = ConformalGPRegressor(mean=mean, tuning="augmented").fit(X[order], y[order])
        batch, other = (each.predict_set(X_new, 0.9) for each in (model, shuffled))
        single = [model.predict_set(x[None], 0.9)[0] for x in X_new]
        for x, region, *again in zip(X_new, batch, other, single, strict=True):
            for found in again:  # a choice between two candidates of noise 1e-10 is known to 1e-8
                np.testing.assert_allclose(found, region, rtol=1e-8, atol=1e-8 * np.abs(y).max())
            middles = region.mean(axis=1)
            narrow = np.diff(region)[:, 0] < 1e-9 * np.ptp(region)
            assert (model.predict_p(np.repeat(x[None], middles.size, axis=0), middles) > 0.1 + 1e-9).all()
            assert not narrow.any()


def in_turn(X, y, **options):
    """p-values times the number of rows, each row that is no design row in turn the test row."""
    design = np.asarray(options.get("design", []))
    found = []
    for i in np.setdiff1d(np.arange(y.size), design):
        rest = np.arange(y.size) != i
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # of labels that the mean explains
            model = ConformalGPRegressor(noise_variance=0, n_restarts=0, random_state=0, **options)
            found.append(model.fit(X[rest], y[rest]).predict_p(X[i : i + 1], y[i : i + 1])[0])
        assert model.guarantee_.startswith("Exact")
    return np.sort(found) * len(found)


@pytest.mark.parametrize("options", [{"tuning": "augmented"}, {"tuning": "holdout", "design": np.arange(30)}])
def test_labels_that_the_mean_explains_exactly_with_inputs_in_tight_clusters(options):
    rng = np.random.default_rng(0)
    X = rng.permutation(np.append(rng.uniform(0, 1e-3, 30), 1 + rng.uniform(0, 1e-3, 30)))[:, None]
    found = in_turn(X, 3.0 * X[:, 0] + 1.0, mean="linear", **options)
    assert (found >= np.arange(1, found.size + 1) - 1e-9).all()


@pytest.mark.parametrize("options", [{"tuning": "augmented"}, {"tuning": "holdout", "design": np.arange(8)}])
@pytest.mark.parametrize("mean", ["zero", "constant"])
@pytest.mark.parametrize("label", [0.0, 7.3])
def test_labels_that_are_all_equal_but_one_without_noise(label, mean, options):
    X, _, _, _ = rows(7, 20)
    for odd in (0, 19):
        y = np.full(20, label)
        y[odd] += 1.0
        found = in_turn(X, y, mean=mean, **options)
        assert (found >= np.arange(1, found.size + 1) - 1e-9).all()


@pytest.mark.parametrize(("tuning", "tolerance"), [("augmented", 1e-4), ("holdout", 1e-8)])
@pytest.mark.parametrize("near", [False, True])
def test_noisy_labels_without_noise_in_the_model_in_batch_and_alone(near, tuning, tolerance):
    """The matrix is as badly conditioned as it gets; choices among candidates are known to a few digits less."""
    X, y, X_new, _ = rows(8, 40, noise=0.3)
    if near:
        X[1] = X[0] + 1e-7
    model = ConformalGPRegressor("se", tuning=tuning, noise_variance=0, n_restarts=0, random_state=0).fit(X, y)
    batch = model.predict_interval(X_new, 0.8)
    alone = np.concatenate([model.predict_interval(x[None], 0.8) for x in X_new])
    assert (np.abs(batch - alone) <= tolerance * np.diff(batch)).all()
    for end in (*batch.T, *alone.T):
        assert (model.predict_p(X_new, end) > 0.2 + 1e-9).all()


def test_a_bag_whose_inputs_are_too_far_out_for_the_list_is_refused():
    X, y = bags.far_out_input(np.random.default_rng(0), 12)
    with pytest.raises(np.linalg.LinAlgError, match="no candidate has noise enough"):
        ConformalGPRegressor(candidates=[(ConstantKernel() * DotProduct(), 1e-6)], scale_inputs=False).fit(X, y)


# Envelopes


def random_parabolas(rng, G):
    """Parabolas of three test rows, some of them nearly equal, some that cannot be chosen."""
    vertex = rng.standard_normal((3, G))
    steepness, level = (np.exp(rng.choice([0.0, 0.01, 1.0]) * rng.standard_normal((3, G))) for _ in range(2))
    if rng.random() < 0.3:
        half = G // 2
        vertex[:, half : 2 * half] = vertex[:, :half] * (1 + 1e-9)
        steepness[:, half : 2 * half], level[:, half : 2 * half] = steepness[:, :half], level[:, :half]
    if rng.random() < 0.3:
        steepness[:, 1::7] = level[:, 1::7] = np.inf
    return Parabolas(vertex, steepness, level)


def test_the_lower_envelope_is_that_of_dense_evaluation():
    rng = np.random.default_rng(0)
    for _ in range(150):
        parabolas = random_parabolas(rng, int(rng.integers(1, 120)))
        segments = lower_envelope(parabolas)
        labels = np.append(5.0 * rng.standard_normal(200), 1e4 * rng.standard_normal(20))
        for row in range(3):
            own = segments.take(np.flatnonzero(segments.row == row))
            np.testing.assert_array_equal(own.low, [-np.inf, *own.high[:-1]])
            assert own.high[-1] == np.inf
            values = Parabolas(*(part[[row]] for part in parabolas)).at(labels)
            chosen = own.candidate[np.searchsorted(own.high, labels)]
            least = values.min(axis=1)
            assert (values[np.arange(labels.size), chosen] <= (1 + 1e-9) * least).all()


def test_pieces_that_touch_are_one():
    pieces = np.array([[0.8892479413911565, 1.0], [-np.inf, 0.8892479413911565], [1.001, 2.0]])
    np.testing.assert_array_equal(union(pieces), [[-np.inf, 1.0], [1.001, 2.0]])
