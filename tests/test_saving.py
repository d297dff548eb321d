"""Saved models: what is loaded predicts as what was saved, and files that are none are refused."""

import json
import zipfile

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("skops", reason="saved models need the extra: pip install 'conformal-gp[io]'")

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


class Foreign:
    """A type of neither this package nor scikit-learn."""

    def __init__(self, value=1):
        self.value = value


def test_foreign_types_are_refused(tmp_path):
    import skops.io

    model = fixed_model().fit(X, Y)
    model.extra_ = Foreign()
    with pytest.raises(ValueError, match=r"cannot be saved: it holds test_saving\.Foreign"):
        save(model, tmp_path / "m")
    assert not (tmp_path / "m").exists()
    skops.io.dump(model, tmp_path / "m")
    with pytest.raises(ValueError, match=r"m holds test_saving\.Foreign, which is neither"):
        load(tmp_path / "m")


@pytest.mark.parametrize("module", ["os", "conformal_gp.files", "builtins", "sklearn.utils.validation", "subprocess"])
def test_functions_and_what_modules_import_are_refused(tmp_path, module):
    """A forged file cannot reach a function, nor a module, through the name of one of ours."""
    name = {"os": "system", "conformal_gp.files": "os", "builtins": "eval", "subprocess": "Popen"}.get(
        module, "warnings"
    )
    save(fixed_model().fit(X, Y), tmp_path / "m")
    forged = tmp_path / "forged"
    with zipfile.ZipFile(tmp_path / "m") as old, zipfile.ZipFile(forged, "w") as new:
        for member in old.namelist():
            content = old.read(member)
            if member == "schema.json":
                schema = json.loads(content)
                schema["__class__"], schema["__module__"] = name, module
                content = json.dumps(schema).encode()
            new.writestr(member, content)
    with pytest.raises(ValueError, match=rf"holds {module}.{name}, which is neither"):
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


def test_old_files_say_how_to_get_the_new_format(tmp_path):
    with zipfile.ZipFile(tmp_path / "old", "w") as archive:
        archive.writestr("model.json", json.dumps({"format": "conformal-gp model", "version": 6}))
    with pytest.raises(ValueError, match=r"conformal-gp 0\.2 and before: fit the model again, or load the file with"):
        load(tmp_path / "old")


def test_without_skops_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "skops.io", None)
    with pytest.raises(ImportError, match=r"pip install 'conformal-gp\[io\]'"):
        save(fixed_model(), tmp_path / "m")
