"""Intervals through pipelines, searches and transformed targets; and scorers for searches."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 (makes the halving search importable)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, KFold, RandomizedSearchCV, cross_validate
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from cases import fixed_model, make_data
from conformal_gp import pipeline
from conformal_gp.metrics import interval_score, interval_scorer

X, Y = make_data(1, 40)
NEW, LABELS = make_data(2, 7)


def reciprocal(z):
    return 1.0 / z


def half(Z):
    return 0.5 * Z


def mapped_target(regressor, function, inverse):
    return TransformedTargetRegressor(regressor, func=function, inverse_func=inverse)


def intervals(model, new=NEW):
    """Intervals at one level and at two."""
    return [
        pipeline.predict_interval(model, new, 0.8),
        pipeline.predict_interval(model, new, [0.5, 0.8], tails="equal"),
    ]


def test_warnings_point_at_the_line_that_asks():
    model = make_pipeline(StandardScaler(), fixed_model()).fit(X, Y)
    with pytest.warns(UserWarning, match="confidence_level=0.99 needs") as caught:
        pipeline.predict_interval(model, NEW, 0.99)
    assert caught[0].filename == __file__


def assert_same(found, expected, **tolerance):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, **{"rtol": 1e-12, **tolerance})


HALVED = fixed_model().fit(half(X), Y)
PLAIN = fixed_model().fit(X, Y)
HALVING = make_pipeline(FunctionTransformer(half), fixed_model())
GRID = {"noise_variance": [0.1]}
WRAPPED = {
    "itself": (fixed_model(), PLAIN),
    "pipeline": (HALVING, HALVED),
    "steps left out": (Pipeline([("a", "passthrough"), ("b", None), ("c", fixed_model())]), PLAIN),
    "pipelines": (make_pipeline(FunctionTransformer(half), make_pipeline(fixed_model())), HALVED),
    "grid search": (GridSearchCV(fixed_model(), GRID, cv=2), PLAIN),
    "halving search": (HalvingGridSearchCV(fixed_model(), GRID, cv=2), PLAIN),
    "random search": (
        RandomizedSearchCV(HALVING, {"conformalgpregressor__noise_variance": [0.1]}, n_iter=1, cv=2),
        HALVED,
    ),
    "frozen": (FrozenEstimator(make_pipeline(FunctionTransformer(half), FrozenEstimator(HALVED))), HALVED),
    "identity of the target": (TransformedTargetRegressor(GridSearchCV(HALVING, {}, cv=2)), HALVED),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_intervals_are_those_of_the_regressor_inside(name):
    model, plain = WRAPPED[name]
    if name != "frozen":
        with pytest.raises(NotFittedError):
            pipeline.predict_interval(clone(model), NEW)
    inputs = NEW if plain is PLAIN else half(NEW)
    model = clone(model).fit(X, Y)
    np.testing.assert_array_equal(model.predict(NEW), plain.predict(inputs))
    assert_same(intervals(model), intervals(plain, inputs))


# Maps of the target


@pytest.mark.parametrize(("regressor", "plain"), [(fixed_model(), PLAIN), (HALVING, HALVED)])
def test_intervals_are_mapped_back(regressor, plain):
    model = mapped_target(regressor, np.log, np.exp).fit(X, np.exp(Y))
    expected = intervals(plain, NEW if plain is PLAIN else half(NEW))
    assert_same(intervals(model), [np.exp(ends) for ends in expected], rtol=1e-9)


@pytest.mark.parametrize("rows", [7, 1])
def test_a_decreasing_map_swaps_ends(rows):
    """1 - y has the same process as y if the mean function has a constant."""
    model = mapped_target(fixed_model(mean="constant"), lambda y: 1.0 - y, lambda z: 1.0 - z).fit(X, Y)
    plain = fixed_model(mean="constant").fit(X, Y)
    assert_same(intervals(model, NEW[:rows]), intervals(plain, NEW[:rows]), rtol=1e-7, atol=1e-9)


def test_maps_are_chained():
    """log of 1 / y: the regressor's labels are minus the logarithms."""
    inner = mapped_target(fixed_model(), np.log, np.exp)
    model = mapped_target(inner, reciprocal, reciprocal).fit(X, np.exp(-Y))
    ends = pipeline.predict_interval(model, NEW, 0.8)
    np.testing.assert_allclose(ends, np.exp(-PLAIN.predict_interval(NEW, 0.8)[:, ::-1]))


@pytest.mark.parametrize("maps", [(np.log, np.exp), (np.negative, np.negative)])
def test_infinite_ends_stay_infinite(maps):
    model = mapped_target(fixed_model(), *maps).fit(X, np.exp(Y))
    with pytest.warns(UserWarning, match="infinite"):
        np.testing.assert_array_equal(pipeline.predict_interval(model, NEW[:1], 0.99), [[-np.inf, np.inf]])


def test_a_map_that_is_not_monotone_is_an_error():
    small = 0.01 * np.exp(Y)
    for model in (
        mapped_target(fixed_model(), np.sqrt, np.square).fit(X, small),
        mapped_target(fixed_model(), reciprocal, reciprocal).fit(X, reciprocal(Y)),  # has a pole
    ):
        with pytest.raises(ValueError, match=r"transformation \(FunctionTransformer\) must be monotone"):
            pipeline.predict_interval(model, NEW, 0.8)
    kept = mapped_target(fixed_model(), np.sqrt, lambda z: np.maximum(z, 0.0) ** 2).fit(X, small)
    ends = pipeline.predict_interval(kept, NEW, 0.8)
    assert (ends[:, 0] >= 0.0).all()
    assert (ends[:, 0] == 0.0).any()


def test_models_without_intervals_are_refused():
    for model, name in (
        (LinearRegression(), "LinearRegression"),
        (make_pipeline(StandardScaler(), LinearRegression()), "LinearRegression"),
        (BaggingRegressor(fixed_model(), n_estimators=2), "BaggingRegressor"),
    ):
        with pytest.raises(ValueError, match=f"model must be a regressor with predict_interval, .* {name} is none"):
            pipeline.predict_interval(model.fit(X, Y), NEW)
    search = GridSearchCV(fixed_model(), GRID, cv=2, refit=False).fit(X, Y)
    with pytest.raises(ValueError, match="refit=False"):
        pipeline.predict_interval(search, NEW)


# Scorers


def test_the_scorer_is_minus_the_score():
    ends = PLAIN.predict_interval(NEW, 0.8)
    assert interval_scorer(0.8)(PLAIN, NEW, LABELS) == -interval_score(LABELS, ends, 0.8)
    assert pickle.loads(pickle.dumps(interval_scorer())) == interval_scorer(0.9)
    with pytest.raises(ValueError, match="confidence_level must lie strictly between 0 and 1, got 90"):
        interval_scorer(90)


def test_searches_and_cross_validation_take_the_scorer_and_known_noise():
    noise, folds = np.tile([0.01, 0.5], 30)[: Y.size], KFold(3)
    grid = {"conformalgpregressor__noise_variance": [0.1, 100.0]}
    with config_context(enable_metadata_routing=True):
        pipe = make_pipeline(FunctionTransformer(half), fixed_model().set_fit_request(y_variance=True))
        found = cross_validate(pipe, X, Y, scoring=interval_scorer(0.8), cv=folds, params={"y_variance": noise})
        search = GridSearchCV(pipe, grid, scoring=interval_scorer(0.8), cv=folds).fit(X, Y, y_variance=noise)
    for place, (train, test) in enumerate(folds.split(X)):
        model = fixed_model().fit(half(X[train]), Y[train], y_variance=noise[train])
        ends = model.predict_interval(half(X[test]), 0.8, y_variance=noise[test])
        np.testing.assert_allclose(found["test_score"][place], -interval_score(Y[test], ends, 0.8))
    assert search.best_params_ == {"conformalgpregressor__noise_variance": 0.1}
    np.testing.assert_allclose(search.best_score_, found["test_score"].mean())


@pytest.mark.parametrize("target", [None, np.cbrt])
def test_frames_of_intervals_have_the_index_of_the_inputs(target):
    frame = pd.DataFrame(NEW, index=[f"run {number}" for number in range(7)], columns=["a", "b"])
    regressor = fixed_model().fit(pd.DataFrame(X, columns=["a", "b"]), Y)
    model = make_pipeline(StandardScaler(), fixed_model())
    if target is not None:
        model = mapped_target(model, target, lambda z: z**3)
    model.fit(X, Y)
    calls = [regressor.predict_interval, lambda *given, **options: pipeline.predict_interval(model, *given, **options)]
    for call, new in zip(calls, (frame, frame.to_numpy()), strict=True):
        found = call(new, 0.8, as_frame=True)
        np.testing.assert_array_equal(found, call(new, 0.8))
        assert list(found.columns) == ["lower", "upper"]
        several = call(new, confidence_level=[0.5, 0.8], as_frame=True)
        np.testing.assert_array_equal(several[0.8], call(new, 0.8))
        assert several.columns.names == ["confidence_level", "end"]
    assert list(calls[0](frame, as_frame=True).index) == list(frame.index)
    assert list(calls[0](frame.to_numpy(), as_frame=True).index) == [*range(7)]


def test_frames_of_several_outputs_have_columns_for_each():
    frame = pd.DataFrame(X[:4], index=list("abcd"))
    model = MultiOutputRegressor(fixed_model()).fit(X, np.column_stack([Y, Y**2]))
    for levels, names in ((0.8, ["output", None]), ([0.5, 0.8], ["output", "confidence_level", "end"])):
        found = pipeline.predict_interval(model, frame, levels, as_frame=True)
        intervals = pipeline.predict_interval(model, frame, levels)
        assert list(found.index) == list("abcd")
        assert list(found.columns.names) == names
        for j in range(2):
            alone = found[j] if levels == 0.8 else found[j][0.8]
            np.testing.assert_array_equal(alone, intervals[:, j] if levels == 0.8 else intervals[:, j, :, 1])


@pytest.mark.parametrize("nest", ["pipeline", "search", "frozen"])
def test_several_outputs_inside_other_models(nest):
    targets = np.column_stack([Y, Y**2])
    scaled = StandardScaler().fit(X)
    alone = MultiOutputRegressor(fixed_model()).fit(scaled.transform(X), targets)
    model = make_pipeline(StandardScaler(), MultiOutputRegressor(fixed_model()))
    if nest == "search":
        model = GridSearchCV(model, {"multioutputregressor__estimator__mean": ["zero"]}, cv=2)
    model.fit(X, targets)
    if nest == "frozen":
        model = FrozenEstimator(model)
    expected = pipeline.predict_interval(alone, scaled.transform(NEW), 0.8)
    np.testing.assert_array_equal(pipeline.predict_interval(model, NEW, 0.8), expected)


def test_targets_of_several_outputs_are_mapped_one_by_one():
    targets = np.column_stack([Y, Y**2])
    model = TransformedTargetRegressor(MultiOutputRegressor(fixed_model()), transformer=StandardScaler())
    with pytest.raises(ValueError, match="must be inside MultiOutputRegressor"):
        pipeline.predict_interval(model.fit(X, targets), NEW)


def test_several_outputs():
    X = np.linspace(0, 3, 30)[:, None]
    Y = np.column_stack([np.sin(X[:, 0]), np.cos(X[:, 0])])
    one = fixed_model()
    both = MultiOutputRegressor(make_pipeline(StandardScaler(), one)).fit(X, Y)
    new = X[:4]
    intervals = pipeline.predict_interval(both, new, [0.8, 0.9])
    assert intervals.shape == (4, 2, 2, 2)
    for j in range(2):
        alone = make_pipeline(StandardScaler(), one).fit(X, Y[:, j])
        np.testing.assert_array_equal(intervals[:, j], pipeline.predict_interval(alone, new, [0.8, 0.9]))
