"""The descent on the lattice."""

import itertools

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from conformal_gp.gp.descent import COARSE, FINE, MIDDLE, Descent, Stage, descend, least_gain
from conformal_gp.gp.hyperparameters import Lattice
from conformal_gp.kernels import kernel_from_name

LATTICE = Lattice(kernel_from_name("se", n_inputs=2), 1.0, 2, 50)


def bowl(target, tried=None):
    """A criterion that is least at a point; ``tried`` takes down what is compared."""

    def value(point):
        return float(np.sum((np.array(point) - target) ** 2))

    def helps(new, old, *_):
        if tried is not None:
            tried.append(new)
        return value(new) < value(old)

    return helps


@pytest.mark.parametrize("target", [(0, 0, 0), (8, 8, 4), (-12, 4, -8), (16, -20, 8)])
def test_the_least_of_a_bowl_is_found_where_steps_lead_to_it(target):
    stages = (Stage(4, 6), *(Stage(1, 6),))
    assert descend(LATTICE, stages, LATTICE.start, bowl(target)) == target


def test_the_stages_in_use_come_near():
    end = descend(LATTICE, (*COARSE, *MIDDLE, *FINE), LATTICE.start, bowl((-9, 13, 6)))
    assert np.abs(np.subtract(end, (-9, 13, 6))).max() <= 2


def test_a_step_that_helps_is_taken_again_in_the_same_direction():
    tried = []
    end = descend(LATTICE, [Stage(2, 1)], LATTICE.start, bowl((6, 6, 0), tried))
    assert end == (6, 6, 0)
    assert tried[:4] == [(2, 2, 0), (4, 4, 0), (6, 6, 0), (8, 8, 0)]
    assert (-2, -2, 0) not in tried  # a direction that has helped is not tried backward


def test_backward_follows_a_failure_forward():
    tried = []
    descend(LATTICE, [Stage(2, 1)], LATTICE.start, bowl((-4, -4, 0), tried))
    assert tried[:4] == [(2, 2, 0), (-2, -2, 0), (-4, -4, 0), (-6, -6, 0)]


def test_nothing_that_helps_ends_a_stage_after_one_round():
    tried = []
    assert descend(LATTICE, [Stage(1, 99)], (1, 2, 3), bowl((1, 2, 3), tried)) == (1, 2, 3)
    assert len(tried) == 2 * len(LATTICE.directions())


def test_directions_follow_each_other_until_none_has_helped_since_the_last_that_did():
    tried = []
    descend(LATTICE, [Stage(4, 9)], LATTICE.start, bowl((4, 0, 0), tried))
    first = tried.index((8, 0, 0))  # the first length scale has helped; a second step has not
    assert tried[first + 1 : first + 3] == [(4, 4, 0), (4, -4, 0)]  # then the second
    later = tried[first + 3 :]
    assert later == [(8, 4, 0), (0, -4, 0), (4, 0, 4), (4, 0, -4), (8, 4, -4), (0, -4, 4)]  # and the joint ones, once


def test_more_is_asked_of_a_step_with_more_rows():
    assert least_gain(200) == pytest.approx(1.0)
    assert least_gain(20) == pytest.approx(0.1)


def test_points_outside_the_lattice_are_not_tried():
    lattice = Lattice(RBF(1.0, (0.5, 4.0)), 1.0, 1, 50)
    tried = []
    end = descend(lattice, [Stage(3, 5)], lattice.start, bowl((50, 0), tried))
    assert end == (6, 0)
    assert all(lattice.inside(point) for point in tried)


def test_rounds_limit_a_stage():
    def always(new, old, *_):
        return new[0] > old[0] and new[0] <= 40 and new[1] == new[0] and new[2] == 0

    assert descend(LATTICE, [Stage(8, 1)], LATTICE.start, always) == (40, 40, 0)
    # each direction helps once a round only
    turns = itertools.count()
    end = descend(LATTICE, [Stage(1, 2, joint=True)], LATTICE.start, lambda *_: next(turns) % 2 == 0)
    assert end == (4, 4, 0)  # twice (1, 1, 0), (0, 0, 1) and (1, 1, -1)


def test_the_automaton_knows_nothing_but_outcomes():
    descent = Descent(LATTICE, Stage(1, 1))
    outcomes = np.random.default_rng(0).integers(0, 2, 40).astype(bool)

    def course():
        state = descent.start((0, 0, 0))
        for helped in outcomes:
            if not state.rounds:
                break
            yield state
            state = descent.next(state, helped)

    assert list(course()) == list(course())
    assert len(list(course())) > 5
