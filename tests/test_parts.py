"""Coverage by fifths, errors of predictions, and which inputs matter."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from conformal_gp.evaluation import (
    HeldOut,
    Judgement,
    Part,
    accuracy,
    coverage_by_parts,
    cross_validate_intervals,
    importance,
    where_it_fails,
)

LEVEL = Fraction(9, 10)


def held_out(y, half, prediction=None):
    """Intervals of one method, all of the same width."""
    ends = np.stack([np.full(y.size, -half), np.full(y.size, half)], axis=1)[:, :, None]
    return HeldOut(y, [LEVEL], {"a": np.zeros(y.size) if prediction is None else prediction}, {"a": ends})


@pytest.fixture
def uneven():
    """Noise that grows with the first input, and intervals that are right over all rows together."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(size=600), rng.normal(size=600), rng.integers(0, 2, size=600)])
    y = 3.0 * X[:, 0] * rng.standard_normal(600)
    return X, held_out(y, np.quantile(np.abs(y), 0.9), prediction=rng.normal(size=600))


def test_fifths_hold_every_row_once(uneven):
    X, found = uneven
    parts = coverage_by_parts(found, X, ["x", "z", "side"], LEVEL)
    for of, n_parts in (("prediction", 5), ("x", 5), ("z", 5), ("side", 2)):
        mine = [part for part in parts if part.of == of]
        assert len(mine) == n_parts
        assert sum(part.n_rows for part in mine) == 600
        assert sum(part.n_outside for part in mine) == 60
        assert all(before.high < after.low for before, after in pairwise(mine))


def test_where_labels_gather_outside_is_said(uneven):
    X, found = uneven
    parts = coverage_by_parts(found, X, ["x", "z", "side"], LEVEL)
    wrong = [part for part in parts if part.judgement == Judgement.TOO_NARROW]
    assert {part.of for part in wrong} == {"x"}
    assert max(wrong, key=lambda part: part.high).high == X[:, 0].max()
    assert next(part for part in parts if part.of == "x").judgement == Judgement.TOO_WIDE
    words = where_it_fails(parts)
    assert words.startswith("At 90% too many labels are outside where x is 0.")
    even = coverage_by_parts(found, X[:, 1:], ["z", "side"], LEVEL)
    assert "no fifth of the prediction or of an input has more labels outside" in where_it_fails(even)


def test_other_parts_are_counted_in_words():
    parts = [Part(name, 0.0, 1.0, LEVEL, 50, 18, 7.5, Judgement.TOO_NARROW) for name in "abcde"]
    assert where_it_fails(parts[:3]).endswith("c is 0 to 1 (36.0% of 50).")
    assert where_it_fails(parts[:4]).endswith(", and in 1 other part.")
    assert where_it_fails(parts).endswith(", and in 2 other parts.")


def test_chance_rarely_accuses_a_part():
    rng = np.random.default_rng(1)
    calm = (Judgement.KEPT, Judgement.TOO_WIDE)
    accused = 0
    for _ in range(100):
        found = held_out(rng.uniform(-1, 1, size=200), 0.9, prediction=rng.normal(size=200))
        parts = coverage_by_parts(found, rng.normal(size=(200, 6)), list("abcdef"), LEVEL)
        accused += any(part.judgement not in calm for part in parts)
    assert accused <= 8  # at most 1 in 40 is expected


def test_an_input_without_variation_and_infinite_intervals():
    y = np.arange(20.0)
    parts = coverage_by_parts(held_out(y, np.inf), np.ones((20, 1)), ["same"], LEVEL)
    assert parts == []  # the prediction is the same in all rows too
    parts = coverage_by_parts(held_out(y, np.inf), y[:, None], ["x"], LEVEL)
    assert {part.judgement for part in parts} == {Judgement.INFINITE}
    assert where_it_fails([]) == ""


class Line(LinearRegression):
    """A line, with intervals of width 2."""

    def predict_interval(self, X, confidence_level):
        mean = self.predict(X)
        return np.stack([mean - 1, mean + 1], axis=1)[:, :, None].repeat(len(confidence_level), axis=2)


def test_inputs_that_matter_come_first():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 4))
    y = 5 * X[:, 0] + X[:, 2] - X[:, 3] + 0.5 * rng.normal(size=300)
    groups = {"first": [0], "useless": [1], "pair": [2, 3]}
    found = cross_validate_intervals({"line": Line()}, X, y, [0.9], cv=5, groups=groups)
    growth = importance(found)
    assert list(growth) == ["first", "pair", "useless"]
    assert growth["first"] == pytest.approx(np.sqrt(2 * 25 + 0.25) / 0.5 - 1, rel=0.15)
    assert abs(growth["useless"]) < 0.05
    assert accuracy(found)["line"].r2 == pytest.approx(1 - 0.25 / y.var(), abs=0.01)
    assert accuracy(found)["line"].rmse == pytest.approx(0.5, rel=0.1)
    assert importance(cross_validate_intervals({"line": Line()}, X, y, [0.9], cv=5)) == {}


def test_frames_are_shuffled_too():
    pd = pytest.importorskip("pandas", reason="frames need pandas")
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    y = frame["a"] * 3.0
    asked = {"cv": 3, "groups": {"a": [0], "b": [1]}}
    found = cross_validate_intervals({"line": Line()}, frame, y, [0.9], **asked)
    plain = cross_validate_intervals({"line": Line()}, frame.to_numpy(), y, [0.9], **asked)
    for name in ("a", "b"):
        np.testing.assert_allclose(found.shuffled[name], plain.shuffled[name])
