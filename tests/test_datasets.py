"""The data sets: bundled files, and the loaders."""

import hashlib
import sys
from importlib.resources import files

import numpy as np
import pytest

from conformal_gp.datasets import load_auto_mpg, load_boston, load_cpu, load_servo

LOADERS = {"boston": load_boston, "auto_mpg": load_auto_mpg, "cpu": load_cpu, "servo": load_servo}
SHA256 = {
    "auto_mpg": "36e54877bfed8b45f2b7d484af72409831576b418f8c94ccd731a3d2a22b1d20",
    "boston": "67f9ee024ce636351aad9209b80c7984d6959345069ce00277bda7df8163e703",
    "cpu": "60f27ad34bf0c06781159d1d5e53083c5ce63e7e252c927d363d574ed65bd4b8",
    "servo": "9ebb659d324f607903848871419aa41f1ccca3615abfd8843dc07e0387fea187",
}
SHAPES = {"boston": (506, 13), "auto_mpg": (392, 7), "cpu": (209, 7), "servo": (167, 4)}
TARGETS = {"boston": ("medv", 22.533), "auto_mpg": ("mpg", 23.446), "cpu": ("prp", 105.622), "servo": ("class", 1.390)}
TEXT = {"boston": [], "auto_mpg": [], "cpu": ["vendor"], "servo": ["motor", "screw"]}
ROWS = {  # number of a row, its inputs with text as text, its target
    "boston": (0, [0.00632, 18, 2.31, 0, 0.538, 6.575, 65.2, 4.09, 1, 296, 15.3, 396.9, 4.98], 24.0),
    "auto_mpg": (391, [4, 119, 82, 2720, 19.4, 82, 1], 31.0),
    "cpu": (147, ["nas", 50, 4000, 16000, 64, 5, 10], 111),
    "servo": (1, ["B", "D", 6, 5], 0.5062525),
}
names = pytest.mark.parametrize("name", list(LOADERS))


@names
def test_bunch(name):
    bunch = LOADERS[name]()
    content = files(bunch.data_module).joinpath(bunch.filename).read_bytes()
    assert hashlib.sha256(content).hexdigest() == SHA256[name]
    readme = files(bunch.data_module).joinpath("README.md").read_text(encoding="utf-8")
    assert f"{SHA256[name]}  {name}.csv" in readme
    target_name, mean = TARGETS[name]
    assert bunch.data.shape == SHAPES[name]
    assert bunch.data.dtype == bunch.target.dtype == np.float64
    assert np.isfinite(bunch.data).all()
    assert bunch.target.mean() == pytest.approx(mean, abs=0.0005)
    assert bunch.target_names == [target_name]
    assert bunch.frame is None
    for heading in ("Columns", "Origin", "Licence", "Caveats"):
        assert f"\n{heading}\n---" in bunch.DESCR
    for column in (*bunch.feature_names, target_name):
        assert f"\n- {column}: " in bunch.DESCR


@names
def test_text_is_text_in_frames_and_alphabetical_codes_in_arrays(name):
    i, inputs, target = ROWS[name]
    coded, bunch = LOADERS[name](), LOADERS[name](as_frame=True)
    assert bunch.data.columns.tolist() == coded.feature_names
    assert bunch.data.loc[i].tolist() == inputs
    assert bunch.target[i] == target
    assert bunch.frame.columns.tolist() == [*coded.feature_names, TARGETS[name][0]]
    assert bunch.target.tolist() == bunch.frame[TARGETS[name][0]].tolist() == coded.target.tolist()
    assert list(coded.categories) == TEXT[name]
    for j, feature in enumerate(coded.feature_names):
        cells = bunch.data[feature].tolist()
        if feature in TEXT[name]:
            alphabet = sorted(set(cells))
            assert coded.categories[feature] == alphabet
            cells = [alphabet.index(value) for value in cells]
        assert coded.data[:, j].tolist() == cells
    X, y = LOADERS[name](return_X_y=True, as_frame=True)
    assert X.equals(bunch.data)
    assert y.equals(bunch.target)


def test_pandas_is_needed_for_frames_only(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)  # makes `import pandas` fail
    assert load_servo().data.shape == SHAPES["servo"]
    with pytest.raises(ImportError, match=r"load_servo needs pandas .*pip install pandas"):
        load_servo(as_frame=True)


@pytest.mark.parametrize("argument", ["return_X_y", "as_frame"])
def test_arguments_are_boolean(argument):
    with pytest.raises(ValueError, match=f"{argument} must be True or False, got 'no'"):
        load_cpu(**{argument: "no"})
