"""Saved models: the same answers after loading, and a clear word for any other file."""

import io
import json
import pickle
import zipfile
from pathlib import Path

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
from conformal_gp.persistence import ModelFileError, load_columns, load_model, save_model
from conformal_gp.persistence.archive import FORMAT_VERSION, read_archive, write_archive
from conformal_gp.persistence.model import Model
from conformal_gp.persistence.values import from_json, to_json
from conformal_gp.tables.columns import Column, Columns
from conformal_gp.tuning import low_rank

RNG = np.random.default_rng(5)
X = RNG.normal(size=(40, 2))
Y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RNG.normal(size=40)
NEW = 1.5 * RNG.normal(size=(12, 2))
LABELS = RNG.normal(size=12)

OBJECTS = {
    "sum": 2.0 * RBF([1.0, 2.0]) + WhiteKernel(0.1),
    "product": ConstantKernel(1.5, "fixed") * RBF(1.0, (1e-2, 1e2)) * RationalQuadratic(1.0, 0.5),
    "power": Exponentiation(DotProduct(1.0) + 0.5 * Matern([0.5, 1.5], nu=1.5), 2.0),
    "periodic": 0.1 * ExpSineSquared(5.0, 30.0, periodicity_bounds="fixed") + 0.1 * Matern(nu=np.inf),
    "pairwise": PairwiseKernel(gamma=0.3, metric="rbf", gamma_bounds=np.array([1e-3, 1e3])),
    "network": 2.0 * NeuralNetwork(0.7, "fixed"),
}


def small(**parameters) -> SparseConformalGPRegressor:
    """A low-rank model of few rows."""
    settings = {"n_inducing": 8, "design": 15, "n_restarts": 0, "random_state": 0}
    return SparseConformalGPRegressor(**settings | parameters)


def saved(model: Model, columns: Columns | None = None) -> bytes:
    file = io.BytesIO()
    save_model(model, file, columns=columns)
    return file.getvalue()


def loaded(content: bytes) -> Model:
    return load_model(io.BytesIO(content))


def assert_same_answers(one: Model, other: Model) -> None:
    assert type(one) is type(other)
    for ours, theirs in zip(one.predict(NEW, return_std=True), other.predict(NEW, return_std=True), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(one.predict_interval(NEW, [0.5, 0.9]), other.predict_interval(NEW, [0.5, 0.9]))
    for ours, theirs in zip(one.predict_set(NEW, 0.8), other.predict_set(NEW, 0.8), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(one.predict_p(NEW, LABELS), other.predict_p(NEW, LABELS))
    learnt = {name for name in vars(one) if name.endswith("_")}
    assert learnt == {name for name in vars(other) if name.endswith("_")}
    for name in learnt:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


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


class Own(RBF):
    """A user's kernel."""


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


@pytest.fixture(scope="module", params=["exact", "low-rank"])
def content(request) -> bytes:
    exact = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1)
    return saved((exact if request.param == "exact" else small()).fit(X, Y))


def rewritten(content: bytes, replace: dict[str, bytes]) -> bytes:
    """The archive with some members replaced, its own checksums as they were."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, replace.get(name, old.read(name)))
        for name in replace.keys() - set(old.namelist()):
            new.writestr(name, replace[name])
    return out.getvalue()


def test_truncated_anywhere(content):
    for length in [*range(0, len(content), 97), len(content) - 1]:
        with pytest.raises(ModelFileError, match=r"empty|no zip archive|truncated or damaged"):
            loaded(content[:length])


def test_a_flipped_bit_anywhere(content):
    # A bit of a zip header may be one that nobody reads; then the model must be the same.
    for place in range(0, len(content), 41):
        damaged = bytearray(content)
        damaged[place] ^= 0x10
        try:
            again = loaded(bytes(damaged))
        except ModelFileError:
            continue
        assert_same_answers(again, loaded(content))


def test_changed_content_does_not_match_its_checksum(content):
    buffer = io.BytesIO()
    np.save(buffer, Y + 1.0)
    with pytest.raises(ModelFileError, match=r"damaged: the checksum of y\.npy does not match"):
        loaded(rewritten(content, {"y.npy": buffer.getvalue()}))
    with pytest.raises(ModelFileError, match=r"checksum of extra\.npy"):
        loaded(rewritten(content, {"extra.npy": b""}))


def test_older_format_asks_for_a_new_fit():
    model = ConformalGPRegressor("se").fit(X, Y)
    document, arrays = read_archive(io.BytesIO(saved(model)))
    document["format_version"] = 1
    file = io.BytesIO()
    write_archive(file, document, arrays)
    with pytest.raises(ModelFileError, match="format 1, whose tuning is no longer part of conformal-gp; fit"):
        loaded(file.getvalue())


def test_newer_format_asks_for_an_upgrade(content):
    document = json.loads(zipfile.ZipFile(io.BytesIO(content)).read("model.json"))
    document |= {"format_version": FORMAT_VERSION + 1, "package_version": "99.0"}
    with pytest.raises(ModelFileError, match=rf"format {FORMAT_VERSION + 1}, written by conformal-gp 99\.0.*Upgrade"):
        loaded(rewritten(content, {"model.json": json.dumps(document).encode()}))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", "Pipeline"),
        ("model", None),
        ("plan", {}),
        ("parameters", {"unheard_of": 1}),
        ("feature_names", 3),
        ("feature_names", ["a", "b", "c"]),
    ],
)
def test_documents_that_are_not_a_model(content, field, value):
    """Files whose checksums are right."""
    document, arrays = read_archive(io.BytesIO(content))
    forged = io.BytesIO()
    write_archive(forged, document | {field: value}, arrays)
    with pytest.raises(ModelFileError, match="does not hold a complete model"):
        loaded(forged.getvalue())


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("design", to_json(np.array([100]), "design")),
        ("design", None),
        ("inducing", to_json(np.zeros((3, 7)), "inducing")),
        ("mean", "cubic"),
        ("noise_variance", "much"),
    ],
)
def test_low_rank_plans_that_do_not_fit_their_rows(entry, value):
    document, arrays = read_archive(io.BytesIO(saved(small().fit(X, Y))))
    document["plan"][entry] = value
    forged = io.BytesIO()
    write_archive(forged, document, arrays)
    with pytest.raises(ModelFileError, match="does not hold a complete model"):
        loaded(forged.getvalue())


def test_foreign_files(tmp_path):
    other_zip = io.BytesIO()
    np.savez(other_zip, a=np.arange(3))
    for content, word in (
        (b"", "empty"),
        (b"a,b\n1,2\n", "no zip archive"),
        (pickle.dumps({"a": 1}), "no zip archive"),
        (other_zip.getvalue(), "not a conformal-gp model"),
    ):
        path = tmp_path / "file"
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=word) as caught:
            load_model(path)
        assert str(path) in str(caught.value)
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "nowhere")


def test_pickled_arrays_are_not_unpickled(content, tmp_path):
    """A file whose checksums are right, and whose array would run code."""
    import hashlib

    mark = tmp_path / "was-run"

    class Trap:
        def __reduce__(self) -> tuple:
            return (Path.touch, (mark,))

    buffer = io.BytesIO()
    np.save(buffer, np.array([Trap()], dtype=object), allow_pickle=True)
    sums = zipfile.ZipFile(io.BytesIO(content)).read("SHA256SUMS").decode().splitlines()
    sums = [line for line in sums if not line.endswith("y.npy")]
    sums.append(f"{hashlib.sha256(buffer.getvalue()).hexdigest()}  y.npy")
    forged = rewritten(content, {"y.npy": buffer.getvalue(), "SHA256SUMS": "\n".join(sums).encode()})
    with pytest.raises(ModelFileError, match="array that cannot be read"):
        loaded(forged)
    assert not mark.exists()


@pytest.mark.parametrize(
    "value",
    [
        {"kernel": "os.system", "parameters": {}},
        {"kernel": "RBF", "parameters": {"length_scale": {"kernel": "eval", "parameters": {}}}},
        {"array": ["a"], "dtype": "O"},
        {"unknown": 1},
    ],
)
def test_only_known_names_are_read(value):
    with pytest.raises((KeyError, ValueError)):
        from_json(value)


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "model"
    model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit(X, Y)
    save_model(model, path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="holds no code"):
        save_model(ConformalGPRegressor(Own(), tuning="fixed", noise_variance=0.1).fit(X, Y), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
