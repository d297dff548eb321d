"""Cross-validation of intervals, and the verdict on them."""

import json
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit

from cases import fixed_model
from conformal_gp.comparators import SplitConformal
from conformal_gp.evaluation import (
    Finding,
    Judgement,
    chance_range,
    cross_validate_intervals,
    percent,
    verdict,
)
from conformal_gp.report import build_report
from conformal_gp.steps import PredictiveDistribution


def finding(method="GPR-CP", level="0.9", misses=10, n=100, width=1.0, infinite=0):
    return Finding(method, Fraction(level), n, misses // 2, misses - misses // 2, width, width, infinite)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 2))
    return X, X[:, 0] + rng.normal(size=30)


class Given(RegressorMixin, BaseEstimator):
    """Intervals that do not depend on the training rows: the first input plus or minus 1."""

    def fit(self, X, y):
        return self

    def predict(self, X, return_std=False):
        return (X[:, 0], np.ones(len(X))) if return_std else X[:, 0]

    def predict_interval(self, X, confidence_level):
        ends = np.stack([X[:, 0] - 1.0, X[:, 0] + 1.0], axis=1)
        return np.repeat(ends[:, :, None], len(confidence_level), axis=2)

    def predict_quantiles(self, X, quantiles):
        return np.repeat(X[:, :1], len(quantiles), axis=1)

    def predict_p(self, X, y):
        return np.where(np.abs(y - X[:, 0]) <= 1.0, 1.0, 1e-3)

    guarantee_ = "None."


def with_misses(n, misses):
    """Rows of which so many labels lie outside the intervals of ``Given``, and outside its error bars."""
    X = np.zeros((n, 1))
    y = np.zeros(n)
    y[:misses] = 10.0
    return X, y


@pytest.mark.parametrize(
    ("misses", "judgement"), [(10, "kept"), (16, "kept"), (17, "in doubt"), (19, "too narrow"), (2, "too wide")]
)
def test_judgement(misses, judgement):
    assert finding(misses=misses).judgement == judgement


def test_each_side_is_held_against_half_of_what_is_promised():
    one_sided = Finding("a", Fraction(9, 10), 100, 0, 13, 1.0, 1.0, 0)
    assert one_sided.judgement == Judgement.KEPT
    assert one_sided.judgement_above == Judgement.TOO_NARROW
    assert one_sided.judgement_below == Judgement.KEPT
    assert verdict([one_sided]) == ["a: kept the promise at 90%; too many above at 90% (13.0%)."]


def test_scores_of_distributions(rows):
    X, y = rows
    model = fixed_model()
    found = cross_validate_intervals({"a": model, "b": Given()}, X, y, 0.8, cv=3, plain="plain", crps=True)
    train, test = next(iter(KFold(3, shuffle=True, random_state=0).split(X)))
    fitted = model.fit(X[train], y[train])
    np.testing.assert_allclose(found.crps["a"][test], fitted.predict_distribution(X[test]).crps(y[test]))
    mean, std = fitted.predict(X[test], return_std=True)
    # The normal distribution as a step function with many steps.
    steps = norm.ppf((np.arange(4000) + 0.5) / 4000, mean[:, None], std[:, None])
    np.testing.assert_allclose(found.crps["plain"][test], PredictiveDistribution(steps).crps(y[test]), rtol=1e-2)
    assert set(found.crps) == {"a", "plain"}


def test_equal_tails_of_models_that_have_them(rows):
    X, y = rows
    found = cross_validate_intervals({"a": fixed_model(), "b": Given()}, X, y, 0.8, cv=3, tails="equal")
    train, test = next(iter(KFold(3, shuffle=True, random_state=0).split(X)))
    expected = fixed_model().fit(X[train], y[train]).predict_interval(X[test], 0.8, tails="equal")
    np.testing.assert_array_equal(found.intervals["a"][test][:, :, 0], expected)


@pytest.mark.parametrize(("n", "level"), [(392, "0.99"), (100, "0.9"), (57, "0.5"), (2000, "0.95")])
def test_judgement_is_a_binomial_test(n, level):
    delta = float(1 - Fraction(level))
    for misses in range(n + 1):
        as_many, as_few = binom.sf(misses - 1, n, delta), binom.cdf(misses, n, delta)
        expected = (
            Judgement.TOO_NARROW
            if as_many < 0.005
            else Judgement.IN_DOUBT
            if as_many < 0.025
            else Judgement.TOO_WIDE
            if as_few < 0.005
            else Judgement.KEPT
        )
        assert finding(level=level, misses=misses, n=n).judgement == expected


def test_without_a_finite_interval_nothing_is_judged():
    assert finding(misses=0, infinite=100).judgement == Judgement.INFINITE
    assert finding(misses=10, infinite=99).judgement == Judgement.KEPT


def test_findings_count_rows_outside():
    y = np.arange(4.0)
    intervals = np.array([[0, 1], [2, 3], [1, 2], [-np.inf, np.inf]])
    found = Finding.of("m", 0.9, y, intervals)
    assert (found.level, found.n_outside, found.n_infinite, found.mean_width) == (Fraction(9, 10), 1, 1, np.inf)
    assert found.median_width == 1.0
    assert found.miscoverage == 0.25


def test_chance_range_holds_what_it_says():
    levels = [0.5, 0.9, 0.99]
    for (low, high), level in zip(chance_range(levels, 200, 0.8), levels, strict=True):
        for end, tail in ((round(200 * low), binom.cdf), (round(200 * high), lambda k, *a: binom.sf(k - 1, *a))):
            step = -1 if end == round(200 * low) else 1
            assert tail(end, 200, level) >= 0.1 > tail(end + step, 200, level)
    with pytest.raises(ValueError, match="probability must lie strictly between 0 and 1, got 95"):
        chance_range(0.9, 100, 95)


def test_verdict_says_which_error_bars_were_wrong_and_by_how_much():
    sentences = verdict(
        [
            finding("GPR-CP", "0.9", 11, width=2.0),
            finding("plain GPR", "0.9", 30, width=1.0),
            finding("GPR-CP", "0.99", 0, width=np.inf, infinite=100),
            finding("plain GPR", "0.99", 1, width=1.5),
        ]
    )
    assert sentences == [
        "GPR-CP: infinite, for want of rows, at 99%; kept the promise at 90%.",
        "plain GPR: too narrow at 90% (30.0% of labels outside, 3.0 times the 10% promised); kept the promise at 99%.",
        "Mean width of GPR-CP, beside plain GPR: +100% at 90%.",
    ]


def test_a_small_excess_is_not_rounded_away():
    assert "1.04 times the 5% promised" in verdict([finding(level="0.95", misses=5200, n=100_000)])[0]


def test_percent():
    assert [percent(Fraction(999, 1000)), percent(0.07), percent(0.99949, 1)] == ["99.9%", "7%", "99.9%"]


def test_rows_are_predicted_by_the_other_folds(rows):
    X, y = rows
    levels = [0.5, 0.9]
    found = cross_validate_intervals(
        {"model": fixed_model()}, X, y, levels, cv=KFold(3), plain="its error bars", p_values=True
    )
    model = fixed_model().fit(X[10:], y[10:])
    mean, std = model.predict(X[:10], return_std=True)
    for name in ("model", "its error bars"):
        np.testing.assert_array_equal(found.prediction[name][:10], mean)
    np.testing.assert_array_equal(found.p_values["model"][:10], model.predict_p(X[:10], y[:10]))
    np.testing.assert_array_equal(found.intervals["model"][:10], model.predict_interval(X[:10], levels))
    np.testing.assert_allclose(found.intervals["its error bars"][:10, 1, 1], mean + norm.ppf(0.95) * std)


def test_known_noise_goes_to_models_that_take_it(rows):
    X, y = rows
    noise = np.tile([0.01, 2.0], 15)
    models = {"known": fixed_model(), "without": SplitConformal(fixed_model(), random_state=0)}
    asked = {"crps": True, "p_values": True, "quantiles": [0.1, 0.5], "groups": {"all": [0, 1]}}
    found = cross_validate_intervals(
        models, X, y, [0.5, 0.8], cv=KFold(3), plain="plain", noise_variance=noise, **asked
    )
    without = cross_validate_intervals(models, X, y, [0.5, 0.8], cv=KFold(3), **asked)
    np.testing.assert_array_equal(found.intervals["without"], without.intervals["without"])
    for train, test in KFold(3).split(X):
        model = fixed_model().fit(X[train], y[train], noise_variance=noise[train])
        of_test = {"noise_variance": noise[test]}
        np.testing.assert_allclose(
            found.intervals["known"][test], model.predict_interval(X[test], [0.5, 0.8], **of_test)
        )
        np.testing.assert_allclose(found.p_values["known"][test], model.predict_p(X[test], y[test], **of_test))
        np.testing.assert_allclose(
            found.quantiles["known"][test], model.predict_quantiles(X[test], [0.1, 0.5], **of_test)
        )
        np.testing.assert_allclose(
            found.crps["known"][test], model.predict_distribution(X[test], **of_test).crps(y[test])
        )
        mean, std = model.predict(X[test], return_std=True, **of_test)
        half = norm.ppf(0.9) * std
        np.testing.assert_allclose(
            found.intervals["plain"][test][:, :, 1], np.stack([mean - half, mean + half], axis=1)
        )


def test_known_noise_that_cannot_be_taken(rows):
    X, y = rows
    with pytest.raises(ValueError, match="fit of Given does not take it"):
        cross_validate_intervals({"a": Given()}, X, y, noise_variance=np.ones(30))
    with pytest.raises(ValueError, match="one number for each of the 30 rows"):
        cross_validate_intervals({"a": fixed_model()}, X, y, noise_variance=np.ones(29))


def test_methods_keep_their_order_and_frames_their_columns(rows):
    X, y = rows
    models = {"first": fixed_model(), "second": SplitConformal(fixed_model(), random_state=0)}
    frame = pd.DataFrame(X, columns=["a", "b"])
    found = cross_validate_intervals(models, frame, y, 0.5, cv=3, plain="plain")
    assert list(found.intervals) == ["first", "plain", "second"]
    assert [found.method for found in found.findings()] == ["first", "plain", "second"]
    assert found.p_values == {}
    arrays = cross_validate_intervals(models, X, y, 0.5, cv=3, plain="plain")
    for name, intervals in arrays.intervals.items():
        np.testing.assert_array_equal(found.intervals[name], intervals)


def test_each_model_is_fitted_once_a_fold(rows):
    heard = []
    models = {"first": fixed_model(), "second": fixed_model()}
    cross_validate_intervals(
        models, *rows, 0.5, cv=3, plain="plain", progress=lambda done, total: heard.append((done, total))
    )
    assert heard == [(done, 6) for done in range(1, 7)]


def test_findings_of_some_levels(rows):
    found = cross_validate_intervals({"m": Given()}, *rows, [0.5, 0.8, 0.9], cv=2)
    assert [found.level for found in found.findings([0.9, 0.5])] == [Fraction(9, 10), Fraction(1, 2)]


def test_only_the_first_model_warns(rows, recwarn):
    cross_validate_intervals({"first": Given(), "second": fixed_model()}, *rows, 0.99, cv=2)
    assert not recwarn.list
    with pytest.warns(UserWarning, match="needs at least 99 rows"):
        cross_validate_intervals({"first": fixed_model()}, *rows, 0.99, cv=2)


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (1, "cv must lie between 2 and the number of rows, 30; got 1"),
        (31, "got 31"),
        ("ten", "cv must be a number of folds or a scikit-learn splitter, got 'ten'"),
        (ShuffleSplit(1, test_size=10, random_state=0), "20 rows were never held out"),
        (RepeatedKFold(n_splits=3, n_repeats=2), "30 rows were held out repeatedly"),
    ],
)
def test_bad_folds(rows, cv, message):
    with pytest.raises(ValueError, match=message):
        cross_validate_intervals({"m": fixed_model()}, *rows, 0.5, cv=cv)


@pytest.mark.parametrize(("models", "plain"), [({}, None), ({"m": Given()}, "m")])
def test_bad_names(rows, models, plain):
    with pytest.raises(ValueError, match="models must not be empty nor have the name that plain has"):
        cross_validate_intervals(models, *rows, 0.5, plain=plain)


@pytest.mark.parametrize(
    ("misses", "words"),
    [
        (8, "kept the promise at 99%"),
        (9, "in doubt, perhaps too narrow, at 99% (2.3% of labels outside, 2.3 times the 1% promised)"),
        (11, "too narrow at 99% (2.8% of labels outside, 2.8 times the 1% promised)"),
    ],
)
def test_report_and_evaluation_judge_alike(misses, words):
    X, y = with_misses(392, misses)
    found = cross_validate_intervals({"GPR-CP": Given()}, X, y, 0.99, plain="plain GPR").findings()
    assert [(finding.n_outside, finding.n_rows) for finding in found] == [(misses, 392)] * 2
    assert words in verdict(found)[0]
    page = build_report(X, y, model=Given())
    assert words in re.search(r"<p>Conformal intervals: (.*?)</p>", page)[1]
    assert words in re.search(r"<p>Plain Gaussian process: (.*?)</p>", page)[1]


def test_report_and_evaluate_command_find_the_same(tmp_path):
    pytest.importorskip("typer", reason="the command line is an extra: pip install 'conformal-gp[cli]'")
    from typer.testing import CliRunner

    from conformal_gp.cli.app import app

    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=200)
    y = np.sin(x) + 0.1 * rng.standard_t(1.2, size=200)
    table = tmp_path / "tails.csv"
    pd.DataFrame({"x": x, "y": y}).to_csv(table, index=False)
    common = [str(table), "-t", "y", "--folds", "4"]
    document = json.loads(CliRunner().invoke(app, ["evaluate", *common, "--json"]).stdout)
    page = CliRunner().invoke(app, ["report", *common, "-o", "-"]).stdout
    chart = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    judgements = set()
    for method, part in (("GPR-CP", "conformal"), ("plain GPR", "plain")):
        for found in document["findings"]:
            if found["method"] == method:
                place = chart["levels"].index(round(100 * found["level"]))
                assert chart[part]["coverage"][place] == pytest.approx(1 - found["outside"] / 200, abs=1e-6)
                judgements.add(found["judgement"])
    assert len(judgements) > 1
    names = {"GPR-CP": "Conformal intervals", "plain GPR": "Plain Gaussian process"}
    for name, title in names.items():
        sentence = next(line for line in document["verdict"] if line.startswith(f"{name}:"))
        assert f"<p>{sentence.replace(name, title, 1)}</p>" in page


def test_misses_of_conformal_intervals_scatter_no_more_than_the_verdict_assumes():
    """Otherwise the verdict would call right intervals wrong too often."""
    levels, n = [0.8, 0.9], 59
    misses = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 1))
        y = np.sin(X[:, 0]) + 0.3 * rng.standard_t(4, size=n)
        found = cross_validate_intervals({"m": fixed_model()}, X, y, levels, cv=5, random_state=seed)
        misses.append([finding.n_outside for finding in found.findings()])
    for level, spread in zip(levels, np.std(misses, axis=0), strict=True):
        assert spread < 0.8 * np.sqrt(n * level * (1 - level))
