"""Rows that come later: what a fit to all rows gives, at the same tuning rows; a warning where they look different."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.neighbors import KNeighborsRegressor

from cases import ArcSine, make_data
from conformal_gp import ConformalGPRegressor, saving
from conformal_gp.adapters import from_process
from conformal_gp.arrivals import LEVEL, Arrivals
from conformal_gp.gp.posterior import Posterior
from conformal_gp.models import tuning

X, Y = make_data(3, 90)
X_NEW = make_data(4, 12)[0]
FIRST = 60
DESIGN = np.arange(0, 50, 2)
NOISE = np.random.default_rng(0).uniform(0.1, 0.4, 90)
FIXED = {"tuning": "fixed", "scale_inputs": False, "noise_variance": 0.2, "mean": "constant"}
HOLDOUT = {"tuning": "holdout", "tuning_rows": DESIGN, "n_restarts": 0, "random_state": 0, "mean": "constant"}
LOW_RANK = {**HOLDOUT, "low_rank": 12}
MODELS = {
    "fixed": FIXED,
    "fixed, linear mean": {**FIXED, "mean": "linear"},
    "fixed, tuning rows": {**FIXED, "scale_inputs": True, "tuning_rows": DESIGN},
    "own noise": {**FIXED, "kernel": ConstantKernel() * Matern(1.0, nu=1.5) + WhiteKernel(0.1), "noise_variance": 0.0},
    "next to no noise": {**FIXED, "kernel": RBF(0.3), "noise_variance": 1e-11},
    "a kernel of the user's": {**FIXED, "kernel": ArcSine(1.0)},
    "holdout": HOLDOUT,
    "holdout, linear mean, gamma 1": {**HOLDOUT, "mean": "linear", "gamma": 1.0},
    "holdout, difficulty": {**HOLDOUT, "difficulty": KNeighborsRegressor(5)},
    "holdout, bounds": {**HOLDOUT, "y_bounds": (None, 9.0)},
    "low rank": LOW_RANK,
    "low rank, difficulty": {**LOW_RANK, "difficulty": KNeighborsRegressor(5), "mean": "linear"},
    "low rank, fixed": {**LOW_RANK, **FIXED},
}


def new(name, **options):
    return ConformalGPRegressor(**{**MODELS[name], **options})


def assert_same(later, whole, X_new=X_NEW, **noise):
    """Two models give the same answers."""
    np.testing.assert_allclose(later.predict(X_new), whole.predict(X_new), rtol=1e-9, atol=1e-9)
    for levels in ([0.5, 0.9], [0.8]):
        found, expected = (model.predict_interval(X_new, levels, **noise) for model in (later, whole))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    labels = np.linspace(-2.0, 2.0, len(X_new)) ** 2 + 0.1
    np.testing.assert_array_equal(*(model.predict_p(X_new, labels, **noise) for model in (later, whole)))
    for name in ("y_bounds_", "mean_coef_", "log_marginal_likelihood_", "input_range_"):
        np.testing.assert_allclose(getattr(later, name), getattr(whole, name), rtol=1e-9, atol=1e-9)
    assert later.guarantee_ == whole.guarantee_
    assert later._answers.n_calibration == whole._answers.n_calibration


@pytest.mark.parametrize("parts", [[FIRST], [FIRST, 61, 62, 80]], ids=["at once", "in parts"])
@pytest.mark.parametrize("name", MODELS)
def test_rows_that_come_later_give_what_a_fit_to_all_rows_gives(name, parts):
    later = new(name).fit(X[:FIRST], Y[:FIRST])
    for start, stop in zip(parts, [*parts[1:], 90], strict=True):
        if start % 2:
            later.predict_interval(X_NEW, 0.5)  # what was made for predictions is extended too
        later.partial_fit(X[start:stop], Y[start:stop])
    assert_same(later, new(name).fit(X, Y))
    again = pickle.loads(pickle.dumps(later)) if "user" in name else saving.loads(saving.dumps(later))
    assert_same(again.partial_fit(X_NEW, X_NEW[:, 0]), later.partial_fit(X_NEW, X_NEW[:, 0]))


@pytest.mark.parametrize("offset", [0.0, 1e5])
@pytest.mark.parametrize("name", ["holdout", "low rank"])
def test_known_noise_transformations_frames_and_offsets(name, offset):
    """Labels that are large beside their differences are measured from one of them, which later rows may change."""
    labels = np.exp(0.5 * Y) + offset
    frame = pd.DataFrame({"x": X[:, 0], "kind": pd.Categorical(np.where(X[:, 1] > 0, "a", "b"))})
    for options, rows, noise in (({"target_transform": "log"}, frame, None), ({"target_transform": None}, X, NOISE)):
        given = {} if noise is None else {"y_variance": noise[:FIRST]}
        more, whole = ({} if noise is None else {"y_variance": noise[part]} for part in (slice(FIRST, 90), slice(90)))
        later = (
            new(name, **options)
            .fit(rows[:FIRST], labels[:FIRST], **given)
            .partial_fit(rows[FIRST:], labels[FIRST:], **more)
        )
        test = {} if noise is None else {"y_variance": NOISE[:12]}
        assert_same(later, new(name, **options).fit(rows, labels, **whole), rows[:12], **test)


def test_later_rows_may_determine_a_coefficient_that_earlier_rows_do_not():
    rows = np.column_stack([X, np.r_[np.zeros(FIRST), np.ones(30)]])
    later = new("fixed, linear mean").fit(rows[:FIRST], Y[:FIRST]).partial_fit(rows[FIRST:], Y[FIRST:])
    assert_same(later, new("fixed, linear mean").fit(rows, Y), rows[::9])


def test_many_rows_of_the_default_model_are_low_rank_and_take_more(monkeypatch):
    monkeypatch.setattr("conformal_gp.models.settings.ROWS_FOR_EXACT", 50)
    options = {**HOLDOUT, "tuning": "auto"}
    later = ConformalGPRegressor(**options).fit(X[:FIRST], Y[:FIRST]).partial_fit(X[FIRST:], Y[FIRST:])
    assert later.inducing_ is not None
    assert_same(later, ConformalGPRegressor(**options).fit(X, Y))


def test_nothing_is_factorised_or_learnt_again(monkeypatch):
    model = new("holdout, difficulty").fit(X[:FIRST], Y[:FIRST])
    hyperparameters = model.kernel_, model.noise_variance_, model.difficulty_
    monkeypatch.setattr(Posterior, "_factorised", None)
    monkeypatch.setattr(tuning, "learn", None)
    model.partial_fit(X[FIRST:], Y[FIRST:])
    assert (model.kernel_, model.noise_variance_, model.difficulty_) == hyperparameters
    assert "the other 65 are calibration rows" in model.guarantee_


def test_a_process_that_was_learnt_from_its_rows_does_not_become_exact():
    model = from_process(RBF(1.0), X[:FIRST], Y[:FIRST], noise_variance=0.1).partial_fit(X[FIRST:], Y[FIRST:])
    assert model.guarantee_ == tuning.TRAIN_GUARANTEE


def test_a_model_that_is_not_fitted_is_fitted():
    np.testing.assert_array_equal(*(getattr(new("holdout"), f)(X, Y).predict(X_NEW) for f in ("fit", "partial_fit")))


BAD_ROWS = {
    "another number of columns": ((X[:, :1], Y), "X has 1 features"),
    "NaN": ((np.where(X > 1.4, np.nan, X), Y), r"no value \(NaN\) in row"),
    "another number of labels": ((X, Y[:-1]), "inconsistent numbers of samples"),
    "no labels": ((X, None), "requires y to be passed"),
    "no number": ((X, np.where(Y > 1, np.inf, Y)), r"y contains infinity \(inf\) in row"),
    "outside bounds": ((X[:2], [1.0, 99.0]), r"y has 99 in row 1, outside y_bounds"),
    "outside the domain": ((X[:2], [1.0, -1.0]), "y has -1 in row 1, and target_transform='log' takes targets above 0"),
    "noise": ((X, Y, NOISE), "y_variance was given, but fit was called without it"),
}


@pytest.mark.parametrize("name", ["holdout", "low rank"])
@pytest.mark.parametrize("bad", BAD_ROWS)
def test_rows_that_are_refused_leave_the_model_as_it_was(name, bad):
    model = new(name, target_transform="log", y_bounds=(None, 50.0)).fit(X[:FIRST], np.exp(Y[:FIRST]))
    before = dict(vars(model))
    rows, message = BAD_ROWS[bad]
    with pytest.raises(ValueError, match=message):
        model.partial_fit(*rows)
    assert vars(model) == before


def test_what_takes_no_later_rows_says_what_to_do(tmp_path):
    with pytest.warns(UserWarning, match="learns"):
        model = ConformalGPRegressor(tuning="train", n_restarts=0).fit(X[:20], Y[:20])
    with pytest.raises(ValueError, match="call fit with all rows, or give tuning='holdout'"):
        model.partial_fit(X, Y)
    mapped = np.memmap(tmp_path / "X", dtype=np.float64, mode="w+", shape=X.shape)
    mapped[:] = X
    model = new("low rank").fit(mapped, Y)
    with pytest.raises(ValueError, match="call fit with a collection of all rows, or begin with arrays in memory"):
        model.partial_fit(X, Y)
    knows = new("holdout").fit(X, Y, NOISE)
    with pytest.raises(ValueError, match="y_variance is needed, one for each row"):
        knows.partial_fit(X, Y)
    frame = pd.DataFrame({"x": X[:, 0], "kind": pd.Categorical(np.where(X[:, 1] > 0, "a", "b"))})
    model = new("holdout").fit(frame, Y)
    with pytest.raises(ValueError, match="a category that fit did not see, 'c' in row 0"):
        model.partial_fit(frame.assign(kind=pd.Categorical(["c"] * 90)), Y)


@pytest.mark.parametrize("name", ["holdout", "low rank"])
@pytest.mark.parametrize(
    "labels", [[1.0], [-1.0, 1.0], [-1.0, -2.0, 1.0]], ids=["inside", "one outside", "two outside"]
)
def test_learnt_bounds_see_later_rows(name, labels):
    positive, rows = np.exp(Y), X[FIRST : FIRST + len(labels)]
    options = {"y_bounds": "auto", "target_transform": None, "tuning_rows": np.arange(45)}
    later = new(name, **options).fit(X[:FIRST], positive[:FIRST])
    assert np.isfinite(later.y_bounds_).any()
    whole = new(name, **options)
    whole.fit(np.vstack([X[:FIRST], rows]), np.append(positive[:FIRST], labels))
    assert_same(later.partial_fit(rows, labels), whole)


@pytest.mark.parametrize("name", ["holdout", "low rank"])
@pytest.mark.parametrize("rule", [None, "kind", lambda frame: frame["kind"]], ids=["labels", "column", "function"])
def test_later_rows_have_groups_and_may_bring_new_ones(name, rule):
    kind = np.where(X[:, 1] > 0, "a", "b").astype(object)
    kind[FIRST + 5 :: 2] = "c"
    frame = pd.DataFrame({"x": X[:, 0], "kind": kind})
    rows = frame if isinstance(rule, str) else frame[["x"]] if rule is None else frame.assign(kind=kind == "a")

    def groups(part):
        return {"groups": kind[part] if rule is None else rule}

    first, more = slice(FIRST), slice(FIRST, 90)
    later = new(name).fit(rows[first], Y[first], **groups(first))
    given = groups(more) if rule is None else {}
    later.partial_fit(rows[more], Y[more], **given)
    assert_same(
        later,
        new(name).fit(rows, Y, **groups(slice(90))),
        rows[60:80],
        **({"groups": kind[60:80]} if rule is None else {}),
    )
    with pytest.raises(ValueError, match="groups is needed" if rule is None else "groups must hold one value"):
        later.partial_fit(rows[more], Y[more], groups=None if rule is None else ["a"])
    with pytest.raises(ValueError, match="groups was given, but fit was called without groups"):
        new(name).fit(X, Y).partial_fit(X, Y, groups=kind)


def test_the_difficulty_of_labels_with_an_offset_is_that_of_labels_without():
    model = new("holdout, difficulty", target_transform=None)
    plain, offset = (np.diff(model.fit(X, Y + by).predict_interval(X_NEW, 0.9)) for by in (0.0, 1e5))
    np.testing.assert_allclose(offset, plain, rtol=1e-5)


def exchangeable_rows(rng, n):
    X = rng.uniform(size=(n, 2))
    return X, np.sin(4.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)


def fitted(n=60):
    X, y = exchangeable_rows(np.random.default_rng(0), n)
    options = {"tuning": "fixed", "noise_variance": 0.01, "scale_inputs": False}
    return ConformalGPRegressor("se", **options).fit(X, y)


def test_rows_like_the_others_are_added_in_silence():
    model = fitted()
    rng = np.random.default_rng(1)
    with warnings.catch_warnings(action="error"):
        model.partial_fit(*exchangeable_rows(rng, 30))
        for _ in range(10):
            model.partial_fit(*exchangeable_rows(rng, 1))


@pytest.mark.parametrize("one_by_one", [False, True])
def test_rows_near_one_place(one_by_one):
    model = fitted()
    near = 0.1 * exchangeable_rows(np.random.default_rng(2), 25)[0] + 0.85
    targets = np.sin(4.0 * near[:, 0]) + near[:, 1]

    def add():
        if not one_by_one:
            model.partial_fit(near, targets)
            return
        for row in range(25):
            model.partial_fit(near[[row]], targets[[row]])

    with pytest.warns(UserWarning, match="differ from the calibration rows, in .*input 'x[01]'") as caught:
        add()
    assert caught[0].filename == __file__


def test_rows_with_other_errors():
    model = fitted()
    X, y = exchangeable_rows(np.random.default_rng(3), 25)
    with pytest.warns(UserWarning, match="in their errors, by more"):
        model.partial_fit(X, y + 1.0)


def test_rows_in_the_middle_alone():
    model = fitted(200)
    X, y = exchangeable_rows(np.random.default_rng(4), 40)
    with pytest.warns(UserWarning, match="input 'x0'"):
        model.partial_fit(0.5 + 0.1 * (X - 0.5), y)


def test_the_level_is_kept():
    """Warnings of exchangeable rows are about as rare as the level, whichever way rows come."""
    rng = np.random.default_rng(5)
    alarms = []
    for _ in range(4000):
        calibration = rng.standard_normal((30, 3))
        X = rng.standard_normal((12, 3))
        found = Arrivals.none(3)
        for part in np.split(X, rng.choice([1, 3, 12])):
            scores = rng.uniform(size=len(part))
            found = found.extended(scores, part, calibration)
            calibration = np.vstack([calibration, part])
        alarms.append(found.departs().size > 0)
    assert np.mean(alarms) <= 2.0 * LEVEL
