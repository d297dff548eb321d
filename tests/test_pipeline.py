"""Intervals through pipelines, searches, maps of the target and other wrappers; and scorers for searches."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, QuantileTransformer, StandardScaler

from cases import fixed_model, make_data
from conformal_gp import ConformalGPRegressor, pipeline
from conformal_gp.comparators import GaussianIntervals
from conformal_gp.metrics import coverage, coverage_scorer, interval_score, interval_scorer, mean_width, width_scorer

X, Y = make_data(1, 40)
NEW, LABELS = make_data(2, 7)
LOG = {"func": np.log, "inverse_func": np.exp}
POSITIVE = np.exp(Y)


def one_minus(z):
    return 1.0 - z


def reciprocal(z):
    return 1.0 / z


def half(Z):
    return 0.5 * Z


def answers(model, new=NEW, labels=LABELS):
    """All answers of a model by way of the functions, as a flat list of arrays."""
    return [
        pipeline.predict_interval(model, new, 0.8),
        pipeline.predict_interval(model, new, [0.5, 0.8], tails="equal"),
        *pipeline.predict_set(model, new, 0.8),
        pipeline.predict_p(model, new, labels),
        pipeline.predict_p(model, new, labels, smoothing=True, random_state=3),
        pipeline.predict_quantiles(model, new, [0.2, 0.5, 0.9]),
        pipeline.predict_quantiles(model, new, 0.9),
        pipeline.predict_bound(model, new, 0.8),
        pipeline.predict_bound(model, new, [0.6, 0.8], side="lower"),
        pipeline.predict_cdf(model, new, labels),
        pipeline.predict_distribution(model, new).steps,
    ]


def assert_same(found, expected, **tolerance):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, **{"rtol": 1e-12, **tolerance})


class Passing(RegressorMixin, BaseEstimator):
    """A wrapper of somebody else's, which holds one estimator and may shift what it predicts."""

    def __init__(self, estimator, shift=0.0):
        self.estimator = estimator
        self.shift = shift

    def fit(self, X, y):
        self.estimator_ = clone(self.estimator).fit(X, y)
        return self

    def predict(self, X):
        return self.estimator_.predict(X) + self.shift


DOUBLED = fixed_model().fit(0.5 * X, Y)
PLAIN = fixed_model().fit(X, Y)
WRAPPED = {
    "itself": (PLAIN, PLAIN),
    "pipeline": (make_pipeline(FunctionTransformer(half), fixed_model()), DOUBLED),
    "steps left out": (Pipeline([("a", "passthrough"), ("b", None), ("c", fixed_model())]), PLAIN),
    "pipelines": (make_pipeline(FunctionTransformer(half), make_pipeline("passthrough", fixed_model())), DOUBLED),
    "grid search": (GridSearchCV(fixed_model(), {"noise_variance": [0.1]}, cv=2), PLAIN),
    "random search": (
        RandomizedSearchCV(make_pipeline(FunctionTransformer(half), fixed_model()),
                           {"conformalgpregressor__noise_variance": [0.1]}, n_iter=1, cv=2), DOUBLED
    ),
    "frozen": (FrozenEstimator(PLAIN), PLAIN),
    "frozen pipeline": (FrozenEstimator(make_pipeline(FunctionTransformer(half), FrozenEstimator(DOUBLED))), DOUBLED),
    "somebody else's": (Passing(make_pipeline(FunctionTransformer(half), fixed_model())), DOUBLED),
    "identity of the target": (TransformedTargetRegressor(fixed_model()), PLAIN),
}  # fmt: skip


@pytest.mark.parametrize("name", WRAPPED)
def test_wrappers_are_walked(name):
    model, plain = WRAPPED[name]
    model.fit(X, Y)
    np.testing.assert_array_equal(model.predict(NEW), plain.predict(NEW if plain is PLAIN else 0.5 * NEW))
    assert_same(answers(model), answers(plain, NEW if plain is PLAIN else 0.5 * NEW))


def test_columns_are_transformed_inside_a_pipeline():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": np.where(X[:, 0] > 0, "u", "v")})
    columns = ColumnTransformer([("half", FunctionTransformer(half), ["a", "b"]), ("kinds", OneHotEncoder(), ["kind"])])
    pipe = make_pipeline(columns, fixed_model()).fit(frame, Y)
    encoded = np.column_stack([0.5 * X, X[:, 0] > 0, X[:, 0] <= 0])
    assert_same(answers(pipe, frame[:7], Y[:7]), answers(fixed_model().fit(encoded, Y), encoded[:7], Y[:7]))


@pytest.mark.filterwarnings("ignore:tuning='train' learns")
def test_a_selector_of_inputs_that_predicts():
    class Weighed(ConformalGPRegressor):
        @property
        def feature_importances_(self):
            return 1.0 / self.kernel_.k2.length_scale

    model = RFE(Weighed("se", tuning="train", n_restarts=0), n_features_to_select=1).fit(X, Y)
    one = X[:, model.support_]
    plain = ConformalGPRegressor("se", tuning="train", n_restarts=0).fit(one, Y)
    assert_same(answers(model), answers(plain, NEW[:, model.support_]))


# Maps of the target


@pytest.mark.parametrize("regressor", [fixed_model(), make_pipeline(FunctionTransformer(half), fixed_model())])
def test_ends_are_mapped_back(regressor):
    model = TransformedTargetRegressor(regressor, **LOG).fit(X, POSITIVE)
    plain = PLAIN if isinstance(regressor, ConformalGPRegressor) else DOUBLED
    inputs = NEW if plain is PLAIN else 0.5 * NEW
    np.testing.assert_allclose(
        pipeline.predict_interval(model, NEW, [0.5, 0.8]), np.exp(plain.predict_interval(inputs, [0.5, 0.8]))
    )
    for region, expected in zip(pipeline.predict_set(model, NEW, 0.8), plain.predict_set(inputs, 0.8), strict=True):
        np.testing.assert_allclose(region, np.exp(expected))
    np.testing.assert_allclose(pipeline.predict_p(model, NEW, np.exp(LABELS)), plain.predict_p(inputs, LABELS))
    np.testing.assert_allclose(pipeline.predict_cdf(model, NEW, np.exp(LABELS)), plain.predict_cdf(inputs, LABELS))
    np.testing.assert_allclose(
        pipeline.predict_quantiles(model, NEW, [0.2, 0.9]), np.exp(plain.predict_quantiles(inputs, [0.2, 0.9]))
    )
    np.testing.assert_allclose(
        pipeline.predict_bound(model, NEW, 0.8, "lower"), np.exp(plain.predict_bound(inputs, 0.8, "lower"))
    )
    np.testing.assert_allclose(
        pipeline.predict_distribution(model, NEW).steps, np.exp(plain.predict_distribution(inputs).steps)
    )


@pytest.mark.parametrize("rows", [7, 1])
def test_a_map_that_decreases_changes_sides(rows):
    """Labels 1 - y in a model of y are labels y in a model of 1 - y, whose mean function has no say."""
    model = TransformedTargetRegressor(fixed_model(mean="constant"), func=one_minus, inverse_func=one_minus).fit(X, Y)
    plain = fixed_model(mean="constant").fit(X, Y)
    new, labels = NEW[:rows], LABELS[:rows]
    same = answers(model, new, labels)
    expected = answers(plain, new, labels)
    random = 2 + rows + 1  # tie breaks have the other sign
    assert_same(same[:random] + same[random + 1 :], expected[:random] + expected[random + 1 :], rtol=1e-7, atol=1e-9)


def test_maps_are_chained():
    """log of 1 / y: the regressor's labels are minus the logarithms."""
    inner = TransformedTargetRegressor(fixed_model(), **LOG)
    model = TransformedTargetRegressor(inner, func=reciprocal, inverse_func=reciprocal).fit(X, np.exp(-Y))
    ends = pipeline.predict_interval(model, NEW, 0.8)
    np.testing.assert_allclose(ends, np.exp(-PLAIN.predict_interval(NEW, 0.8)[:, ::-1]))
    np.testing.assert_allclose(
        pipeline.predict_bound(model, NEW, 0.8), np.exp(-PLAIN.predict_bound(NEW, 0.8, side="lower"))
    )
    np.testing.assert_allclose(pipeline.predict_p(model, NEW, np.exp(-LABELS)), PLAIN.predict_p(NEW, LABELS))


@pytest.mark.filterwarnings("ignore:confidence_level:UserWarning", "ignore:With 40 ranked")
def test_infinite_ends_stay_infinite():
    rising = TransformedTargetRegressor(fixed_model(), **LOG).fit(X, POSITIVE)
    falling = TransformedTargetRegressor(fixed_model(), func=np.negative, inverse_func=np.negative).fit(X, Y)
    for model in (rising, falling):
        with pytest.warns(UserWarning, match="infinite"):
            np.testing.assert_array_equal(pipeline.predict_interval(model, NEW[:1], 0.99), [[-np.inf, np.inf]])
        with pytest.warns(UserWarning, match="infinite"):
            assert pipeline.predict_bound(model, NEW[:1], 0.99) == np.inf


def test_a_map_that_is_not_monotone_is_an_error():
    squares = TransformedTargetRegressor(fixed_model(), func=np.sqrt, inverse_func=np.square).fit(X, 0.01 * POSITIVE)
    with pytest.raises(ValueError, match=r"map \(FunctionTransformer\) must be monotone"):
        pipeline.predict_interval(squares, NEW, 0.8)
    held = TransformedTargetRegressor(fixed_model(), func=np.sqrt, inverse_func=lambda z: np.maximum(z, 0.0) ** 2)
    held.fit(X, 0.01 * POSITIVE)
    ends = pipeline.predict_interval(held, NEW, 0.8)
    assert (ends[:, 0] >= 0.0).all()
    assert (ends[:, 0] == 0.0).any()
    with pytest.raises(ValueError, match=r"y holds -4\.0, .*FunctionTransformer\) does not map forth and back"):
        pipeline.predict_p(held, NEW[:1], [-4.0])
    pole = TransformedTargetRegressor(fixed_model(), func=reciprocal, inverse_func=reciprocal).fit(X, reciprocal(Y))
    with pytest.raises(ValueError, match=r"map \(FunctionTransformer\) must be monotone"):
        pipeline.predict_quantiles(pole, NEW, 0.9)


def test_a_label_beyond_a_learnt_map_has_no_p_value():
    model = TransformedTargetRegressor(fixed_model(), transformer=QuantileTransformer(n_quantiles=20)).fit(X, Y)
    with pytest.raises(ValueError, match=r"y holds 100\.0, .*QuantileTransformer\) does not map forth and back"):
        pipeline.predict_p(model, NEW[:1], [100.0])


# What cannot be walked


@pytest.mark.filterwarnings("ignore:tuning='train' learns")
def test_models_without_intervals_are_refused():
    for model in (LinearRegression().fit(X, Y), make_pipeline(StandardScaler(), LinearRegression()).fit(X, Y)):
        with pytest.raises(ValueError, match="one regressor with predict_interval: LinearRegression"):
            pipeline.predict_interval(model, NEW)
    with pytest.raises(ValueError, match="BaggingRegressor has none, or several estimators"):
        pipeline.predict_set(BaggingRegressor(fixed_model(), n_estimators=2).fit(X, Y), NEW)
    with pytest.raises(ValueError, match="a regressor with predict_p, got GaussianIntervals"):
        pipeline.predict_p(GaussianIntervals().fit(X, Y), NEW, LABELS)


def test_a_wrapper_that_changes_predictions_is_refused():
    with pytest.raises(ValueError, match="Passing does more than pass rows on to its estimator_"):
        pipeline.predict_interval(Passing(fixed_model(), shift=1.0).fit(X, Y), NEW)


@pytest.mark.parametrize("name", [name for name in WRAPPED if "frozen" not in name])
def test_before_fit(name):
    with pytest.raises(NotFittedError):
        pipeline.predict_interval(clone(WRAPPED[name][0]), NEW)


def test_a_search_that_keeps_no_model():
    search = GridSearchCV(fixed_model(), {"noise_variance": [0.1]}, cv=2, refit=False).fit(X, Y)
    with pytest.raises(ValueError, match="refit=False"):
        pipeline.predict_interval(search, NEW)


# Scorers


def test_scorers_are_the_measures():
    ends = PLAIN.predict_interval(NEW, 0.8)
    assert interval_scorer(0.8)(PLAIN, NEW, LABELS) == -interval_score(LABELS, ends, 0.8)
    assert coverage_scorer(0.8)(PLAIN, NEW, LABELS) == coverage(LABELS, ends)
    assert width_scorer(0.8)(PLAIN, NEW, LABELS) == -mean_width(ends)
    assert interval_scorer() == interval_scorer(0.9)
    with pytest.raises(ValueError, match="confidence_level must lie strictly between 0 and 1, got 90"):
        interval_scorer(90)


def test_searches_and_cross_validation_take_scorers():
    pipe = make_pipeline(FunctionTransformer(half), fixed_model())
    grid = {"conformalgpregressor__noise_variance": [0.1, 100.0]}
    folds = KFold(4, shuffle=True, random_state=0)
    search = GridSearchCV(pipe, grid, scoring=interval_scorer(0.8), cv=folds).fit(X, Y)
    assert search.best_params_ == {"conformalgpregressor__noise_variance": 0.1}
    assert (search.cv_results_["mean_test_score"] < 0.0).all()
    scoring = {"score": interval_scorer(0.8), "coverage": coverage_scorer(0.8), "width": width_scorer(0.8)}
    found = cross_validate(search.best_estimator_, X, Y, scoring=scoring, cv=folds)
    np.testing.assert_allclose(found["test_score"].mean(), search.best_score_)
    assert 0.6 < found["test_coverage"].mean() <= 1.0
    assert (found["test_width"] < 0.0).all()


def test_scorers_take_known_noise_by_metadata_routing():
    noise = np.tile([0.01, 0.5], 30)[: Y.size]
    folds = KFold(3)
    scoring = {"score": interval_scorer(0.8), "coverage": coverage_scorer(0.8), "width": width_scorer(0.8)}
    with config_context(enable_metadata_routing=True):
        pipe = make_pipeline(FunctionTransformer(half), fixed_model().set_fit_request(noise_variance=True))
        found = cross_validate(pipe, X, Y, scoring=scoring, cv=folds, params={"noise_variance": noise})
        grid = {"conformalgpregressor__noise_variance": [0.1, 100.0]}
        search = GridSearchCV(pipe, grid, scoring=interval_scorer(0.8), cv=folds).fit(X, Y, noise_variance=noise)
    for place, (train, test) in enumerate(folds.split(X)):
        model = fixed_model().fit(half(X[train]), Y[train], noise_variance=noise[train])
        ends = model.predict_interval(half(X[test]), 0.8, noise_variance=noise[test])
        np.testing.assert_allclose(found["test_score"][place], -interval_score(Y[test], ends, 0.8))
        np.testing.assert_allclose(found["test_coverage"][place], coverage(Y[test], ends))
        np.testing.assert_allclose(found["test_width"][place], -mean_width(ends))
    np.testing.assert_allclose(search.best_score_, found["test_score"].mean())


def test_scorers_go_to_other_processes():
    assert pickle.loads(pickle.dumps(interval_scorer(0.8))) == interval_scorer(0.8)
