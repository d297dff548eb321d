"""Saved models: the same answers after loading, and a clear word for any other file."""

import io
import json
import zipfile

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)

from conformal_gp import ConformalGPRegressor, NeuralNetwork, SparseConformalGPRegressor, sparse
from conformal_gp.kernels import KERNEL_NAMES
from conformal_gp.persistence import load_columns, load_model, save_model
from conformal_gp.persistence.archive import FORMAT_VERSION
from conformal_gp.persistence.model import Model
from conformal_gp.persistence.values import to_json
from conformal_gp.tables.columns import Column, Columns
from conformal_gp.tuning import low_rank
from saved_models import NEW, Own, X, Y, assert_same_answers, loaded, saved, small

OBJECTS = {
    "sum": 2.0 * RBF([1.0, 2.0]) + WhiteKernel(0.1),
    "product": ConstantKernel(1.5, "fixed") * RBF(1.0, (1e-2, 1e2)) * RationalQuadratic(1.0, 0.5),
    "power": Exponentiation(DotProduct(1.0) + 0.5 * Matern([0.5, 1.5], nu=1.5), 2.0),
    "periodic": 0.1 * ExpSineSquared(5.0, 30.0, periodicity_bounds="fixed") + 0.1 * Matern(nu=np.inf),
    "pairwise": PairwiseKernel(gamma=0.3, metric="rbf", gamma_bounds=np.array([1e-3, 1e3])),
    "network": 2.0 * NeuralNetwork(0.7, "fixed"),
}


@pytest.mark.parametrize("tuning", ["fixed", "train", "holdout", "augmented"])
@pytest.mark.parametrize("kernel", KERNEL_NAMES)
@pytest.mark.filterwarnings("ignore:tuning='train' learns")
def test_every_tuning_and_named_kernel(tuning, kernel):
    model = ConformalGPRegressor(kernel, tuning=tuning, noise_variance=0.1, n_restarts=0, random_state=0).fit(X, Y)
    assert_same_answers(model, loaded(saved(model)))


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("tuning", ["fixed", "holdout"])
def test_kernel_objects(name, tuning):
    model = ConformalGPRegressor(OBJECTS[name], tuning=tuning, noise_variance=0.1, n_restarts=0, random_state=0)
    model.fit(X, Y)
    again = loaded(saved(model))
    assert again.kernel == model.kernel
    assert_same_answers(model, again)


@pytest.mark.parametrize(
    "parameters",
    [
        {"kernel": ["se", OBJECTS["sum"]], "gamma": [2.0, np.inf], "design": 0.4},
        {"gamma": np.array([1.5, 2.0]), "design": np.arange(15)},
        {"candidates": [(RBF(1.0), 0.1), (RBF(2.0), np.float64(0.2))], "scale_inputs": False},
        {"mean": "zero", "random_state": np.random.RandomState(0), "n_jobs": 2},
        {"kernel": OBJECTS["sum"], "tuning": "augmented"},
        {"kernel": 1.5 * RBF([1.0, 2.0])},
    ],
)
def test_other_parameters(parameters):
    model = ConformalGPRegressor(n_restarts=0, **parameters).fit(X, Y)
    again = loaded(saved(model))
    assert_same_answers(model, again)
    assert_same_parameters(model, again)


def assert_same_parameters(one: Model, other: Model) -> None:
    """Down to types, but for random states, of which only numbers are kept."""
    others = other.get_params(deep=False)
    for name, value in one.get_params(deep=False).items():
        if name != "random_state":
            assert type(others[name]) is type(value), name
            np.testing.assert_equal(others[name], value, err_msg=name)


# The low-rank model


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"inducing": "greedy", "approximation": "dtc", "mean": "zero", "design": 0.4, "block_rows": 7},
        {"inducing": NEW[:6], "design": np.array([30, 3, 1, 4, 15, 9, 2, 6, 5, 35])},
        {"inducing": NEW[:6].tolist(), "design": list(range(12)), "scale_inputs": False},
        {"kernel": OBJECTS["sum"], "inducing": "random", "tuning": "fixed", "noise_variance": 0.1, "n_jobs": 2},
        {"kernel": ["se", OBJECTS["network"]], "gamma": [1.5, 2.0, np.inf], "design": None},
        {"random_state": np.random.RandomState(0), "gamma": 1.0, "mean": "constant"},
    ],
)
def test_low_rank_models(parameters):
    model = small(**parameters).fit(X, Y)
    again = loaded(saved(model))
    assert_same_answers(model, again)
    assert_same_parameters(model, again)
    if model.random_state == 0:
        assert saved(again) == saved(model)


def test_low_rank_models_of_frames():
    pandas = pytest.importorskip("pandas", reason="data frames")
    names = ["a", "b"]
    model = small(inducing=pandas.DataFrame(NEW[:6], columns=names)).fit(pandas.DataFrame(X, columns=names), Y)
    again = loaded(saved(model))
    new = pandas.DataFrame(NEW, columns=names)
    np.testing.assert_array_equal(again.predict_interval(new, 0.9), model.predict_interval(new, 0.9))
    np.testing.assert_array_equal(again.inducing, NEW[:6])
    assert list(again.feature_names_in_) == names


def test_loading_learns_nothing(monkeypatch):
    content = saved(small().fit(X, Y))

    def learn(*arguments):
        raise AssertionError("something is learnt")

    for name in ("plan", "draw"):
        monkeypatch.setattr(sparse, name, learn)
    for name in ("learn", "choose_gamma", "select", "independent"):
        monkeypatch.setattr(low_rank, name, learn)
    loaded(content)


def test_parameters_set_after_the_fit_do_not_change_what_was_fitted():
    model = small().fit(X, Y)
    before = model.predict_interval(NEW, 0.9)
    model.set_params(mean="zero", approximation="dtc", gamma=1.0, n_inducing=3, scale_inputs=False, kernel="se")
    again = loaded(saved(model))
    np.testing.assert_array_equal(again.predict_interval(NEW, 0.9), before)
    assert again.mean == "zero"


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_of_memory_maps_are_stored(tmp_path, dtype):
    mapped = np.memmap(tmp_path / "X", dtype=dtype, mode="w+", shape=X.shape)
    mapped[:] = X
    model = small(block_rows=16).fit(mapped, Y)
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert_same_answers(model, again)
    before = model.predict_interval(NEW, 0.9)
    mapped[:] = 0.0
    np.testing.assert_array_equal(again.predict_interval(NEW, 0.9), before)


def test_rows_of_dask_collections_are_not_stored():
    array = pytest.importorskip("dask.array", reason="Dask is an extra: pip install 'conformal-gp[dask]'")
    model = small().fit(array.from_array(X, chunks=(20, 2)), Y)
    with pytest.raises(ValueError, match=r"fitted to Dask collections.*X\.compute\(\).*memory map"):
        saved(model)
    assert_same_answers(model.fit(X, Y), loaded(saved(model)))


# What does not become a model, and what does not come out of a file


def test_rows_changed_by_the_caller_do_not_change_the_model(tmp_path):
    rows, labels = X.copy(), Y.copy()
    model = ConformalGPRegressor("se").fit(rows, labels)
    before = model.predict_interval(3 * NEW, 0.9)
    rows[:], labels[:] = 0.0, 1.0
    save_model(model, tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict_interval(3 * NEW, 0.9), before)


def test_feature_names_and_columns_are_kept():
    pandas = pytest.importorskip("pandas", reason="feature names come with data frames")
    model = ConformalGPRegressor("se").fit(pandas.DataFrame(X, columns=["a", "b=1"]), Y)
    columns = Columns(
        "t.csv", "y", (Column("a", None, 0.5), Column("b", ("0", "1"), "1", True)), "onehot", "drop", ("x",), ("id",)
    )
    again, same = load_columns(io.BytesIO(saved(model, columns)))
    assert list(again.feature_names_in_) == ["a", "b=1"]
    assert again.n_features_in_ == 2
    assert same == columns


def test_the_same_model_gives_the_same_file(tmp_path):
    model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit(X, Y)
    assert saved(model) == saved(model) == saved(loaded(saved(model)))
    document = json.loads(zipfile.ZipFile(io.BytesIO(saved(model))).read("model.json"))
    assert document["format_version"] == FORMAT_VERSION
    assert document["package_version"]


def test_kernels_of_ones_own_are_refused_by_name():
    model = ConformalGPRegressor(1.0 * Own(), tuning="fixed", noise_variance=0.1).fit(X, Y)
    with pytest.raises(ValueError, match=r"kernel\.k2 cannot be saved: .*Own.* holds no code"):
        saved(model)
    callable_metric = PairwiseKernel(metric=lambda x, z, gamma: float(x @ z))
    with pytest.raises(ValueError, match="whose code is not stored"):
        to_json(callable_metric, "kernel")


def test_what_cannot_be_saved():
    with pytest.raises(NotFittedError):
        saved(ConformalGPRegressor())
    with pytest.raises(NotFittedError):
        saved(SparseConformalGPRegressor())
    with pytest.raises(ValueError, match="model must be a ConformalGPRegressor or SparseConformalGPRegressor, got RBF"):
        saved(RBF())
    with pytest.raises(ValueError, match="design cannot be saved: arrays of type object are not stored"):
        to_json(np.array([object()]), "design")
