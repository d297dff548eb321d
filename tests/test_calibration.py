"""Coverage in every group, and under a known covariate shift: both are counts of the same scores by other weights."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import bags
from cases import fixed_model
from conformal_gp import ConformalGPRegressor, pipeline, rows, saving
from conformal_gp.validation import input_names

TRANSFORMED = {"target_transform": "sqrt", "y_bounds": (0.0, None)}
MODELS = {
    "integrated": {"tuning": "integrated"},
    "fixed, transformed": {"noise_variance": 0.1, **bags.FIXED, **TRANSFORMED},
    "holdout, difficulty": {"difficulty": KNeighborsRegressor(3), **TRANSFORMED, **bags.HOLDOUT},
    "low rank": bags.LOW_RANK,
    "low rank, difficulty": {"difficulty": KNeighborsRegressor(3), **bags.LOW_RANK, **TRANSFORMED},
}
CASES = [(name, gamma) for name in MODELS for gamma in ([2.0] if name == "integrated" else [1.5, 2.0, np.inf])]
pytestmark = pytest.mark.filterwarnings("ignore:likelihood_ratio leaves:UserWarning", "ignore:quantile=:UserWarning")


def data(seed, n):
    X, y = bags.noisy(np.random.default_rng(seed), n)
    return X, (y + 5.0) ** 2


def fitted(name, X, y, groups=None, **more):
    tuning_rows = {} if name.startswith(("integrated", "fixed")) else {"tuning_rows": np.arange(9)}
    with warnings.catch_warnings(action="ignore"):
        return ConformalGPRegressor(**MODELS[name] | tuning_rows | more).fit(X, y, groups=groups)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if "difficulty" in name else []) for name in MODELS]
)
def test_each_row_in_turn_is_the_test_row(name):
    """p-values are shares, in weight, of the rows of the group that score as high: 1/n_g, ..., 1 with equal weights."""
    first = 0 if name.startswith(("integrated", "fixed")) else 9
    X, y = data(7, 8 + first)
    rng = np.random.default_rng(8)
    groups, weights = np.array(list("aabbbccc" + "a" * first))[::-1], rng.exponential(size=y.size)
    weights[first + 3] = 0.0
    plain, grouped, weighted, both = np.empty((4, 8))
    for i in range(8):
        rest = np.arange(y.size) != first + i
        new = X[~rest], y[~rest]
        model, by_group = fitted(name, X[rest], y[rest]), fitted(name, X[rest], y[rest], groups[rest])
        ratio = weights[rest], weights[~rest]
        (plain[i],), (weighted[i],) = model.predict_p(*new), model.predict_p(*new, likelihood_ratio=ratio)
        (grouped[i],) = by_group.predict_p(*new, groups=groups[~rest])
        (both[i],) = by_group.predict_p(*new, groups=groups[~rest], likelihood_ratio=ratio)
    as_high = plain <= plain[:, None] + 1e-9
    same, w = groups[first:] == groups[first:, None], weights[first:]
    for label in np.unique(groups[first:]):
        own = groups[first:] == label
        np.testing.assert_allclose(np.sort(grouped[own]), np.arange(1, own.sum() + 1) / own.sum(), rtol=1e-12)
    np.testing.assert_allclose(grouped, (as_high & same).sum(axis=1) / same.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(weighted, as_high @ w / w.sum(), rtol=1e-12)
    np.testing.assert_allclose(both, (as_high & same) @ w / (same @ w), rtol=1e-12)


def test_kernel_ridge_regression_of_online_cp():
    online_cp = pytest.importorskip("online_cp", reason="online-cp is a test extra")
    X, y = data(4, 60)
    model = fixed_model(gamma=1.0, mean="zero").fit(X, y, groups=lambda X: X[:, 1] > 0)
    kernel = model.kernel_
    ridge = online_cp.KernelConformalRidgeRegressor(
        kernel=lambda A, B=None: kernel(np.atleast_2d(A), np.atleast_2d(A if B is None else B)), a=model.noise_variance_
    )
    theirs = online_cp.MondrianConformalRegressor(ridge, lambda x: x[1] > 0)
    theirs.learn_initial_training_set(X, y)
    new, _ = data(5, 8)
    expected = [theirs.predict(x, epsilon=0.2).intervals[0] for x in new]
    np.testing.assert_allclose(model.predict_interval(new, 0.8, tails="equal"), expected, rtol=1e-8)


def answers(model, X, y, **how):
    """What all predict methods say."""
    levels = [0.5, 0.75, 0.9, 0.8]
    yield from (model.predict_interval(X, levels, tails=tails, **how) for tails in ("joint", "equal"))
    yield from model.predict_set(X, 0.75, **how)
    yield from (model.predict_bound(X, levels, side=side, **how) for side in ("upper", "lower"))
    yield model.predict_quantiles(X, [0.05, 0.5, 0.25], **how)
    yield from (getattr(model, name)(X, y, **how) for name in ("predict_p", "predict_cdf"))
    yield from (getattr(model, name)(X, y, True, 1, **how) for name in ("predict_p", "predict_cdf"))
    yield model.predict_distribution(X, **how).steps


@pytest.mark.slow
@pytest.mark.parametrize(("name", "gamma"), CASES)
@pytest.mark.filterwarnings("ignore:confidence_level=:UserWarning", "ignore:invalid value:RuntimeWarning")
def test_equal_weights_and_one_group_change_nothing(name, gamma):
    """Also where (n + 1) delta is whole; and a ratio of 1 in a group and 0 elsewhere is the group."""
    n = 19 if name.startswith(("integrated", "fixed")) else 28
    (X, y), (new, labels) = data(1, n), data(2, 5)
    model, one = fitted(name, X, y, gamma=gamma), fitted(name, X, y, np.zeros(n), gamma=gamma)
    ratio = np.full(n, 0.3), np.full(5, 0.3)
    for plain, weighted, grouped in zip(
        answers(model, new, labels),
        answers(model, new, labels, likelihood_ratio=ratio),
        answers(one, new, labels, groups=np.zeros(5)),
        strict=True,
    ):
        np.testing.assert_array_equal(weighted, plain)
        np.testing.assert_array_equal(grouped, plain)
    groups = np.arange(n) % 2
    two = fitted(name, X, y, groups, gamma=gamma)
    for by_ratio, by_group in zip(
        list(answers(model, new, labels, likelihood_ratio=(groups, np.ones(5))))[:-1],
        list(answers(two, new, labels, groups=np.ones(5)))[:-1],
        strict=True,
    ):
        np.testing.assert_allclose(by_ratio, by_group, rtol=1e-12)


@pytest.mark.parametrize(("name", "gamma"), CASES)
def test_a_label_is_in_the_region_if_its_p_value_says_so(name, gamma):
    n, m = 40, 4
    (X, y), (new, _) = data(11, n), data(12, m)
    rng = np.random.default_rng(13)
    groups, new_groups = rng.permutation(n) % 2, np.arange(m) % 2
    how = {"groups": new_groups, "likelihood_ratio": (rng.exponential(size=n), rng.exponential(size=m))}
    model = fitted(name, X, y, groups, gamma=gamma)
    outer = None
    for level in (0.8, 0.5):
        regions, hulls = model.predict_set(new, level, **how), model.predict_interval(new, level, **how)
        upper = model.predict_bound(new, level, **how)
        for i, region in enumerate(regions):
            ends = region[np.isfinite(region)]
            near = [-1e-2, 1e-2] if name == "integrated" else [-1e-6, 0.0, 1e-6]  # the former puts ends outwards
            labels = np.concatenate([*np.add.outer(near, ends), np.linspace(0.1, 60.0, 80)])
            own = {"groups": np.full(labels.size, new_groups[i])}
            own["likelihood_ratio"] = how["likelihood_ratio"][0], np.full(labels.size, how["likelihood_ratio"][1][i])
            rows = np.tile(new[i], (labels.size, 1))
            p, cdf = model.predict_p(rows, labels, **own), model.predict_cdf(rows, labels, **own)
            inside = ((region[:, :1] <= labels) & (labels <= region[:, 1:])).any(axis=0)
            np.testing.assert_array_equal(inside, p > 1 - level + 1e-12)
            np.testing.assert_allclose(hulls[i], [region[0, 0], region[-1, 1]], rtol=1e-12)
            if gamma == 2.0:
                weights = how["likelihood_ratio"][0][
                    np.setdiff1d(np.flatnonzero(groups == new_groups[i]), model.tuning_rows_)
                ]
                own_share = own["likelihood_ratio"][1][0] / (weights.sum() + own["likelihood_ratio"][1][0])
                apart = np.abs(labels - upper[i]) > 1e-9  # at the bound itself the row that decides counts half
                above = 1 - cdf + 0.5 * own_share > 1 - level + 1e-9
                np.testing.assert_array_equal((labels <= upper[i])[apart], above[apart])
        if outer is not None:
            assert ((outer[:, 0] <= hulls[:, 0]) & (hulls[:, 1] <= outer[:, 1])).all()
        outer = hulls
    if name == "integrated":  # another order is another chain
        return
    order = np.r_[:9, 9 + rng.permutation(n - 9)]
    again = fitted(name, X[order], y[order], groups[order], gamma=gamma)
    how["likelihood_ratio"] = how["likelihood_ratio"][0][order], how["likelihood_ratio"][1]
    np.testing.assert_allclose(again.predict_interval(new, level, **how), hulls, rtol=1e-6)


FRAME = pd.DataFrame({"x": np.linspace(0.0, 3.0, 60), "site": ["north", "south", "south"] * 20, "z": [1.0, 2.0] * 30})
LABELS = np.sin(FRAME["x"].to_numpy()) + 0.3 * np.cos(40 * FRAME["x"].to_numpy())


def by_site(X):
    return X["site"]


def simple(**fit):
    return ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit(
        **{"X": FRAME[["x", "z"]], "y": LABELS} | fit
    )


@pytest.mark.parametrize("frame", [FRAME, pl.from_pandas(FRAME)], ids=["pandas", "polars"])
def test_a_column_a_function_and_labels_are_the_same_groups(frame, tmp_path):
    numbers = frame[["x", "z"]]
    expected = simple(X=numbers, groups=frame["site"]).predict_interval(numbers[:5], 0.8, groups=frame["site"][:5])
    model = simple(X=frame, groups="site")  # text: no input
    assert list(model.feature_names_in_) == ["x", "z"]
    model.predict(frame[:5])
    np.testing.assert_array_equal(model.predict_interval(frame[:5], 0.8), expected)
    saving.save(model, tmp_path / "model")
    np.testing.assert_array_equal(saving.load(tmp_path / "model").predict_interval(frame[:5], 0.8), expected)
    np.testing.assert_array_equal(model.predict_interval(numbers[:5], 0.8, groups=list(frame["site"][:5])), expected)
    category = FRAME.astype({"site": "category"})
    assert len(input_names(simple(X=category, groups="site"))) == 3  # an input too
    assert simple(X=numbers, groups=lambda X: X["z"] > 1).predict_interval(numbers[:3], 0.8).shape == (3, 2)
    ratio = simple(X=numbers).predict_p(numbers[:3], LABELS[:3], likelihood_ratio=lambda X: np.asarray(X["x"]) + 1.0)
    pair = FRAME["x"].to_numpy() + 1.0, FRAME["x"].to_numpy()[:3] + 1.0
    np.testing.assert_array_equal(simple(X=numbers).predict_p(numbers[:3], LABELS[:3], likelihood_ratio=pair), ratio)


def test_low_rank_models_take_functions_of_blocks(monkeypatch):
    monkeypatch.setattr(rows, "BLOCK_ROWS", 30)
    X, y = data(3, 200)
    model = ConformalGPRegressor(low_rank=20, tuning_rows=50, n_restarts=0, random_state=0).fit(X, y)

    def ratio(X):
        return np.exp(X[:, 0])

    pair = ratio(X), ratio(X[:9])
    by_function = model.predict_interval(X[:9], 0.8, likelihood_ratio=ratio)
    np.testing.assert_array_equal(model.predict_interval(X[:9], 0.8, likelihood_ratio=pair), by_function)
    weights = ratio(X[np.setdiff1d(np.arange(200), model.tuning_rows_)])
    assert model.effective_rows(ratio) == pytest.approx(weights.sum() ** 2 / (weights**2).sum())


def test_pipelines_pass_them_on():
    inside = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1)
    X, groups = FRAME[["x", "z"]].to_numpy(), FRAME["site"].to_numpy()
    model = make_pipeline(FunctionTransformer(), inside).fit(X, LABELS, conformalgpregressor__groups=groups)
    how = {"groups": groups[:4], "likelihood_ratio": (X[:, 0], X[1:5, 0])}
    expected = inside.fit(X, LABELS, groups=groups).predict_interval(X[:4], 0.8, **how)
    np.testing.assert_array_equal(pipeline.predict_interval(model, X[:4], 0.8, **how), expected)


def test_what_there_are_too_few_rows_for_is_infinite_and_said():
    X, groups = FRAME[["x", "z"]].to_numpy(), np.r_[["few"] * 8, ["many"] * 52]
    model = simple(X=X, groups=groups)
    with pytest.warns(UserWarning, match=r"confidence_level=0.9 needs at least 9 calibration rows, group 'few' has 8"):
        ends = model.predict_interval(X[:2], 0.9, groups=["many", "few"])
    assert np.isfinite(ends).tolist() == [[True, True], [False, False]]
    assert "2 groups" not in model.guarantee_  # inputs scaled: not valid in general
    assert fitted("integrated", X, LABELS, groups).guarantee_.endswith("That holds in each of 2 groups separately.")
    with warnings.catch_warnings(action="error"):  # 8 rows are enough for a row of less weight
        less = np.ones(60), np.array([0.1])
        assert np.isfinite(model.predict_interval(X[:1], 0.9, groups=["few"], likelihood_ratio=less)).all()
    ratio = np.ones(60), np.array([1.0, 7.0])
    with pytest.warns(UserWarning, match=r"=0.9 is too high for 1 of 2 rows, whose weights alone are more than 0.1 of"):
        found = simple(X=X).predict_interval(X[:2], 0.9, likelihood_ratio=ratio)
    assert np.isinf(found).all(axis=1).tolist() == [False, True]
    with pytest.warns(
        UserWarning, match=r"leaves 3.0 effective rows of the 60 calibration rows of the model"
    ) as caught:
        simple(X=X).predict_p(X[:2], LABELS[:2], likelihood_ratio=(np.arange(60) < 3, np.ones(2)))
    assert caught[0].filename == __file__
    assert model.effective_rows((np.arange(60) < 20, None)) == {"few": 8.0, "many": 12.0}
    not_calibration = fitted("holdout, difficulty", *data(1, 20), np.r_[np.zeros(9), np.ones(11)])  # tuning rows only
    assert not_calibration.predict_p(*data(2, 3), groups=[0, 0, 1])[:2].tolist() == [1.0, 1.0]
    nowhere = model.predict_p(X[:1], LABELS[:1], groups=["few"], likelihood_ratio=(groups == "many", [0.0]))
    assert nowhere.tolist() == [1.0]


def predict(X=FRAME[["x", "z"]], **how):
    return lambda model: model.predict_interval(X, 0.8, **how)


@pytest.mark.parametrize(
    ("fit", "call", "message"),
    [
        ({"groups": ["a"] * 59}, None, "groups must hold one value for each of the 60 rows, got 59"),
        ({"groups": "place"}, None, "groups is 'place', and X must be a data frame with a column of that name"),
        ({"groups": [*["a"] * 59, None]}, None, "groups has no value in row 59: got None"),
        ({"groups": np.r_[np.nan, np.ones(59)]}, None, "groups has no value in row 0: got nan"),
        ({"groups": pd.Series(["a", pd.NA] * 30)}, None, "groups has no value in row 1"),
        ({"groups": np.ones((60, 2))}, None, "groups must hold one value for each row"),
        ({"groups": [["a"]] * 60}, None, r"groups must hold one value for each row, got \['a'\] in row 0"),
        ({"groups": 3}, None, "groups must hold one value for each row, got 3"),
        ({}, predict(groups=["a"] * 60), "groups was given, but fit was called without groups"),
        ({"groups": ["a"] * 60}, predict(), "groups is needed, one for each row"),
        ({"groups": ["a"] * 60}, predict(groups=["a"]), "groups must hold one value for each of the 60 rows, got 1"),
        ({"groups": ["a"] * 60}, predict(groups=["a", "b"] * 30), "a group that fit did not see, 'b' in row 1; it saw"),
        ({}, predict(likelihood_ratio=np.ones(60)), "likelihood_ratio must be a function of X, or a pair of arrays"),
        ({}, predict(likelihood_ratio=(np.ones(59), np.ones(60))), "one number for each of the 60 training rows"),
        ({}, predict(likelihood_ratio=(np.ones(60), np.ones((60, 1)))), "one number for each of the 60 test rows"),
        ({}, predict(likelihood_ratio=(np.ones(60), -np.ones(60))), "of test rows is -1.0 in row 0; it must not be"),
        ({}, predict(likelihood_ratio=lambda X: np.full(60, np.nan)), "of training rows contains NaN in row 0"),
        ({}, predict(likelihood_ratio=(np.ones(60), np.full(60, np.inf))), "of test rows contains infinity"),
        ({}, predict(likelihood_ratio=(np.zeros(60), np.ones(60))), "likelihood_ratio is 0 for all calibration rows"),
        ({}, predict(likelihood_ratio=(["a"] * 60, np.ones(60))), "ratio of training rows must hold numbers"),
        ({"X": FRAME, "groups": "site"}, predict(FRAME, likelihood_ratio=by_site), "must be a pair of arrays"),
    ],
)  # fmt: skip
def test_bad_groups_and_ratios(fit, call, message):
    if call is None:
        with pytest.raises(ValueError, match=message):
            simple(**fit)
    else:
        model = simple(**fit)
        with pytest.raises(ValueError, match=message):
            call(model)
