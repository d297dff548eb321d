"""Findings on subgroups, comparisons, and what would help."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from conformal_gp.evaluation import (
    HeldOut,
    Judgement,
    verdict,
)
from conformal_gp.evaluation.findings import one_set_range
from conformal_gp.evaluation.held_out import bought
from conformal_gp.extrapolation import Grid

LEVEL = Fraction(9, 10)


def held_out(y, half, prediction=None, levels=(LEVEL,)):
    """Intervals of one method about 0, of half widths that are the same in all rows."""
    ends = np.tile(np.outer([-1.0, 1.0], np.atleast_1d(half)), (y.size, 1, 1))
    return HeldOut(y, list(levels), {"a": np.zeros(y.size) if prediction is None else prediction}, {"a": ends})


def test_what_the_guarantee_bought():
    """The sentence is on the level at which the standard GP is worst, and follows both verdicts."""

    def said(ours, standard, n=200, infinite=0, grid=None):
        levels = [LEVEL, Fraction(99, 100)]
        ends = {
            name: np.stack([[(0.0, 2.0 * (i >= misses[k])) for k in range(2)] for i in range(n)]).swapaxes(1, 2)
            for name, misses in (("conformal", ours), ("standard GP", standard))
        }
        ends["conformal"][:infinite] = [[-np.inf], [np.inf]]
        return bought(HeldOut(np.ones(n), levels, {}, ends, grid=grid), "conformal", "standard GP")

    assert said((20, 2), (25, 12)) == (
        "The guarantee raised coverage: at 99% the standard GP covered 94.0%, conformal 99.0%, with intervals as wide."
    )
    assert said((20, 2), (30, 2)).startswith("The guarantee raised coverage, if not by chance: at 90%")
    assert said((20, 2), (1, 0)).startswith("The guarantee lowered coverage to its level: at 90%")
    assert said((20, 2), (19, 2)).startswith("On this table the guarantee bought assurance, not coverage: at 90%")
    assert said((2, 0), (2, 0), n=20).startswith("So few rows cannot tell what the guarantee bought: at 90%")
    assert said((60, 2), (70, 2)).startswith("The guarantee needs exchangeable rows, and these seem not to be: at 90%")
    assert said((0, 0), (70, 2), infinite=200) == "At 90% there are too few rows for the guarantee."
    assert said((20, 2), (20, 2), grid=Grid({}, 4, 4)).startswith(
        "These rows cannot tell what the guarantee buys between"
    )


def test_coverage_of_one_set_scatters_as_said():
    """Coverage of new labels by the k-th largest of n scores, over many sets."""
    rng = np.random.default_rng(0)
    for level, n, k in ((0.9, 19, 18), (0.8, 59, 48)):
        held = np.sort(rng.uniform(size=(4000, n)), axis=1)[:, k - 1]  # of uniform scores
        np.testing.assert_allclose(one_set_range(level, n), np.quantile(held, [0.05, 0.95]), atol=0.01)
    assert held_out(np.zeros(3), 1.0).one_set() == ""


@pytest.fixture
def uneven():
    """Noise that grows with the first input, and intervals that are right over all rows together."""
    rng = np.random.default_rng(0)
    x, side = rng.uniform(size=600), rng.integers(0, 2, size=600)
    X = pd.DataFrame({"x": x, "z": rng.normal(size=600), "side": pd.Categorical(np.array(["left", "right"])[side])})
    y = 3.0 * x * rng.standard_normal(600)
    return X, held_out(y, np.quantile(np.abs(y), 0.9), prediction=rng.normal(size=600))


def test_parts_hold_every_row_once_and_say_where_labels_gather_outside(uneven):
    X, found = uneven
    parts = found.by_part(X)
    for name, n_parts in (("prediction", 5), ("x", 5), ("z", 5), ("side", 2)):
        mine = [part for part in parts if part.among.startswith(f"{name} is")]
        assert len(mine) == n_parts
        assert sum(part.n_rows for part in mine) == 600
        assert sum(part.n_outside for part in mine) == 60
    assert [part.among for part in parts[-2:]] == ["side is left", "side is right"]
    wrong = [part for part in parts if part.judgement == Judgement.TOO_NARROW]
    assert {part.among.split()[0] for part in wrong} == {"x"}
    assert next(part for part in parts if part.among.startswith("x")).judgement == Judgement.TOO_WIDE
    assert found.by_part(None) == [part for part in found.by_part(None) if part.among.startswith("prediction")]
    assert held_out(np.arange(20.0), 1.0).by_part(np.ones((20, 1))) == []  # nothing varies


def test_the_verdict_names_a_subgroup_with_too_narrow_intervals(uneven):
    X, found = uneven
    (sentence,) = verdict(found.findings(), found.by_part(X))
    assert "90% intervals covered 90.0%" in sentence
    assert "as expected overall, but too narrow where x is 0.8" in sentence
    assert verdict(found.findings()) == verdict(found.findings(), found.by_part(None))
    assert "covered 90.0%, as expected; median width" in verdict(found.findings())[0]


def test_chance_rarely_accuses_a_part():
    rng = np.random.default_rng(1)
    suspect, accused = (Judgement.IN_DOUBT, Judgement.TOO_NARROW), 0
    for _ in range(100):
        found = held_out(rng.uniform(-1, 1, size=200), 0.9, prediction=rng.normal(size=200))
        accused += any(part.judgement in suspect for part in found.by_part(rng.normal(size=(200, 6))))
    assert accused <= 8  # at most 1 in 40 is expected


def test_advice_says_what_would_help(uneven):
    X, found = uneven
    rng = np.random.default_rng(3)
    normal = rng.standard_normal(400)
    assert "a difficulty model (difficulty=): where x is 0.8" in found.advice(X)
    levels = (LEVEL, Fraction(99, 100))
    assert (
        held_out(normal, [1.645, np.inf], levels=levels).advice().startswith("More rows, or a lower level: 99% needs")
    )
    skewed = rng.exponential(size=400) - 0.05
    assert (
        held_out(skewed, np.quantile(skewed, 0.9))
        .advice()
        .startswith("A target transformation (target_transform='yeo-johnson') or")
    )
    assert held_out(normal, 1.645).advice() == ""
    reaching_both_limits = replace(held_out(normal, np.inf), censoring=np.ones(400), n_calibration=40)
    assert reaching_both_limits.advice() == ""
    too_few_batches = replace(held_out(normal, np.inf), calibration="batches")
    assert "90% needs at least 9 calibration batches" in too_few_batches.advice()
    few = held_out(np.r_[np.zeros(41), 2.0, 2.0, -2.0, -2.0], 1.0).advice()
    assert few == "More rows: a verdict on 90% needs about 100, and there are 45."
