"""Noise that is learnt as a function of the inputs and of what is predicted."""

import pickle

import numpy as np
import pytest

import bags
import oracle
from conformal_gp import ConformalGPRegressor, SparseConformalGPRegressor
from conformal_gp.gp import maximum_likelihood
from conformal_gp.persistence.archive import ModelFileError, read_archive, write_archive
from conformal_gp.tuning import learning
from noisy_rows import EXACT, HOLDOUT, N_DESIGN, WithNoise, heteroscedastic, in_turn, rows
from saved_models import loaded, saved


@pytest.fixture
def always_varying(monkeypatch):
    """Varying noise without any need for evidence."""
    monkeypatch.setattr(maximum_likelihood, "is_supported", lambda gain, n_coefficients: True)


@pytest.mark.parametrize("name", [name for name in EXACT if "fixed" not in name])
@pytest.mark.parametrize("known", [False, True])
def test_varying_noise_p_values_of_a_bag_are_a_permutation(name, known, always_varying):
    regressor, options = EXACT[name]
    X, y, v = rows(len(name), 7 + N_DESIGN)
    found = in_turn(regressor, options | {"noise": "varying"}, X, y, v if known else None)
    assert bags.is_permutation(found)


def test_varying_noise_by_brute_force(always_varying):
    X, y = heteroscedastic(1, 40)
    X_new, y_new = heteroscedastic(2, 5)
    options = {"mean": "zero", "design": np.arange(25), "tuning": "holdout", "n_restarts": 0}
    model, constant = (
        ConformalGPRegressor("se", noise=noise, **options).fit(X, y) for noise in ("varying", "constant")
    )
    varying, scaling = model._plan.varying, model._plan.scaling
    assert model.noise_coef_.size == 6
    assert model.noise_coef_[0] > 0.5  # the noise rises with the first input
    design = scaling.transform(X[:25])
    K = constant.kernel_(design) + constant.noise_variance_ * np.eye(25)

    def with_variances(inputs):
        scaled = scaling.transform(inputs)
        trend = constant.kernel_(scaled, design) @ np.linalg.solve(K, y[:25])
        z = np.clip((np.column_stack([scaled, trend]) - varying.location) / varying.scale, -2.5, 2.5)
        f = np.hstack([z, (z**2 - 1) / np.sqrt(2)]) - varying.centre
        log_weight = np.log(100) * np.tanh(f @ model.noise_coef_ / np.log(100))
        return np.column_stack([scaled, model.noise_variance_ * np.exp(log_weight)])

    ours = model.predict_p(X_new, y_new)
    for i, row in enumerate(with_variances(X_new)):
        brute = oracle.p_value(
            WithNoise(model.kernel_), 0.0, with_variances(X), y, row, y_new[i], 2.0, ranked=np.arange(25, 40)
        )
        assert ours[i] == pytest.approx(float(brute))


def test_noise_varies_only_where_rows_say_so():
    X, y = heteroscedastic(3, 199)
    varying = ConformalGPRegressor(noise="varying", **HOLDOUT).fit(X, y)
    assert varying.noise_coef_[0] > 1.0
    low, high = np.diff(varying.predict_interval([[-1.5, 0.0], [1.5, 0.0]], 0.9))[:, 0]
    assert high > 3.0 * low
    y = np.sin(X[:, 0]) + 0.3 * np.random.default_rng(0).standard_normal(199)
    models = [ConformalGPRegressor(noise=noise, **HOLDOUT).fit(X, y) for noise in ("constant", "varying")]
    assert models[1].noise_coef_.size == 0
    np.testing.assert_array_equal(*(model.predict_interval(X[:5]) for model in models))


def test_noise_that_grows_with_the_label():
    """Neither linear nor quadratic in the input, but in what is predicted."""
    X = np.random.default_rng(6).uniform(0, 1, (250, 1))
    signal = np.sin(8 * X[:, 0])
    y = signal + 0.05 * np.exp(1.5 * (1 + signal)) * np.random.default_rng(7).standard_normal(250)
    model = ConformalGPRegressor(noise="varying", **HOLDOUT).fit(X, y)
    assert model.noise_coef_[1] > 0.7
    peaks, dips = np.array([[np.pi / 16], [5 * np.pi / 16]]), np.array([[3 * np.pi / 16]])
    widths = [np.diff(model.predict_interval(at, 0.9)).mean() for at in (peaks, dips)]
    assert widths[0] > 4.0 * widths[1]


@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
def test_the_trend_is_what_is_predicted_with_constant_noise(mean, always_varying, monkeypatch):
    monkeypatch.setattr(learning, "TREND_ROWS", 20)
    X, y = heteroscedastic(8, 60)
    y += 5.0 + 2.0 * X[:, 1]
    models = [
        ConformalGPRegressor("se", mean=mean, noise=noise, design=np.arange(39), **HOLDOUT).fit(X, y)
        for noise in ("constant", "varying")
    ]
    constant, scaling = models[0], models[1]._plan.scaling
    some = np.arange(0, 39, 2)  # twenty of the design rows
    again = ConformalGPRegressor(
        constant.kernel_, mean=mean, noise_variance=constant.noise_variance_, tuning="fixed", scale_inputs=False
    )
    again.fit(scaling.transform(X[some]), y[some])
    inputs = scaling.transform(X)
    np.testing.assert_allclose(models[1]._plan.varying.trend(inputs), again.predict(inputs), rtol=1e-7)


@pytest.mark.filterwarnings("ignore:tuning='train' learns:UserWarning")
def test_training_rows_teach_varying_noise_too():
    X, y = heteroscedastic(4, 150)
    model = ConformalGPRegressor(noise="varying", tuning="train", n_restarts=0).fit(X, y)
    assert model.noise_coef_[0] > 1.0
    assert model.guarantee_.startswith("Not exact")


@pytest.mark.parametrize("regressor", [ConformalGPRegressor, SparseConformalGPRegressor])
def test_saved_and_pickled_models_answer_the_same(regressor):
    X, y = heteroscedastic(5, 120)
    v = np.linspace(0.0, 0.2, 120)
    model = regressor(noise="varying", n_restarts=0, random_state=0).fit(X, y, noise_variance=v)
    assert model.noise_coef_.size == 6
    ends = model.predict_interval(X[:9], 0.8, noise_variance=v[:9])
    for other in (loaded(saved(model)), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_interval(X[:9], 0.8, noise_variance=v[:9]), ends)
        np.testing.assert_array_equal(other.noise_coef_, model.noise_coef_)
        assert other.input_range_.shape == (2, 2)


@pytest.mark.parametrize(
    "forge",
    [
        lambda document: document.update(known_noise=False),
        lambda document: document.update(known_noise=1),
        lambda document: document["plan"]["varying"]["tuple"].pop(),
        lambda document: document["plan"]["varying"]["tuple"][2]["array"].__setitem__(0, 0.0),
        lambda document: document["plan"]["varying"]["tuple"][4]["array"].pop(),
        lambda document: document["plan"]["varying"]["tuple"][0]["tuple"][1].update(array=[[]]),
        lambda document: document["plan"]["varying"]["tuple"][0]["tuple"][2]["array"].pop(),
        lambda document: document["plan"]["varying"]["tuple"][0]["tuple"].pop(),
    ],
)
def test_forged_noise_is_refused(tmp_path, forge, always_varying):
    X, y, v = rows(19, 40)
    model = ConformalGPRegressor(noise="varying", **HOLDOUT).fit(X, y, noise_variance=v)
    path = tmp_path / "model"
    path.write_bytes(saved(model))
    document, arrays = read_archive(path)
    forge(document)
    write_archive(path, document, arrays)
    with pytest.raises(ModelFileError, match="complete model"):
        loaded(path.read_bytes())
