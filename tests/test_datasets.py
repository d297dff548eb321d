"""The data sets: bundled files, the loaders, and artificial draws from a Gaussian process."""

import hashlib
import sys
from importlib.resources import files

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from threadpoolctl import threadpool_limits

from conformal_gp import datasets
from conformal_gp.datasets import load_auto_mpg, load_boston, load_cpu, load_servo, make_gp_data

LOADERS = {"boston": load_boston, "auto_mpg": load_auto_mpg, "cpu": load_cpu, "servo": load_servo}
SHA256 = {
    "auto_mpg": "36e54877bfed8b45f2b7d484af72409831576b418f8c94ccd731a3d2a22b1d20",
    "boston": "67f9ee024ce636351aad9209b80c7984d6959345069ce00277bda7df8163e703",
    "cpu": "60f27ad34bf0c06781159d1d5e53083c5ce63e7e252c927d363d574ed65bd4b8",
    "servo": "9ebb659d324f607903848871419aa41f1ccca3615abfd8843dc07e0387fea187",
}
SHAPES = {"boston": (506, 13), "auto_mpg": (392, 7), "cpu": (209, 7), "servo": (167, 4)}
TARGETS = {  # name, minimum, mean, maximum, to three decimals
    "boston": ("medv", 5, 22.533, 50),
    "auto_mpg": ("mpg", 9, 23.446, 46.6),
    "cpu": ("prp", 6, 105.622, 1150),
    "servo": ("class", 0.131, 1.390, 7.100),
}
FEATURES = {
    "boston": [
        "crim",
        "zn",
        "indus",
        "chas",
        "nox",
        "rm",
        "age",
        "dis",
        "rad",
        "tax",
        "ptratio",
        "b",
        "lstat",
    ],
    "auto_mpg": ["cylinders", "displacement", "horsepower", "weight", "acceleration", "model_year", "origin"],
    "cpu": ["vendor", "myct", "mmin", "mmax", "cach", "chmin", "chmax"],
    "servo": ["motor", "screw", "pgain", "vgain"],
}
TEXT = {"boston": [], "auto_mpg": [], "cpu": ["vendor"], "servo": ["motor", "screw"]}
ROWS = {  # number of a row, its inputs with text as text, its target
    "boston": (0, [0.00632, 18, 2.31, 0, 0.538, 6.575, 65.2, 4.09, 1, 296, 15.3, 396.9, 4.98], 24.0),
    "auto_mpg": (391, [4, 119, 82, 2720, 19.4, 82, 1], 31.0),
    "cpu": (147, ["nas", 50, 4000, 16000, 64, 5, 10], 111),
    "servo": (1, ["B", "D", 6, 5], 0.5062525),
}
names = pytest.mark.parametrize("name", list(LOADERS))


def test_public_names():
    assert datasets.__all__ == ["load_auto_mpg", "load_boston", "load_cpu", "load_servo", "make_gp_data"]


@names
def test_bundled_file_is_the_checked_one(name):
    bunch = LOADERS[name]()
    content = files(bunch.data_module).joinpath(bunch.filename).read_bytes()
    assert hashlib.sha256(content).hexdigest() == SHA256[name]


@names
def test_sums_in_the_readme_are_those_of_the_files(name):
    readme = files("conformal_gp.datasets.data").joinpath("README.md").read_text(encoding="utf-8")
    assert f"{SHA256[name]}  {name}.csv" in readme


@names
def test_bunch(name):
    bunch = LOADERS[name]()
    target_name, low, mean, high = TARGETS[name]
    assert bunch.data.shape == SHAPES[name]
    assert bunch.data.dtype == np.float64
    assert np.isfinite(bunch.data).all()
    assert bunch.target.shape == SHAPES[name][:1]
    assert bunch.target.dtype == np.float64
    found = [bunch.target.min(), bunch.target.mean(), bunch.target.max()]
    np.testing.assert_allclose(found, [low, mean, high], rtol=0, atol=0.0005)
    assert bunch.feature_names == FEATURES[name]
    assert bunch.target_names == [target_name]
    assert bunch.frame is None
    assert bunch.filename == f"{name}.csv"


@names
def test_raw_row_is_that_of_the_file(name):
    i, inputs, target = ROWS[name]
    bunch = LOADERS[name](raw=True)
    assert bunch.data[i].tolist() == inputs
    assert bunch.target[i] == target


@names
def test_codes_are_alphabetical(name):
    coded, raw = LOADERS[name](), LOADERS[name](raw=True)
    assert list(coded.categories) == TEXT[name]
    for j, feature in enumerate(FEATURES[name]):
        if feature not in TEXT[name]:
            np.testing.assert_array_equal(coded.data[:, j], raw.data[:, j].astype(float))
            continue
        values = raw.data[:, j].tolist()
        assert all(isinstance(value, str) for value in values)
        alphabet = sorted(set(values))
        assert coded.data[:, j].tolist() == [alphabet.index(value) for value in values]
        assert coded.categories[feature] == alphabet


def test_text_values():
    assert load_servo().categories == {"motor": list("ABCDE"), "screw": list("ABCDE")}
    vendors = load_cpu().categories["vendor"]
    assert len(vendors) == 30
    assert vendors[:8] == ["adviser", "amdahl", "apollo", "basf", "bti", "burroughs", "c.r.d", "cambex"]
    assert set(load_auto_mpg().data[:, 6]) == {1, 2, 3}


@names
def test_raw_array_holds_objects_only_where_there_is_text(name):
    assert LOADERS[name](raw=True).data.dtype == (object if TEXT[name] else np.float64)


@names
@pytest.mark.parametrize("raw", [False, True])
def test_as_frame(name, raw):
    pandas = pytest.importorskip("pandas")
    array, bunch = LOADERS[name](raw=raw), LOADERS[name](raw=raw, as_frame=True)
    assert isinstance(bunch.data, pandas.DataFrame)
    assert isinstance(bunch.target, pandas.Series)
    assert bunch.data.columns.tolist() == FEATURES[name]
    assert bunch.target.name == TARGETS[name][0]
    assert bunch.frame.columns.tolist() == [*FEATURES[name], TARGETS[name][0]]
    assert bunch.data.to_numpy(dtype=array.data.dtype).tolist() == array.data.tolist()
    assert bunch.target.tolist() == bunch.frame[TARGETS[name][0]].tolist() == array.target.tolist()
    for feature in FEATURES[name]:
        if raw and feature in TEXT[name]:
            assert pandas.api.types.is_string_dtype(bunch.data[feature])
        else:
            assert bunch.data[feature].dtype == np.float64


@names
@pytest.mark.parametrize("options", [{}, {"raw": True}, {"as_frame": True}, {"raw": True, "as_frame": True}])
def test_return_X_y(name, options):  # noqa: N802
    if "as_frame" in options:
        pytest.importorskip("pandas")
    bunch = LOADERS[name](**options)
    X, y = LOADERS[name](return_X_y=True, **options)
    assert type(X) is type(bunch.data)
    assert type(y) is type(bunch.target)
    assert np.asarray(X).tolist() == np.asarray(bunch.data).tolist()
    assert y.tolist() == bunch.target.tolist()


@names
def test_each_call_gives_its_own_arrays(name):
    LOADERS[name]().data[:] = np.nan
    assert np.isfinite(LOADERS[name]().data).all()


@names
def test_pandas_is_needed_for_frames_only(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)  # makes `import pandas` fail
    assert LOADERS[name](raw=True).data.shape == SHAPES[name]
    with pytest.raises(ImportError, match=f"load_{name} needs pandas .*pip install pandas"):
        LOADERS[name](as_frame=True)


@names
def test_arguments_are_keyword_only_and_boolean(name):
    with pytest.raises(TypeError, match="positional"):
        LOADERS[name](True)
    for argument in ("return_X_y", "as_frame", "raw"):
        with pytest.raises(ValueError, match=f"{argument} must be True or False, got 'no'"):
            LOADERS[name](**{argument: "no"})


@names
def test_description_has_size_origin_licence_and_caveats(name):
    description = LOADERS[name]().DESCR
    for heading in ("Columns", "Origin", "Licence", "Caveats"):
        assert f"\n{heading}\n---" in description
    assert f":Rows: {SHAPES[name][0]}," in description
    assert f":Inputs: {SHAPES[name][1]}," in description
    for column in (*FEATURES[name], TARGETS[name][0]):
        assert f"\n- {column}: " in description


@pytest.mark.parametrize(
    ("name", "phrases"),
    [
        (
            "boston",
            ["``b`` encodes race", "proportion of Black residents", "BSD-3-Clause", "not the corrected"],
        ),
        ("auto_mpg", ["CC BY 4.0", "without horsepower are dropped", "Quinlan"]),
        ("cpu", ["CC BY 4.0", "row 148 (counted from 1) has prp 111 here and 110", "not ERP", "Feldmesser"]),
        ("servo", ["CC BY 4.0", "rank codes", "Ulrich"]),
    ],
)
def test_caveats(name, phrases):
    for phrase in phrases:
        assert phrase in LOADERS[name]().DESCR


def test_boston_docstring_says_that_an_input_encodes_race():
    assert "``b`` encodes race" in load_boston.__doc__


def test_boston_target_is_cut_off_as_described():
    assert (load_boston().target == 50).sum() == 16


# Artificial data. The seeds are fixed. Tolerances are in standard errors: normal errors exceed five of them
# about once in two million draws.
SIGMAS = 5


def test_gp_data_shapes():
    X, y = make_gp_data(random_state=0)
    assert X.shape == (500, 5)
    assert y.shape == (500,)
    X, y = make_gp_data(7, 2, random_state=0)
    assert X.shape == (7, 2)
    assert y.shape == (7,)
    assert X.dtype == y.dtype == np.float64


def test_gp_data_is_reproducible():
    first, again, other = (make_gp_data(60, random_state=seed) for seed in (3, 3, 4))
    for a, b, c in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(a, b)
        assert not np.isclose(a, c).any()
    source = np.random.RandomState(3)
    np.testing.assert_array_equal(make_gp_data(60, random_state=source)[1], first[1])
    assert not np.isclose(make_gp_data(60, random_state=source)[1], first[1]).any()


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


def test_gp_data_mean_and_variance_of_the_function():
    draws = np.array([make_gp_data(2, noise=0, signal=2.0, random_state=seed)[1][0] for seed in range(2000)])
    assert abs(draws.mean()) < SIGMAS * 2 / np.sqrt(2000)
    assert abs(draws.var() / 4 - 1) < SIGMAS * np.sqrt(2 / 2000)


def test_gp_data_without_noise_is_smooth():
    X, y = make_gp_data(400, 1, noise=0, random_state=0)
    order = np.argsort(X[:, 0])
    gaps, steps = np.diff(X[order, 0]), np.abs(np.diff(y[order]))
    # The slope of f is standard normal at each input; the diagonal term adds at most a few 1e-5.
    assert (steps <= SIGMAS * gaps + 1e-4).all()


def test_gp_data_noise_is_a_standard_deviation():
    _, y = make_gp_data(2000, signal=0, noise=0.1, random_state=0)
    assert abs(y.std() / 0.1 - 1) < SIGMAS / np.sqrt(2 * 2000)


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


def test_gp_data_outlier_fraction_at_its_ends():
    plain, all_out = (
        make_gp_data(50, noise=0.2, outlier_fraction=fraction, outlier_noise=0.7, random_state=0)[1]
        for fraction in (0, 1)
    )
    np.testing.assert_array_equal(plain, make_gp_data(50, noise=0.2, random_state=0)[1])
    np.testing.assert_array_equal(all_out, make_gp_data(50, noise=0.7, random_state=0)[1])


@pytest.mark.parametrize("options", [{"length_scale": 1e-320}, {"length_scale": 1e300}, {"n_features": 1}])
def test_gp_data_where_the_covariance_is_extreme(options):
    _, y = make_gp_data(1500, noise=0, random_state=0, **options)
    assert np.isfinite(y).all()
    if options.get("length_scale") == 1e-320:  # no two rows are related
        assert abs(y.std() - 1) < SIGMAS / np.sqrt(2 * 1500)
    if options.get("length_scale") == 1e300:  # a constant
        assert np.ptp(y) < 1e-4


# Mean widths of plain GP regression at 90, 95 and 99 % in the tables of Papadopoulos (2024): ten data sets of
# 500 training and 1000 test rows. The spread is the standard deviation of the first width from one data set
# to another, measured over 20.
@pytest.mark.parametrize(
    ("learn", "outlier_fraction", "published", "spread"),
    [
        (False, 0.0, [1.219, 1.453, 1.909], 0.022),
        (True, 0.0, [1.219, 1.453, 1.909], 0.045),
        (True, 0.1, [1.834, 2.185, 2.872], 0.147),
    ],
)
def test_gp_data_gives_the_published_widths(learn, outlier_fraction, published, spread):
    deviations = []
    for seed in range(3):
        X, y = make_gp_data(1500, outlier_fraction=outlier_fraction, random_state=seed)
        kernel = ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.01)
        model = GaussianProcessRegressor(kernel, optimizer="fmin_l_bfgs_b" if learn else None)
        with threadpool_limits(1, user_api="blas"):  # small matrices: threads of a busy machine would only wait
            deviations.append(model.fit(X[:500], y[:500]).predict(X[500:], return_std=True)[1].mean())
    widths = 2 * norm.ppf([0.95, 0.975, 0.995]) * np.mean(deviations)
    tolerance = 4 * spread * np.sqrt(1 / 3 + 1 / 10) / published[0]  # three data sets here, ten there
    np.testing.assert_allclose(widths, published, rtol=tolerance)


@pytest.mark.parametrize(
    ("argument", "value", "accepted"),
    [
        ("n_samples", 0, "an integer that is at least 1"),
        ("n_samples", 2.0, "an integer that is at least 1"),
        ("n_samples", True, "an integer that is at least 1"),
        ("n_features", -1, "an integer that is at least 1"),
        ("n_features", "5", "an integer that is at least 1"),
        ("noise", -0.1, "a finite number that is at least 0"),
        ("noise", np.nan, "a finite number that is at least 0"),
        ("noise", None, "a finite number that is at least 0"),
        ("outlier_noise", np.inf, "a finite number that is at least 0"),
        ("signal", -1, "a finite number that is at least 0"),
        ("length_scale", 0, "a finite number above 0"),
        ("length_scale", [1.0, 2.0], "a finite number above 0"),
        ("outlier_fraction", 1.1, "a number from 0 to 1"),
        ("outlier_fraction", -0.1, "a number from 0 to 1"),
        ("random_state", "seed", "None, an integer from 0"),
        ("random_state", -1, "None, an integer from 0"),
    ],
)
def test_gp_data_bad_arguments(argument, value, accepted):
    with pytest.raises(ValueError, match=f"^{argument} must be {accepted}") as caught:
        make_gp_data(**{argument: value})
    assert str(caught.value).endswith(f"got {value!r}")


def test_gp_data_scales_are_keyword_only():
    with pytest.raises(TypeError, match="positional"):
        make_gp_data(10, 2, 0.1)
