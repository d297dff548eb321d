"""A fitted model passed on: to other processes by pickle, joblib, skops or MLflow, and to other threads as it is."""

from __future__ import annotations

import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
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
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from cases import make_data
from conformal_gp import ConformalGPRegressor, NeuralNetwork
from conformal_gp.pipeline import predict_interval
from conformal_gp.saving import dumps, loads

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
