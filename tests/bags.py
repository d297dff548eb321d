"""Bags of rows, ordinary and nasty, and what the theorem says of them: each row in turn is the test row."""

import warnings
from contextlib import contextmanager
from fractions import Fraction
from typing import NamedTuple
from unittest import mock

import mpmath
import numpy as np
from numpy.linalg import LinAlgError
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel
from sklearn.neighbors import KNeighborsRegressor

from conformal_gp import ConformalGPRegressor
from conformal_gp.answers import Question
from conformal_gp.gp.inputs import basis
from conformal_gp.models import draws
from conformal_gp.rows import Rows

# Scores that differ by less than this share of their size must tie.
TIED = 1e-11
# Share of the largest score by which rounding may put others off, where the noise is next to nothing.
NEAR_TIE = 1e-2
# The same where hyperparameters are averaged over, of scores that are at most about the root of the number of rows.
NEAR_TIE_OF_AVERAGES = 1e-5
# Draws from the prior: the theorem holds for any number of them, and few are quick.
FEW_DRAWS = 32

FIXED = {"tuning": "fixed", "scale_inputs": False}
HOLDOUT = {"tuning": "holdout", "n_restarts": 0, "random_state": 0}
LOW_RANK = {"low_rank": 5, **HOLDOUT}

# Every way of tuning that says it is valid. Without "tuning" hyperparameters are averaged over.
MODELS = {
    "default": {},
    "one length scale": {"ard": False},
    "linear mean": {"mean": "linear"},
    "zero mean": {"mean": "zero"},
    "se": {"kernel": "se"},
    "rq": {"kernel": "rq"},
    "nn": {"kernel": "nn"},
    "matern32": {"kernel": "matern32"},
    "unscaled": {"scale_inputs": False},
    "no transformation": {"target_transform": None, "y_bounds": None},
    "box-cox": {"target_transform": "box-cox"},
    "gamma 1": {"gamma": 1.0, "noise_variance": 0.1, **FIXED},
    "gamma 3": {"gamma": 3.0, "noise_variance": 0.1, **FIXED},
    "gamma inf": {"gamma": np.inf, "noise_variance": 0.1, **FIXED},
    "kernels": {"kernel": ["se", "matern32"], "ard": False, **HOLDOUT},
    "product": {"kernel": ConstantKernel() * Matern(1.0, nu=1.5)},
    "sum": {"kernel": ConstantKernel() * RBF(1.0) + ConstantKernel() * DotProduct()},
    "own noise": {"kernel": ConstantKernel() * RBF(1.0) + WhiteKernel(0.1), "noise_variance": 0.0},
    "no noise": {"noise_variance": 0.0},
    "fixed": {"noise_variance": 0.1, **FIXED},
    "fixed, linear mean": {"noise_variance": 1e-3, "mean": "linear", **FIXED},
    "fixed, little noise": {"noise_variance": 1e-8, **FIXED},
    "holdout": HOLDOUT,
    "holdout, linear mean": {"mean": "linear", **HOLDOUT},
    "holdout, difficulty": {"difficulty": KNeighborsRegressor(3), **HOLDOUT},
    "low rank": LOW_RANK,
    "low rank, linear mean": {"mean": "linear", **LOW_RANK},
    "low rank, difficulty": {"difficulty": KNeighborsRegressor(3), **LOW_RANK},
    "low rank, fixed": {"low_rank": 5, "noise_variance": 0.1, "random_state": 0, **FIXED},
}


# Those that take any labels.
ANY_LABELS = [name for name in MODELS if name != "box-cox"]


def n_tuning(options):
    """Tuning rows that a model is given: they come first, and are in the model whichever row is the test row."""
    return 9 if options.get("tuning") == "holdout" or "low_rank" in options else 0


def averages(name):
    """Whether a model averages over hyperparameters."""
    return "tuning" not in MODELS[name]


@contextmanager
def few_draws():
    """Fewer draws from the prior."""
    with mock.patch.object(draws, "PRIOR_DRAWS", FEW_DRAWS):
        yield


class Found(NamedTuple):
    """What models say of n rows, each of them in turn the test row."""

    ranks: np.ndarray
    """(n,): p-values times the number of rows, or of rows of the group."""
    missed: dict
    """By the name of an answer, (n, levels): whether the label is not in it."""
    groups: np.ndarray
    """(n,): the group of each row."""


def whole_and_other_levels(n):
    """Levels whose share of n rows is whole, and others; n rows are too few for the last of them."""
    return [Fraction(n // 2, n), Fraction(n - 1, n), Fraction(4, 5), Fraction(29, 30)]


def in_turn(X, y, options, first=0, later=0, variances=None, groups=None, levels=None, valid="Valid:"):
    """Each row from ``first`` on in turn the test row: p-values, intervals, sets and bounds.

    The last ``later`` rows that are not the test row come one after the other, by partial_fit.
    None if the model refuses some of the bags: that no interval is given is no breach of the guarantee.
    """
    n = len(y) - first
    own = np.zeros(len(y)) if groups is None else groups
    sizes = (own[first:, None] == own[first:]).sum(axis=1)
    levels = whole_and_other_levels(n) if levels is None else levels
    if first:
        options = {**options, "tuning_rows": np.arange(first)}
    ranks = np.empty(n)
    missed = {name: np.empty((n, len(levels)), dtype=bool) for name in ("p", "interval", "set", "lower", "upper")}
    for i in range(n):
        rest = np.arange(len(y)) != first + i
        fitted = np.flatnonzero(rest)[: len(y) - 1 - later]
        with warnings.catch_warnings(), few_draws():
            warnings.simplefilter("ignore", UserWarning)
            try:
                model = ConformalGPRegressor(**options)
                model.fit(X[fitted], y[fitted], **_of_rows(fitted, variances, groups))
                for row in np.flatnonzero(rest)[len(fitted) :]:
                    model.partial_fit(X[[row]], y[[row]], **_of_rows([row], variances, groups))
                ask = X[~rest], _of_rows(~rest, variances, groups)
                ranks[i] = model.predict_p(ask[0], y[~rest], **ask[1])[0] * sizes[i]
                missed["p"][i] = [ranks[i] <= float((1 - level) * int(sizes[i])) + 1e-9 for level in levels]
                for name, inside in _inside(model, *ask, y[first + i], levels):
                    missed[name][i] = ~inside
            except LinAlgError:
                return None
            except ValueError as error:
                if "coefficients, too many" in str(error):
                    return None
                raise
        assert model.guarantee_.startswith(valid)
    return Found(ranks, missed, own[first:])


def _of_rows(rows, variances, groups):
    """Known noise and groups of some rows, as arguments."""
    given = {"y_variance": variances, "groups": groups}
    return {name: values[rows] for name, values in given.items() if values is not None}


def _inside(model, x, how, label, levels):
    """Whether a label is in interval, set and bounds of the levels."""
    low, high = model.predict_interval(x, levels, **how)[0]
    yield "interval", (low <= label) & (label <= high)
    regions = [model.predict_set(x, level, **how)[0] for level in levels]
    yield "set", np.array([((region[:, 0] <= label) & (label <= region[:, 1])).any() for region in regions])
    yield "lower", model.predict_bound(x, levels, side="lower", **how)[0] <= label
    yield "upper", label <= model.predict_bound(x, levels, **how)[0]


def check_misses(found, levels=None, more=0):
    """At level 1 - delta, each answer misses at most delta n of the n rows of a group, or so many more.

    Intervals hold sets, and sets hold the labels whose p-values say so: ends are rounded outwards.
    """
    levels = whole_and_other_levels(len(found.ranks)) if levels is None else levels
    for group in np.unique(found.groups):
        members = found.groups == group
        allowed = [int((1 - level) * int(members.sum())) + more for level in levels]
        for name, missed in found.missed.items():
            assert (missed[members].sum(axis=0) <= allowed).all(), (name, group, missed[members].sum(axis=0), allowed)
    assert not (found.missed["interval"] & ~found.missed["set"]).any()
    assert not (found.missed["set"] & ~found.missed["p"]).any()


def check(X, y, found, name, first=0):
    """What the theorem says: p-values are 1/n, ..., 1 in some order, but for ties; rows that are equal have equal ones.

    Where ties are not of groups of rows (row 1 ties with 2, and 2 with 3, but not 1 with 3), they are looked at in
    50-digit arithmetic: each p-value counts all rows that score as high, and none that scores lower by much more than
    rounding, which is in proportion to the largest score in units of standard deviations.
    """
    ranks = found.ranks
    assert (np.sort(ranks) >= np.arange(1, ranks.size + 1) - 1e-9).all(), np.sort(ranks)
    check_misses(found)
    if averages(name) and not is_permutation(ranks):
        scores = averaged_scores(X, y, name)
        slack = NEAR_TIE_OF_AVERAGES * (
            1.0 + np.where(np.isfinite(scores), scores, 0.0)
        )  # by bounds, some are infinite
        near = (scores >= (scores - slack)[:, None]).sum(axis=1)
        assert (ranks <= np.add(near, 1e-9)).all(), (ranks, scores)
    elif not is_permutation(ranks):
        exact, error = exact_scores(X, y, name, first)
        at_least = [(exact >= (1 - TIED) * score).sum() for score in exact]
        near = [(exact >= score - NEAR_TIE * error).sum() for score in exact]
        assert ((at_least <= ranks + 1e-9) & (ranks <= np.add(near, 1e-9))).all(), (ranks, exact)
    rows = np.column_stack([X, y])[first:]
    _, group = np.unique(rows, axis=0, return_inverse=True)
    for member in range(group.max() + 1):
        assert np.ptp(ranks[group.ravel() == member]) < 1e-9


def fitted_to_all_but_the_last(X, y, options):
    """A model without its warnings."""
    with warnings.catch_warnings(), few_draws():
        warnings.simplefilter("ignore", UserWarning)
        return ConformalGPRegressor(**options).fit(X[:-1], y[:-1])._answers


def averaged_scores(X, y, name):
    """Scores of all rows where hyperparameters are averaged over, the last row as the test row."""
    answers = fitted_to_all_but_the_last(X, y, MODELS[name])
    label = answers.target.extended(y[-1:])
    blocks = []
    answers.model.visit(Rows(X[-1:]), Question(labels=label), blocks.append)
    rows, own = blocks[0].scores.scores_of_labels(label[:, None])
    return np.abs(np.append(rows[0, 0], own[0, 0]))


def exact_scores(X, y, name, first=0):
    """Scores of the rows from ``first`` on in 50 digits, with the hyperparameters in use.

    And the largest score of all rows in units of standard deviations, as a score.
    """
    options = dict(MODELS[name])
    if first:
        options["tuning_rows"] = np.arange(first)
    answers = fitted_to_all_but_the_last(X, y, options)
    y = answers.target.forward(y)  # labels that are large beside their differences are measured from one of them
    model = answers.model
    with mpmath.workdps(50):
        A, H = low_rank_matrices(model, X) if "low_rank" in options else matrices(model, X)
        P = C = A**-1
        if H.cols:
            P = C - C * H * (H.T * C * H) ** -1 * H.T * C
        alpha = P * mpmath.matrix(y.tolist())
        power = 1 - 1 / mpmath.mpf(options.get("gamma", 2.0))
        # a row that alone determines a coefficient scores 0
        P_ii = [P[i, i] if P[i, i] > 1e-25 * C[i, i] else mpmath.mpf(0) for i in range(len(y))]
        largest = max(abs(a) / mpmath.sqrt(p) for a, p in zip(alpha, P_ii, strict=True) if p)
        unit = max(p ** (mpmath.mpf(0.5) - power) for p in P_ii if p)
        scores = [abs(a) / p**power if p else p for a, p in zip(alpha, P_ii, strict=True)]
        scores = np.array(scores[first:], dtype=float)
    if model.difficulty is not None:
        scores = scores / model.difficulty(Rows(X[first:])).scale
    return scores, float(largest * unit)


def matrices(model, X):
    """Covariance matrix of all rows, and the basis of their mean."""
    inputs, posterior = model.inputs, model.posterior
    new = inputs.new(Rows(X[-1:]))
    rows = np.vstack([inputs.X, new.X])
    noise = np.append(posterior.noise, new.noise(posterior.noise_variance))
    A = mpmath.matrix(posterior.kernel(rows).tolist()) + mpmath.diag(noise.tolist())
    return A, mpmath.matrix(independent(basis(inputs.mean, rows)).tolist())


def low_rank_matrices(model, X):
    """The same in a low-rank model (FITC), with the basis that tuning rows determine."""
    prior = model.posterior._prior
    rows = prior.inputs.new(Rows(X))
    cross = mpmath.matrix(prior._kernel(rows.X, prior._Z).tolist())
    A = cross * mpmath.matrix(prior._kernel(prior._Z).tolist()) ** -1 * cross.T
    variances = prior._kernel.diag(rows.X) + rows.noise(prior._noise_variance)
    for row, variance in enumerate(variances.tolist()):
        A[row, row] = variance
    return A, mpmath.matrix(rows.H.tolist())


def independent(H):
    """Columns of a basis that are not combinations of those before them."""
    kept = np.empty((len(H), 0))
    for column in (H / np.maximum(np.abs(H).max(axis=0), np.finfo(float).tiny)).T:
        left = column - kept @ np.linalg.lstsq(kept, column, rcond=None)[0]
        if np.linalg.norm(left) > 1e-10 * np.linalg.norm(column):
            kept = np.column_stack([kept, column])
    return kept


def is_permutation(ranks):
    """Whether the p-values are 1/n, ..., 1, but for ties."""
    return np.allclose(np.sort(ranks), (np.sort(ranks) <= np.sort(ranks)[:, None] + 1e-9).sum(axis=1), atol=1e-9)


def smooth(rng, n):
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1]


def noisy(rng, n):
    X, y = smooth(rng, n)
    return X, y + 0.3 * rng.standard_normal(n)


def far_out_input(rng, n):
    X, y = noisy(rng, n)
    X[-1, 0] = 1e9
    return X, y


def far_out_label(rng, n):
    X, y = smooth(rng, n)
    y[-1] = 1e9
    return X, y


def offsets(rng, n):
    X, y = noisy(rng, n)
    return X + np.array([1e8, 0.0]), y + 1e6


def binary(rng, n):
    X, y = noisy(rng, n)
    X[:, 1] = X[:, 1] > 0
    return X, y


def constant(rng, n):
    X, y = noisy(rng, n)
    return np.column_stack([X, np.ones(n)]), y


def near_duplicates(rng, n):
    X, y = smooth(rng, n)
    X[-2] = X[-1] + 1e-7
    return X, y + 1e-3 * rng.standard_normal(n)


def duplicates(rng, n):
    X, y = smooth(rng, n)
    X[-3:], y[-3:] = X[-1], y[-1]
    return X, y


def few_values(rng, n):
    X, y = noisy(rng, n)
    return np.round(X), np.round(y)


def positive(rng, n):
    X, y = noisy(rng, n)
    return X, np.exp(2 * y)


def one_zero(rng, n):
    X, y = positive(rng, n)
    y[-1] = 0.0
    return X, y


def two_zeros(rng, n):
    X, y = one_zero(rng, n)
    y[0] = 0.0
    return X, y


def one_negative(rng, n):
    X, y = two_zeros(rng, n)
    y[1] = -1.0
    return X, y


def alike_but_one(rng, n):
    X, y = smooth(rng, n)
    y[:] = 7.3
    y[-1] += 1.0
    return X, y


BAGS = [
    smooth, noisy, far_out_input, far_out_label, offsets, binary, constant, near_duplicates, duplicates, few_values,
    alike_but_one, positive, one_zero, two_zeros, one_negative,
]  # fmt: skip


def nasty(rng, n):
    """A bag with any of these, and more, at once.

    Differences within a column are at most 1e15 apart: double precision does not hold more.
    """
    d = int(rng.integers(1, 4))
    X = rng.uniform(-2, 2, (n, d))
    y = np.sin(2 * X[:, 0]) + 0.3 * X.sum(axis=1)

    def some(share=0.25):
        return rng.random() < share

    def two():
        return rng.choice(n, 2, replace=False)

    if some(0.6):
        y += 10.0 ** rng.uniform(-6, 0) * rng.standard_normal(n)
    if some():
        X[:, -1] = X[:, -1] > rng.uniform(-1.5, 1.5)
    if some(0.1):
        X = np.column_stack([X[:, :1], np.eye(3)[rng.integers(0, 3, n)]])
    if some(0.15):
        X = np.column_stack([X, np.full(n, rng.choice([0.0, 1.0, 1e6]))])
    if some():
        X[two(), rng.integers(X.shape[1])] = 10.0 ** rng.uniform(1, 9, 2) * rng.choice([-1, 1])
    if some():
        y[rng.integers(n)] = 10.0 ** rng.uniform(1, 9) * rng.choice([-1, 1])
    if some():
        i, j = two()
        X[i] = X[j]
    if some():
        i, j = two()
        X[i], y[i] = X[j], y[j]
    if some():
        i, j = two()
        X[i] = X[j] + 10.0 ** rng.uniform(-6, -3)
    if some():
        y = np.round(2 * y)
    if some():
        X = np.round(X)
    if some():
        X = X + 10.0 ** rng.uniform(2, 9) * rng.choice([-1, 0, 1], X.shape[1])
    if some():
        y = y + 10.0 ** rng.uniform(2, 9)
    if some():
        X = X * 10.0 ** rng.uniform(-8, 8, X.shape[1])
    if some():
        y = y * 10.0 ** rng.uniform(-12, 12)
    if some(0.08):
        y = (y > np.median(y)).astype(float)
    if some(0.08):
        y[:] = y[0]
        y[two()[:1]] += 1.0
    return X, y
