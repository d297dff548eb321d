"""Models passed on: saved files, and those that are refused; pickles, joblib, MLflow, and other threads."""

from __future__ import annotations

import json
import pickle
import re
import zipfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

pytest.importorskip("skops", reason="saved models need the extra: pip install '.[io]'")

from cases import fixed_model, make_data
from conformal_gp import ConformalGPRegressor, NeuralNetwork
from conformal_gp.pipeline import predict_interval
from conformal_gp.saving import dumps, load, loads, save

X, Y = make_data(3, 200)
NEW, LABELS = make_data(4, 40)
FRAME = pd.DataFrame({"a": X[:, 0], "ward": pd.Categorical(np.array(["u", "v", "w"])[np.arange(200) % 3])})
WAYS = ["integrated", "holdout", "train", "fixed", "low rank"]
pytestmark = pytest.mark.filterwarnings("ignore:tuning='train'")


def unfitted(way, **parameters):
    if way == "low rank":
        return ConformalGPRegressor(low_rank=20, n_restarts=0, random_state=0, **parameters)
    parameters = {"kernel": "se", "noise_variance": 0.1, **parameters}
    return ConformalGPRegressor(tuning=way, n_restarts=0, random_state=0, **parameters)


@cache
def fitted(way):
    return unfitted(way).fit(X, Y)


def answers(model):
    return model.predict(NEW), model.predict_interval(NEW, [0.8, 0.95]), model.predict_p(NEW, LABELS)


def assert_alike(expected, found):
    for answer, again in zip(expected, found, strict=True):
        np.testing.assert_array_equal(answer, again)


@pytest.mark.parametrize("way", WAYS)
def test_a_pickle_is_within_twice_the_rows_and_one_factorisation_also_after_predictions(way):
    model = fitted(way)
    expected = answers(model)
    saved = pickle.dumps(model)
    size = len(model.inducing_) if way == "low rank" else len(X)
    assert len(saved) <= 2 * (X.nbytes + Y.nbytes) + 8 * size**2
    assert len(saved) <= X.nbytes + Y.nbytes + 8192  # which is less: nothing but the rows grows with their number
    assert_alike(expected, answers(pickle.loads(saved)))


@pytest.mark.parametrize("way", WAYS)
def test_joblib_keeps_a_fitted_model(way, tmp_path):
    model = fitted(way)
    for options in ({}, {"mmap_mode": "r"}):
        joblib.dump(model, tmp_path / "model.joblib", compress=0 if options else 3)
        assert_alike(answers(model), answers(joblib.load(tmp_path / "model.joblib", **options)))


EVERY_KERNEL = (
    ConstantKernel(2.0) * RBF(1.0) ** 2
    + Matern(1.0)
    + WhiteKernel(0.1)
    + DotProduct(1.0)
    + RationalQuadratic()
    + NeuralNetwork()
    + PairwiseKernel(metric="linear")
)
MODELS = {
    "default": (ConformalGPRegressor(), X[:40], Y[:40]),
    **{way: (unfitted(way), X, Y) for way in WAYS[1:]},
    **{
        f"target_transform={target_transform}": (unfitted("holdout", target_transform=target_transform), X, np.exp(Y))
        for target_transform in ("log", "yeo-johnson")
    },
    "functions": (unfitted("low rank", target_transform=(np.log, np.exp)), X, np.exp(Y)),
    "kernels": (unfitted("fixed", kernel=EVERY_KERNEL), X, Y),
    "periodic": (unfitted("fixed", kernel=ExpSineSquared(), scale_inputs=False), X[:60, :1], Y[:60]),
    "few rows": (ConformalGPRegressor(), X[:10], np.exp(Y[:10])),
    "frame": (unfitted("holdout"), FRAME, Y),
    "generator": (
        ConformalGPRegressor(target_transform="box-cox", random_state=np.random.RandomState(0)),
        X[:60],
        np.exp(Y[:60]),
    ),
    "pipeline": (make_pipeline(PolynomialFeatures(2), unfitted("holdout")), X, Y),
}


@pytest.mark.parametrize("name", MODELS)
def test_saved_models_come_back(name):
    model, inputs, labels = MODELS[name]
    again = loads(dumps(model.fit(inputs, labels)))
    np.testing.assert_array_equal(predict_interval(again, inputs[:20]), predict_interval(model, inputs[:20]))
    if name != "pipeline":
        assert (again.guarantee_, again.get_params().keys()) == (model.guarantee_, model.get_params().keys())


@pytest.mark.parametrize("way", ["holdout", "low rank"])
def test_eight_threads_predict_from_one_model(way):
    model = fitted(way)
    expected = answers(unfitted(way).fit(X, Y))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: answers(model), range(16)))
    for one in found:
        assert_alike(expected, one)


def test_the_recipe_for_mlflow_gives_the_intervals(tmp_path, monkeypatch):
    """What the page on sharing shows: the regressor logged, and a model that returns its intervals."""
    pytest.importorskip("mlflow", reason="mlflow is not installed: pip install mlflow")
    page = (Path(__file__).parents[1] / "docs" / "guides" / "sharing.md").read_text()
    blocks = re.findall(r"```(?:python|\{code-block\} python\n:class: peer\n)\n(.*?)```", page, re.DOTALL)
    first, recipe = blocks[0], next(block for block in blocks if "import mlflow" in block)
    monkeypatch.chdir(tmp_path)  # the recipe keeps its runs in the working folder
    names = {"__name__": "__main__"}
    exec(first + recipe, names)
    assert list(names["table"].columns) == ["mean", "lower", "upper"]
    assert (names["table"]["lower"] < names["table"]["upper"]).all()


# Files: what comes back, and what is refused

RNG = np.random.default_rng(0)
FEW = RNG.normal(size=(40, 2))
FEW_Y = np.exp(np.sin(FEW[:, 0]) + 0.1 * RNG.normal(size=40))
FEW_FRAME = pd.DataFrame(
    {"a": FEW[:, 0], "kind": pd.Categorical(np.array(list("uvw"))[np.arange(40) % 3]), "flag": FEW[:, 1] > 0}
)


def test_categories_come_back(tmp_path):
    model = fixed_model().fit(FEW_FRAME, FEW_Y)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert list(again.feature_names_in_) == ["a", "kind", "flag"]
    np.testing.assert_array_equal(again.predict_interval(FEW_FRAME, 0.8), model.predict_interval(FEW_FRAME, 0.8))
    with pytest.raises(ValueError, match="did not see"):
        again.predict(FEW_FRAME.assign(kind="z"))


def test_noise_variances_and_unfitted_models_come_back(tmp_path):
    path = tmp_path / "m"
    known = np.full(40, 0.1)
    model = ConformalGPRegressor(tuning="holdout", random_state=0).fit(FEW, FEW_Y, y_variance=known)
    save(model, path)
    options = {"confidence_level": 0.8, "y_variance": known}
    np.testing.assert_array_equal(load(path).predict_interval(FEW, **options), model.predict_interval(FEW, **options))
    save(ConformalGPRegressor("rq"), path)
    assert load(path).kernel == "rq"


@pytest.mark.parametrize("imputer", [SimpleImputer(), SimpleImputer(add_indicator=True), KNNImputer()])
@pytest.mark.parametrize("nest", [make_pipeline, TransformedTargetRegressor, FrozenEstimator, "search"])
def test_pipelines_with_imputers_come_back(tmp_path, imputer, nest):
    gaps = FEW.copy()
    gaps[3, 0] = np.nan
    model = make_pipeline(imputer, fixed_model()).fit(gaps, FEW_Y)
    if nest == "search":
        model = GridSearchCV(model, {"conformalgpregressor__noise_variance": [0.1, 0.2]}, cv=2)
    else:
        model = nest(model)
    model.fit(gaps, FEW_Y)
    save(model, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(gaps), model.predict(gaps))


def test_models_that_fill_missing_values_come_back(tmp_path):
    frame = pd.DataFrame({"a": FEW[:, 0], "kind": pd.Categorical(np.where(FEW_Y > 0.0, "u", "v"))})
    frame.loc[::5, "a"] = np.nan
    frame.loc[1::6, "kind"] = None
    few = slice(None, None, max(1, len(FEW_Y) // 12))
    for model in (
        fixed_model(),
        ConformalGPRegressor(tuning="integrated"),
        make_pipeline("passthrough", fixed_model()),
    ):
        model.fit(frame[few], FEW_Y[few])
        save(model, tmp_path / "m")
        again = load(tmp_path / "m")
        np.testing.assert_array_equal(again.predict(frame[few]), model.predict(frame[few]))


def test_several_targets_come_back(tmp_path):
    model = MultiOutputRegressor(fixed_model()).fit(FEW, np.column_stack([FEW_Y, -FEW_Y]))
    save(model, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(FEW), model.predict(FEW))


NOT_OURS = [LinearRegression(), make_pipeline(StandardScaler(), Ridge()), {"a": 1}, [ConformalGPRegressor()]]


@pytest.mark.parametrize("other", NOT_OURS)
def test_only_our_models_are_saved_and_loaded(tmp_path, other):
    import skops.io

    with pytest.raises(ValueError, match=r"cannot be saved: .* is not a ConformalGPRegressor"):
        save(other, tmp_path / "m")
    skops.io.dump(other, tmp_path / "m")
    with pytest.raises(ValueError, match=r"m contains an object of type .*, which is not a ConformalGPRegressor"):
        load(tmp_path / "m")


def test_a_forged_method_is_refused(tmp_path):
    """A file that asks for a method of one of our objects in place of an attribute."""
    save(fixed_model().fit(FEW, FEW_Y), tmp_path / "m")

    def forge(schema):
        own = {key: schema[key] for key in ("__class__", "__module__")}
        return (
            own
            | {"__loader__": "MethodNode", "content": {"obj": schema, "func": "fit"}, "__id__": 1}
            | {key: schema[key] for key in ("protocol", "_skops_version") if key in schema}
        )

    _rewrite(tmp_path / "m", tmp_path / "forged", forge)
    with pytest.raises(
        ValueError, match=r"contains conformal_gp\.regressor\.ConformalGPRegressor\.fit, which is neither"
    ):
        load(tmp_path / "forged")


def _rewrite(source, target, change):
    """Copy a saved model with another schema."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for member in old.namelist():
            content = old.read(member)
            if member == "schema.json":
                content = json.dumps(change(json.loads(content))).encode()
            new.writestr(member, content)


class Foreign:
    """A type of neither this package nor scikit-learn."""

    def __init__(self, value=1):
        self.value = value


def test_foreign_types_are_refused(tmp_path):
    import skops.io

    model = fixed_model().fit(FEW, FEW_Y)
    model.extra_ = Foreign()
    with pytest.raises(ValueError, match=r"cannot be saved: it contains test_saving\.Foreign"):
        save(model, tmp_path / "m")
    assert not (tmp_path / "m").exists()
    skops.io.dump(model, tmp_path / "m")
    with pytest.raises(ValueError, match=r"m contains test_saving\.Foreign, which is neither"):
        load(tmp_path / "m")


@pytest.mark.parametrize("module", ["os", "conformal_gp.files", "builtins", "sklearn.utils.validation", "subprocess"])
def test_functions_and_what_modules_import_are_refused(tmp_path, module):
    """A forged file cannot reach a function, nor a module, through the name of one of ours."""
    name = {"os": "system", "conformal_gp.files": "os", "builtins": "eval", "subprocess": "Popen"}.get(
        module, "warnings"
    )
    save(fixed_model().fit(FEW, FEW_Y), tmp_path / "m")
    forged = tmp_path / "forged"
    _rewrite(tmp_path / "m", forged, lambda schema: schema | {"__class__": name, "__module__": module})
    with pytest.raises(ValueError, match=rf"contains {module}.{name}, which is neither"):
        load(forged)


@pytest.mark.parametrize("damage", ["truncated", "flipped", "text", "empty"])
def test_damaged_files_are_said_to_be(tmp_path, damage):
    path = tmp_path / "m"
    save(fixed_model().fit(FEW, FEW_Y), path)
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 255
    path.write_bytes({"truncated": content[:-50], "flipped": content, "text": b"a,b\n1,2\n", "empty": b""}[damage])
    with pytest.raises(ValueError, match="m is not a saved model, or is damaged"):
        load(path)


def test_without_skops_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "skops.io", None)
    with pytest.raises(ImportError, match=r"pip install '.\[io\]'"):
        save(fixed_model(), tmp_path / "m")


def test_an_old_skops_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("skops.__version__", "0.11.0")
    with pytest.raises(ImportError, match=r"need skops 0\.12 or later, got 0\.11\.0"):
        save(fixed_model(), tmp_path / "m")
