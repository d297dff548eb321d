"""The compiled descent: the same automaton as the one in Python, in little memory, and deaf to what is set aside."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

from conformal_gp._compiled import compiled
from conformal_gp.gp import work
from conformal_gp.gp.descent import COARSE, FINE, MIDDLE, Descent, Stage, State
from conformal_gp.gp.hyperparameters import Lattice
from conformal_gp.gp.inputs import Inputs, Scaling
from conformal_gp.predictors import queue, small_bags, trace
from conformal_gp.predictors.bag import Bag
from conformal_gp.predictors.segments import Segments
from conformal_gp.predictors.small_bags import SmallBag

rng = np.random.default_rng(0)
X = rng.uniform(-2.0, 2.0, (24, 2))
y = np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 1] + 0.05 * rng.standard_normal(24)
LATTICE = Lattice(Matern([1.0, 1.0], nu=2.5), np.sqrt(2.0), 2, 21)


def small_bag(labels, mean="constant"):
    """The first twenty rows, and the others as test rows."""
    inputs = Inputs(X[:20], Scaling.none(X[:20]), mean)
    return SmallBag(LATTICE, Bag(LATTICE, inputs, labels[:20]), np.arange(20)), inputs.new(X[20:])


def test_the_automaton_is_that_of_the_descent():
    """Each state leads to the same one, whatever the outcome of its trial."""
    bag, new = small_bag(y)
    stage = Stage(8, 3)
    descent, rule = Descent(LATTICE, stage), bag._rule([stage])
    kept = work.no_processes(bag._rows, 3)
    rows = work.NewRows(new.pairs.X, new.H, new.noise.features, new.undetermined, False)
    fields = work.fields(bag._rows, bag._family, kept, rule, rows)

    @compiled()
    def after(fields, state, helped):
        w = work.Work(*fields)
        return queue.skip(w, queue.following(w, state, helped))

    for _ in range(20):
        state = descent.start(LATTICE.start)
        for helped in rng.integers(0, 2, 60).astype(bool):
            if not state.rounds:
                break
            found = after(fields, np.array([*state.point, *map(int, state[1:]), 0]), helped)
            state = descent.skip(descent.next(state, helped))
            assert State(tuple(found[:3].tolist()), *found[3:-1].tolist()) == state


@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
def test_what_is_known_of_points_may_be_given_up_at_any_time(mean, monkeypatch):
    """With room for hardly more points than one step needs, or for few test rows at a time, ends are the same."""
    answers = []
    for slots, entries in ((128, 8192), (24, 8192), (24, 20)):
        monkeypatch.setattr(work, "FEWEST_SLOTS", slots)
        monkeypatch.setattr(work, "KEPT_BYTES", 0)
        monkeypatch.setattr(work, "RECENT", slots)
        monkeypatch.setattr(small_bags, "ENTRIES_AT_A_TIME", entries)
        bag, new = small_bag(y, mean)
        at = bag.trace(new, COARSE, {LATTICE.start: Segments.whole_lines(4)})
        answers.append(bag.trace(new, (*MIDDLE, *FINE), at))
    assert len(answers[0]) > 1
    for other in answers[1:]:
        assert set(other) == set(answers[0])
        for point, parts in other.items():
            for mine, theirs in zip(parts, answers[0][point], strict=True):
                np.testing.assert_array_equal(mine, theirs)


def test_a_row_that_is_set_aside_takes_no_digits_from_the_others_however_far_out_its_label_is():
    answers = []
    for label in (1e3, 1e12):
        labels = y.copy()
        labels[4] = label
        bag, new = small_bag(labels)
        answers.append(bag.trace(new, (*COARSE, *MIDDLE), {LATTICE.start: Segments.labels(y[20:])}))
    assert answers[0].keys() == answers[1].keys()
    for point, parts in answers[0].items():
        np.testing.assert_array_equal(parts.row, answers[1][point].row)


def test_the_training_rows_by_themselves_end_where_a_test_row_that_stands_out_does():
    bag, new = small_bag(y)
    stages = (*COARSE, *MIDDLE, *FINE)
    point = bag.training_end(stages, LATTICE.start)
    assert list(bag.trace(new, stages, {LATTICE.start: Segments.labels(np.full(4, 1e9))})) == [point]


@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
def test_whether_rows_have_much_to_say_is_a_matter_of_the_label(mean, monkeypatch):
    """The compiled answer is that of the other follower, for a bound that divides the line of some test rows."""
    bag, new = small_bag(y, mean)
    at = bag.trace(new, COARSE, {LATTICE.start: Segments.whole_lines(4)})
    for module in (small_bags, trace):
        monkeypatch.setattr(module, "GAIN_OF_MUCH", 0.9)
    found = bag.much_to_say(new, at)
    others = trace.Blocks(LATTICE, bag._bag, bag._rows.ranked).much_to_say(new, at)
    assert all(sum(parts.size for parts in outcome.values()) for outcome in found)
    for mine, theirs in zip(found, others, strict=True):
        assert mine.keys() == theirs.keys()
        for point in mine:  # slivers, where two decisions turn at the same label, are of no account
            one, two = (parts.take(parts.high - parts.low > 1e-9) for parts in (mine[point], theirs[point]))
            np.testing.assert_array_equal(one.row, two.row)
            np.testing.assert_allclose(one.low, two.low, rtol=1e-7)
            np.testing.assert_allclose(one.high, two.high, rtol=1e-7)
