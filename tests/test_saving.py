"""Saved models: what is loaded predicts as what was saved, and files that are none are refused."""

import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

pytest.importorskip("skops", reason="saved models need the extra: pip install '.[io]'")

from cases import fixed_model
from conformal_gp import ConformalGPRegressor
from conformal_gp.saving import load, save

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = np.exp(np.sin(X[:, 0]) + 0.1 * RNG.normal(size=40))
FRAME = pd.DataFrame(
    {"a": X[:, 0], "kind": pd.Categorical(np.array(list("uvw"))[np.arange(40) % 3]), "flag": X[:, 1] > 0}
)


def test_categories_come_back(tmp_path):
    model = fixed_model().fit(FRAME, Y)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert list(again.feature_names_in_) == ["a", "kind", "flag"]
    np.testing.assert_array_equal(again.predict_interval(FRAME, 0.8), model.predict_interval(FRAME, 0.8))
    with pytest.raises(ValueError, match="did not see"):
        again.predict(FRAME.assign(kind="z"))


def test_noise_variances_and_unfitted_models_come_back(tmp_path):
    path = tmp_path / "m"
    known = np.full(40, 0.1)
    model = ConformalGPRegressor(tuning="holdout", random_state=0).fit(X, Y, y_variance=known)
    save(model, path)
    options = {"confidence_level": 0.8, "y_variance": known}
    np.testing.assert_array_equal(load(path).predict_interval(X, **options), model.predict_interval(X, **options))
    save(ConformalGPRegressor("rq"), path)
    assert load(path).kernel == "rq"


@pytest.mark.parametrize("imputer", [SimpleImputer(), SimpleImputer(add_indicator=True), KNNImputer()])
@pytest.mark.parametrize("nest", [make_pipeline, TransformedTargetRegressor, FrozenEstimator, "search"])
def test_pipelines_with_imputers_come_back(tmp_path, imputer, nest):
    gaps = X.copy()
    gaps[3, 0] = np.nan
    model = make_pipeline(imputer, fixed_model()).fit(gaps, Y)
    if nest == "search":
        model = GridSearchCV(model, {"conformalgpregressor__noise_variance": [0.1, 0.2]}, cv=2)
    else:
        model = nest(model)
    model.fit(gaps, Y)
    save(model, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(gaps), model.predict(gaps))


def test_models_that_fill_missing_values_come_back(tmp_path):
    frame = pd.DataFrame({"a": X[:, 0], "kind": pd.Categorical(np.where(Y > 0.0, "u", "v"))})
    frame.loc[::5, "a"] = np.nan
    frame.loc[1::6, "kind"] = None
    few = slice(None, None, max(1, len(Y) // 12))
    for model in (
        fixed_model(),
        ConformalGPRegressor(tuning="integrated"),
        make_pipeline("passthrough", fixed_model()),
    ):
        model.fit(frame[few], Y[few])
        save(model, tmp_path / "m")
        again = load(tmp_path / "m")
        np.testing.assert_array_equal(again.predict(frame[few]), model.predict(frame[few]))


def test_several_targets_come_back(tmp_path):
    model = MultiOutputRegressor(fixed_model()).fit(X, np.column_stack([Y, -Y]))
    save(model, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict(X), model.predict(X))


@pytest.mark.parametrize("other", [LinearRegression(), make_pipeline(StandardScaler(), Ridge()), {"a": 1}])
def test_only_our_models_are_saved_and_loaded(tmp_path, other):
    import skops.io

    with pytest.raises(ValueError, match=r"cannot be saved: .* is not a ConformalGPRegressor"):
        save(other, tmp_path / "m")
    skops.io.dump(other, tmp_path / "m")
    with pytest.raises(ValueError, match=r"m contains an object of type .*, which is not a ConformalGPRegressor"):
        load(tmp_path / "m")


def test_a_forged_method_is_refused(tmp_path):
    """A file that asks for a method of one of our objects in place of an attribute."""
    save(fixed_model().fit(X, Y), tmp_path / "m")

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

    model = fixed_model().fit(X, Y)
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
    save(fixed_model().fit(X, Y), tmp_path / "m")
    forged = tmp_path / "forged"
    _rewrite(tmp_path / "m", forged, lambda schema: schema | {"__class__": name, "__module__": module})
    with pytest.raises(ValueError, match=rf"contains {module}.{name}, which is neither"):
        load(forged)


@pytest.mark.parametrize("damage", ["truncated", "flipped", "text", "empty"])
def test_damaged_files_are_said_to_be(tmp_path, damage):
    path = tmp_path / "m"
    save(fixed_model().fit(X, Y), path)
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
