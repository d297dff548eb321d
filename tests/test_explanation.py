"""Explanations of intervals: rows that decide, factors and nearest rows, by dense matrices over all rows of the bag."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel
from sklearn.neighbors import KNeighborsRegressor

import conformal_gp.explanation
import dense_lowrank
import odd_regions
import oracle
from cases import fixed_model, make_basis, make_data
from conformal_gp import ConformalGPRegressor
from conformal_gp.models import choices
from conformal_gp.rows import Rows
from conformal_gp.targets.difficulty import Spread

LEVEL, N_NEW = Fraction(4, 5), 7
TUNING = {"tuning_rows": np.arange(25), "random_state": 0, "n_restarts": 0, "target_transform": None}
WHITE = ConstantKernel(2.0) * RBF(0.7) + WhiteKernel(0.05) + DotProduct()
MODELS = {
    "fixed": fixed_model(mean="constant"),
    "gamma inf": fixed_model(gamma=np.inf, noise_variance=0.01),
    "white noise, gamma 3": fixed_model(WHITE, gamma=3.0),
    "known noise": fixed_model(noise_variance=0.01),
    "holdout, difficulty": ConformalGPRegressor(tuning="holdout", difficulty=KNeighborsRegressor(5), **TUNING),
    "holdout, location": ConformalGPRegressor(tuning="holdout", **TUNING),
    "low rank": ConformalGPRegressor("se", low_rank=8, difficulty=KNeighborsRegressor(5), **TUNING),
}


class Dense:
    """A fitted model by dense inverses over training rows and test row; what the model learnt is taken from it."""

    def __init__(self, model, X, known):
        self.model, self.process, self.known = model, model._answers.cases[0].model, known
        self.X = self.process.inputs.new(Rows(X)).X
        self.calibration = np.delete(np.arange(len(self.X)), model.tuning_rows_)
        self.c, self.g = self.spread(X)
        self.kernel, self.noise = model.kernel_, model.noise_variance_

    def spread(self, X):
        return Spread.usual(len(X)) if self.process.difficulty is None else self.process.difficulty(Rows(X))

    def precision(self, X, kernel, noise, known):
        if self.model.inducing_ is not None:
            A = dense_lowrank.covariance(kernel, noise, self.model.inducing_, X)
        else:
            A = kernel(X) + np.diag(noise + known)
        return dense_lowrank.inverse(A, make_basis(self.model.mean_, X))

    def lines(self, x, c, g, known, y, kernel, noise):
        P = self.precision(np.vstack([self.X, x]), kernel, noise, np.append(self.known, known))
        d, g = np.diag(P) ** (1.0 - 1.0 / self.model.gamma_), np.append(self.g, g)
        return (P[:, :-1] @ y / d - np.append(self.c, c)) / g, P[:, -1] / d / g

    def white(self, X):
        return np.array([self.kernel.diag(x[None])[0] - self.kernel(x[None], x[None].copy())[0, 0] for x in X])


@pytest.fixture(scope="module", params=MODELS)
def case(request):
    X, y = make_data(3, 64)
    known = np.where(X[:, 0] > 0, 0.5, 0.1) if request.param == "known noise" else None
    options = {} if known is None else {"y_variance": known[:-N_NEW]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choices, "_gain", lambda *scores: 1.0)  # a difficulty wherever one is asked for
        patch.setattr(choices, "ROWS_FOR_DIFFICULTY", 20)
        model = MODELS[request.param].fit(X[:-N_NEW], y[:-N_NEW], **options)
    if "location" in request.param:
        assert np.abs(model._answers.cases[0].model._spread.location).min() > 1e-3
    options = {} if known is None else {"y_variance": known[-N_NEW:]}
    new = 1.2 * X[-N_NEW:]
    found = model.explain_interval(new, float(LEVEL), **options)
    np.testing.assert_array_equal(found.interval, model.predict_interval(new, float(LEVEL), **options))
    known = np.zeros(64) if known is None else known
    dense = Dense(model, X[:-N_NEW], known[:-N_NEW])
    inputs = Rows(new)
    test = zip(dense.process.inputs.new(inputs).X, *dense.spread(new), known[-N_NEW:], strict=True)
    return dense, list(test), y[:-N_NEW], found


def test_the_score_of_the_row_that_decides_ties_at_the_end_and_without_it_the_end_moves(case):
    dense, test, y, found = case
    k, n = int((1 - LEVEL) * (dense.calibration.size + 1)), dense.calibration.size
    assert (found.decided_by == "row").all()
    for i, (x, c, g, known) in enumerate(test):
        following = []
        for side, end in enumerate(found.interval[i]):
            row = found.row[i, side]
            a, b = dense.lines(x, c, g, known, y, dense.kernel, dense.noise)
            scores = np.abs(a + b * end)
            apart = np.abs(scores[:-1] - scores[-1])[dense.calibration]
            assert row == dense.calibration[np.argmin(apart)]
            assert apart.min() <= 1e-8 * scores[-1]
            without = dense.calibration[dense.calibration != row]
            following.append(oracle.hull(oracle.region_from_lines(a, b, Fraction(k, n), without))[side])
        assert found.next_width[i] == pytest.approx(following[1] - following[0], rel=1e-8)


def test_factors_multiply_up_to_the_width(case):
    dense, test, _, found = case
    n = dense.calibration.size
    k = int((1 - LEVEL) * (n + 1))
    P = dense.precision(dense.X, dense.kernel, dense.noise, dense.known)
    typical = 1.0 / np.median(np.diag(P)[dense.calibration])
    noise = dense.noise + dense.known + dense.white(dense.X)
    root = 1.0 / dense.model.gamma_
    z = norm.ppf(1 - float(1 - LEVEL) / 2)
    np.testing.assert_allclose(found.rank, norm.ppf(1 - k / (n + 1) / 2) / z)
    for i, (x, _, g, known) in enumerate(test):
        bag = np.vstack([dense.X, x])
        s = 1.0 / dense.precision(bag, dense.kernel, dense.noise, np.append(dense.known, known))[-1, -1]
        own = dense.noise + known + dense.white(x[None])[0]
        moved = s - own + np.median(noise)
        assert found.distance[i] == pytest.approx((moved / typical) ** root)
        assert found.noise[i] == pytest.approx((s / moved) ** root)
        assert found.difficulty[i] == pytest.approx(g / np.median(dense.g[dense.calibration]))
    product = 2 * z * np.sqrt(typical) * found.distance * found.noise * found.difficulty * found.rank * found.scores
    np.testing.assert_allclose(product, found.width)


def test_nearest_rows_are_those_of_highest_correlation(case):
    dense, test, _, found = case
    X = np.array([x for x, *_ in test])
    spread, own = (np.sqrt(dense.kernel.diag(Z) - dense.white(Z)) for Z in (dense.X, X))
    correlations = dense.kernel(X, dense.X) / spread / own[:, None]
    np.testing.assert_array_equal(found.nearest, np.argsort(-correlations, axis=1)[:, :3])


def test_nearest_rows_in_blocks(monkeypatch):
    X, y = make_data(1, 23)
    whole = fixed_model().fit(X, y).explain_interval(X[:9], 0.5, n_nearest=5)
    monkeypatch.setattr(conformal_gp.explanation, "CORRELATIONS", 92)  # four test rows, the last block of one
    blocks = fixed_model().fit(X, y).explain_interval(X[:9], 0.5, n_nearest=5)
    np.testing.assert_array_equal(blocks.nearest, whole.nearest)
    assert fixed_model().fit(X[:4], y[:4]).explain_interval(X[:2], 0.5, n_nearest=9).nearest.shape == (2, 4)
    assert "Nearest" not in str(fixed_model().fit(X, y).explain_interval(X[:2], 0.5, n_nearest=0))


def test_ends_that_no_row_decides():
    X, y = make_data(4, 9)
    X[:, 1] = 2.0
    model = fixed_model(mean="linear").fit(X, y)
    found = model.explain_interval([[0.2, 2.0], [0.2, 1.0]], 0.95)
    assert (found.decided_by == "rank").all()
    assert (found.rank == np.inf).all()
    assert found.next_width[0] == pytest.approx(np.ptp(model.predict_interval([[0.2, 2.0]], 0.9)))
    assert "95% needs 19 calibration rows, there are 9; at 90%, the" in str(found)
    found = model.explain_interval([[0.2, 2.0], [0.2, 1.0]], 0.9)
    assert found.decided_by.tolist() == [["row", "row"], ["mean", "mean"]]
    assert "do not determine the mean" in found.sentences()[1]
    assert model.explain_interval([[0.2, 2.0]], 0.05).next_width == 0.0
    X[3, 1] = 1.0  # alone in its category: of infinite variance, unless the test row is of that category too
    found = fixed_model(mean="linear").fit(X, y).explain_interval([[0.2, 2.0], [0.2, 1.0]], 0.8)
    assert found.decided_by.tolist() == [["row", "row"], ["rows", "rows"]]  # both are alone, and tie at every label
    assert 3 not in found.row
    flat = fixed_model(mean="constant").fit(X, np.full(9, 2.0)).explain_interval(X[:1], 0.8, n_nearest=0)
    assert str(flat).startswith("Width 0. ")
    bounded = fixed_model(y_bounds=(-9, 9)).fit(X, y).explain_interval(X[:1], 0.95)
    assert "Width 18: 95% needs 19 calibration rows" in str(bounded)
    kernel, noise, X, y, x_new, gamma, delta = odd_regions.with_ray(3.0)
    found = fixed_model(kernel, noise, gamma=gamma).fit(X, y).explain_interval([x_new], 1 - delta)
    assert found.decided_by.tolist() == [["nothing", "nothing"]]
    assert "grow with the target as fast as its own" in str(found)
    twice = fixed_model().fit(np.repeat(X[:, :1], 2, axis=0), np.repeat(X[:, 0], 2)).explain_interval([[0.3]], 0.5)
    assert (twice.decided_by == "rows").all()
    assert "Both bounds are determined by several rows that tie" in str(twice)


@pytest.mark.parametrize("shift", [0.0, 1e9])
def test_labels_that_are_transformed_cut_or_shifted(shift):
    X, y = make_data(2, 60)
    options = {"mean": "constant", "noise_variance": 0.2}
    plain = fixed_model(**options).fit(X[:50], y[:50]).explain_interval(X[50:], 0.9)
    warped = (
        fixed_model(target_transform=(np.log, np.exp), **options)
        .fit(X[:50], np.exp(y[:50]))
        .explain_interval(X[50:], 0.9)
    )
    np.testing.assert_allclose(warped.interval, np.exp(plain.interval), rtol=1e-8)
    cut = fixed_model(y_bounds=(y.min() + shift, None), **options).fit(X[:50], y[:50] + shift)
    cut = cut.explain_interval(X[50:], 0.9)
    below = plain.interval[:, 0] < y.min()
    assert 0 < below.sum() < 10
    np.testing.assert_array_equal(cut.decided_by[:, 0] == "bound", below)
    np.testing.assert_array_equal(cut.row[~below], plain.row[~below])
    assert "by a bound of the target, the upper one by row" in cut.sentences()[int(np.argmax(below))]
    for found in (warped, cut):
        np.testing.assert_array_equal(found.row[~below], plain.row[~below])
        for name in ("distance", "scores"):
            np.testing.assert_allclose(getattr(found, name), getattr(plain, name), rtol=1e-5)


@pytest.mark.parametrize("outside", [0, 1, 2])
def test_ends_at_learnt_bounds(outside):
    """With one label outside, it covers every label inside, so that one row fewer decides; with two, no bounds."""
    X, y = make_data(2, 80)
    y = np.exp(y - 1)
    y[60 : 60 + outside] = -1.0
    model = ConformalGPRegressor(
        tuning="holdout", tuning_rows=np.arange(50), n_restarts=0, target_transform=None, difficulty=None
    )
    model.fit(X[:70], y[:70])
    assert model.y_bounds_ == (0.0, np.inf)
    found = model.explain_interval(X[70:], 0.8)
    np.testing.assert_array_equal(found.interval, model.predict_interval(X[70:], 0.8))
    low = found.interval[:, 0]
    assert ((found.decided_by[:, 0] == "bound") == ((low == 0.0) | ((low < 0.0) & (outside == 1)))).all()
    assert (found.decided_by[:, 0] == "bound").any() == (outside < 2)
    assert (found.decided_by[:, 1] == "row").all()
    for i, number in enumerate(found.row[:, 1]):  # moved a little, a label makes this row's score pass the test row's
        end, one = found.interval[i, 1], np.zeros(70)
        one[number] = 1.0
        (part,) = model._answers.about(Rows(X[[70 + i]])).parts
        counts = part._replace(weights=one[50:]).counts(np.array([end]), signed=False)
        assert np.subtract(*counts) == 1.0


def test_groups_are_explained_by_themselves():
    X, y = make_data(5, 60)
    groups = np.where(X[:, 0] > 0.3, "a", "b")
    model = fixed_model().fit(X[:50], y[:50], groups=groups[:50])
    found = model.explain_interval(X[50:], 0.8, groups=groups[50:])
    np.testing.assert_array_equal(found.interval, model.predict_interval(X[50:], 0.8, groups=groups[50:]))
    for group in "ab":
        own = groups[50:] == group
        assert (groups[found.row[own]] == group).all()
        assert (found.n_calibration[own] == (groups[:50] == group).sum()).all()
    with pytest.raises(ValueError, match="groups is needed"):
        model.explain_interval(X)


def test_names_of_rows():
    X, y = make_data(0, 25)
    found = fixed_model().fit(X, y).explain_interval(X[:3] + 0.1)
    sentence = found.sentences([f"car {i}" for i in range(25)])[0]
    assert f"Nearest training rows: {', '.join(f'car {i}' for i in found.nearest[0])}." in sentence
    assert f"Width {found.width[0]:.3g}. " in sentence


def test_bad_arguments():
    X, y = make_data(0, 25)
    with pytest.raises(NotFittedError):
        fixed_model().explain_interval(X)
    model = fixed_model().fit(X, y)
    for wrong, options in (
        ("confidence_level must be one number", {"confidence_level": [0.9, 0.95]}),
        ("confidence_level must lie strictly between", {"confidence_level": 95}),
        ("n_nearest must be a whole number of at least 0, got -1", {"n_nearest": -1}),
    ):
        with pytest.raises(ValueError, match=wrong):
            model.explain_interval(X, **options)
    with pytest.raises(ValueError, match="3 features"):
        model.explain_interval(np.ones((2, 3)))
