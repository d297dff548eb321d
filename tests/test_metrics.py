"""Coverage, width and interval score."""

import numpy as np
import pytest

from conformal_gp.metrics import coverage, interval_score, mean_width

ENDS = np.array([[0.0, 1.0], [-np.inf, 2.0], [3.0, 5.0], [0.0, 0.0]])
Y = np.array([0.0, 2.5, 4.0, 0.0])


def test_ends_belong_to_the_interval() -> None:
    assert coverage(Y, ENDS) == 0.75


def test_one_infinite_interval_makes_the_mean_infinite() -> None:
    assert mean_width(ENDS) == np.inf
    assert mean_width(ENDS[[0, 2]]) == 1.5


def test_levels_are_kept_apart() -> None:
    several = np.stack([ENDS, ENDS + np.array([-1.0, 1.0])], axis=-1)
    assert coverage(Y, several).tolist() == [0.75, 1.0]
    finite = several[[0, 2, 3]]
    assert mean_width(finite).tolist() == [1.0, 3.0]
    scores = interval_score(Y[[0, 2, 3]] + 2.0, finite, [0.9, 0.95])
    alone = [interval_score(Y[[0, 2, 3]] + 2.0, finite[..., i], level) for i, level in enumerate((0.9, 0.95))]
    np.testing.assert_allclose(scores, alone)


def test_the_score_fines_a_miss() -> None:
    assert interval_score([2.0], [[0.0, 1.0]], 0.9) == pytest.approx(1.0 + 20.0)


@pytest.mark.parametrize("ends", [np.zeros(3), np.zeros((3, 3)), np.zeros((2, 2))])
def test_wrong_shapes_are_named(ends: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"intervals must have shape|y_true must have one target"):
        coverage(np.zeros(3), ends)


def test_a_level_is_asked_for_each() -> None:
    with pytest.raises(ValueError, match="confidence_level must have one level"):
        interval_score([0.0], np.zeros((1, 2, 2)), 0.9)
