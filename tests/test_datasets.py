"""The data sets: bundled files, the loaders, and artificial draws from a Gaussian process."""

import hashlib
import sys
from importlib.resources import files

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve

from conformal_gp.datasets import load_auto_mpg, load_boston, load_cpu, load_servo, make_gp_data

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
def test_text_is_given_as_it_is_or_as_alphabetical_codes(name):
    i, inputs, target = ROWS[name]
    coded, raw = LOADERS[name](), LOADERS[name](raw=True)
    assert raw.data.dtype == (object if TEXT[name] else np.float64)
    assert raw.data[i].tolist() == inputs
    assert raw.target[i] == target
    assert list(coded.categories) == TEXT[name]
    for j, feature in enumerate(coded.feature_names):
        if feature not in TEXT[name]:
            np.testing.assert_array_equal(coded.data[:, j], raw.data[:, j].astype(float))
            continue
        alphabet = sorted(set(raw.data[:, j]))
        assert coded.data[:, j].tolist() == [alphabet.index(value) for value in raw.data[:, j]]
        assert coded.categories[feature] == alphabet


@names
@pytest.mark.parametrize("raw", [False, True])
def test_as_frame_and_pairs(name, raw):
    array, bunch = LOADERS[name](raw=raw), LOADERS[name](raw=raw, as_frame=True)
    assert bunch.data.columns.tolist() == array.feature_names
    assert bunch.frame.columns.tolist() == [*array.feature_names, TARGETS[name][0]]
    assert bunch.data.to_numpy(dtype=array.data.dtype).tolist() == array.data.tolist()
    assert bunch.target.tolist() == bunch.frame[TARGETS[name][0]].tolist() == array.target.tolist()
    X, y = LOADERS[name](return_X_y=True, raw=raw, as_frame=True)
    assert X.equals(bunch.data)
    assert y.equals(bunch.target)


def test_pandas_is_needed_for_frames_only(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)  # makes `import pandas` fail
    assert load_servo(raw=True).data.shape == SHAPES["servo"]
    with pytest.raises(ImportError, match=r"load_servo needs pandas .*pip install pandas"):
        load_servo(as_frame=True)


@pytest.mark.parametrize("argument", ["return_X_y", "as_frame", "raw"])
def test_arguments_are_boolean(argument):
    with pytest.raises(ValueError, match=f"{argument} must be True or False, got 'no'"):
        load_cpu(**{argument: "no"})


# Artificial data. The seeds are fixed. Tolerances are in standard errors: normal errors exceed five of them
# about once in two million draws.
SIGMAS = 5


def test_gp_data_is_reproducible():
    first, again, other = (make_gp_data(60, 2, random_state=seed) for seed in (3, 3, 4))
    assert first[0].shape == (60, 2)
    for a, b, c in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(a, b)
        assert not np.isclose(a, c).any()


def test_gp_data_inputs_are_standard_normal():
    X, _ = make_gp_data(1000, 8, random_state=0)
    assert abs(X.mean()) < SIGMAS / np.sqrt(X.size)
    assert abs(X.var() - 1) < SIGMAS * np.sqrt(2 / X.size)
    assert abs((X**4).mean() - 3) < SIGMAS * np.sqrt(96 / X.size)


def chi_square_deviation(sets, noise, length_scale, signal):
    """How far the sum of y' C^-1 y is from its mean, in standard deviations, if C is the covariance of y."""
    total, n_rows = 0.0, 0
    for X, y in sets:
        squared = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
        covariance = signal**2 * np.exp(-squared / (2 * length_scale**2)) + noise**2 * np.eye(len(X))
        total += y @ cho_solve(cho_factor(covariance), y)
        n_rows += len(y)
    return (total - n_rows) / np.sqrt(2 * n_rows)


@pytest.mark.parametrize(("noise", "length_scale", "signal"), [(0.1, 1.0, 1.0), (0.5, 1.3, 3.0), (0.02, 0.7, 0.3)])
def test_gp_data_has_the_stated_covariance(noise, length_scale, signal):
    scales = {"noise": noise, "length_scale": length_scale, "signal": signal}
    sets = [make_gp_data(300, 3, **scales, random_state=seed) for seed in range(10)]
    assert abs(chi_square_deviation(sets, **scales)) < SIGMAS
    # The statistic can tell: it sees any one scale wrong by half, and a noise variance taken for its root.
    wrong = [scales | {name: factor * scales[name]} for name in scales for factor in (1.5, 1 / 1.5)]
    for other in [*wrong, scales | {"noise": np.sqrt(noise)}]:
        assert abs(chi_square_deviation(sets, **other)) > SIGMAS


def test_gp_data_outliers():
    options = {"n_samples": 2000, "random_state": 1}
    X, y = make_gp_data(**options)
    X_out, y_out = make_gp_data(**options, outlier_fraction=0.1)
    np.testing.assert_array_equal(X_out, X)
    share = (y_out != y).mean()
    assert abs(share - 0.1) < SIGMAS * np.sqrt(0.1 * 0.9 / 2000)
    # The noise of an outlier is multiplied, its sign and the function stay: 10 eps - eps = 9 eps.
    change = (y_out - y)[y_out != y]
    assert abs(change.std() / 0.9 - 1) < SIGMAS / np.sqrt(2 * len(change))
    more = make_gp_data(**options, outlier_fraction=0.3)[1] != y
    assert more[y_out != y].all()
    assert more.sum() > (y_out != y).sum()


@pytest.mark.parametrize("options", [{"length_scale": 1e-320}, {"length_scale": 1e300}, {"n_features": 1}])
def test_gp_data_where_the_covariance_is_extreme(options):
    _, y = make_gp_data(1500, noise=0, random_state=0, **options)
    assert np.isfinite(y).all()
    if options.get("length_scale") == 1e-320:  # no two rows are related
        assert abs(y.std() - 1) < SIGMAS / np.sqrt(2 * 1500)
    if options.get("length_scale") == 1e300:  # a constant
        assert np.ptp(y) < 1e-4


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("n_samples", 0),
        ("n_features", 2.0),
        ("noise", np.nan),
        ("outlier_noise", np.inf),
        ("signal", -1),
        ("length_scale", [1.0, 2.0]),
        ("outlier_fraction", 1.1),
        ("random_state", "seed"),
    ],
)
def test_gp_data_bad_arguments(argument, value):
    with pytest.raises(ValueError, match=f"The '{argument}' parameter of make_gp_data must be .* Got "):
        make_gp_data(**{argument: value})
