"""Tuning of one set of hyperparameters, for exact and low-rank GPs: checked settings and rows in, numbers out."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from conformal_gp.arrays import Array, Indices
from conformal_gp.gp.inputs import Inputs, Scaling
from conformal_gp.gp.kernels import check_kernel
from conformal_gp.gp.lowrank import LowRankPosterior, LowRankPrior, centres, independent, unexplained_variance
from conformal_gp.gp.posterior import Posterior
from conformal_gp.models.choices import bounds_in_use, choose_difficulty
from conformal_gp.models.learning import Learnt, learn
from conformal_gp.models.settings import Settings, explained, given_transform
from conformal_gp.models.tuned import NO_ROWS, Tuned
from conformal_gp.models.tuning_rows import MOST_TUNING_ROWS, draw_tuning_rows
from conformal_gp.rows import ArrayRows, Rows, RowSource, content_order
from conformal_gp.targets.difficulty import LeftOut
from conformal_gp.targets.target import Target
from conformal_gp.targets.transformation import transformed
from conformal_gp.threads import one_blas_thread

# Sentences of ``guarantee_``: whether coverage is valid, then its condition.
PROMISE = (
    "If new rows are exchangeable with the training rows, and nothing else was fitted to the calibration rows, "
    "intervals cover at least as often as their level."
)
FIXED_GUARANTEE = (
    "Valid: kernel and noise were fixed beforehand, and all {n_calibration} training rows are calibration rows. "
    f"{PROMISE}"
)
SCALED_GUARANTEE = (
    "Not valid in general: inputs were scaled by the training rows alone, so coverage can differ slightly from the "
    "level. With scale_inputs=False it is valid."
)
TRAIN_GUARANTEE = (
    "Not valid in general: hyperparameters and mean function were tuned on the calibration rows, so coverage can fall "
    "below the level, most with few rows or many hyperparameters."
)

# Numbers learnt from the training rows, as a share of these, and coverage measured at nominal 90% with tuning="train"
# (python -m reproduction.studies.coverage).
MEASURED_COVERAGE = ((0.1, 0.88), (0.2, 0.84), (0.33, 0.74), (0.5, 0.66), (0.68, 0.54))


def tuned_guarantee(n_tuning: int, model: str = "scaling and hyperparameters were") -> str:
    """The sentence of a split into tuning rows and calibration rows."""
    split = f"tuned on {n_tuning} tuning rows, and the other {{n_calibration}} are calibration rows"
    return f"Valid: {model} {split}. {PROMISE}"


def fixed_guarantee(n_tuning: int) -> str:
    """The sentence of a kernel and noise that are given, with tuning rows."""
    return (
        f"Valid: kernel and noise were fixed beforehand or on {n_tuning} tuning rows, and the other {{n_calibration}} "
        f"are calibration rows. {PROMISE}"
    )


def fixed(settings: Settings, rows: Rows, y: Array, rng: np.random.RandomState) -> Tuned:
    """Kernel and noise as given; only the scaling comes from the rows, or from tuning rows where these are given."""
    given = settings.kernels[0]
    if settings.noise_variance is None:
        raise ValueError(
            "noise_variance must be a number with tuning='fixed', got None (0 if the kernel has its own noise)."
        )
    if settings.learns_transform:
        raise ValueError(
            f"target_transform={settings.target_transform!r} is learnt, and tuning='fixed' learns nothing; give 'log', "
            "'sqrt' or a pair of functions."
        )
    transformation = given_transform(settings, y)
    tuning_rows = NO_ROWS
    guarantee = SCALED_GUARANTEE if settings.scale_inputs else FIXED_GUARANTEE
    if settings.tuning_rows is not None:
        tuning_rows = draw_tuning_rows(settings, y.size, (rows.content, y), rng)
        guarantee = fixed_guarantee(tuning_rows.size)
    if tuning_rows.size:
        scaling = settings.scaling(rows.X[tuning_rows])
    elif settings.scale_inputs:
        scaling = settings.scaling(rows.X)
    else:  # what missing values are filled by is fixed beforehand, too
        scaling = Scaling(fill=np.zeros(rows.X.shape[1]))
    inputs = Inputs(rows, scaling, settings.mean)
    kernel = settings.kernel(given, rows.X.shape[1])
    check_kernel(kernel, inputs.X)
    return Tuned(
        guarantee=guarantee,
        mean=settings.mean,
        target=Target.of(transformation, y, settings.mean, bounds=settings.bounds),
        gamma=settings.gamma,
        tuning_rows=tuning_rows,
        warnings=explained(inputs, transformed(transformation, y), settings.mean),
        kernel=kernel,
        noise_variance=settings.noise_variance,
        scaling=scaling,
    )


def train(settings: Settings, rows: Rows, y: Array, rng: np.random.RandomState) -> Tuned:
    """Everything by maximum likelihood on the training rows, the coefficients of the mean included: the paper's way."""
    order = content_order(rows.content, y)  # so that what is learnt does not depend on the order of the rows
    scaling = settings.scaling(rows.X[order])
    inputs = Inputs(rows, scaling, settings.mean)
    learnt = learn(settings, rows.take(order), scaling, y[order], y.size, rng)
    return Tuned(
        guarantee=TRAIN_GUARANTEE,
        mean=settings.mean,
        target=Target.of(learnt.transformation, y, settings.mean, bounds=settings.bounds),
        gamma=settings.gamma,
        warnings=[*learnt.remarks, *_few_rows(learnt, inputs, y.size)],
        kernel=learnt.kernel,
        noise_variance=learnt.noise_variance,
        scaling=scaling,
        flat_prior=False,
    )


def _few_rows(found: Learnt, inputs: Inputs, n_rows: int) -> list[str]:
    """A warning where tuning on the training rows is known to lower coverage."""
    learnt = found.n_hyperparameters + 1 + inputs.H.shape[1]
    share = learnt / n_rows
    if share < MEASURED_COVERAGE[0][0]:
        return []
    shares, coverages = np.transpose(MEASURED_COVERAGE)
    expected = float(np.interp(share, shares, coverages))
    return [
        f"tuning='train' learns {learnt} numbers from {n_rows} rows; with such a share, intervals of nominal 90% "
        f"covered about {expected:.0%} in simulations (docs/guarantees.md). tuning='auto' keeps the guarantee."
    ]


def holdout(
    settings: Settings, rows: Rows, y: Array, rng: np.random.RandomState, most_learning: int | None = None
) -> Tuned:
    """Everything by maximum restricted likelihood on tuning rows; all rows predict, the others are calibration rows."""
    tuning_rows = draw_tuning_rows(settings, y.size, (rows.content, y), rng)
    # in the order of their content, so that what is learnt does not depend on the order of the rows
    learning = tuning_rows[content_order(rows.content[tuning_rows], y[tuning_rows])]
    if most_learning is not None:
        learning = learning[np.sort(rng.permutation(learning.size)[:most_learning])]
    own = rows.take(learning)
    own_y = y[learning]
    scaling = settings.scaling(own.X)
    learnt = learn(settings, own, scaling, own_y, y.size, rng)
    z = transformed(learnt.transformation, own_y)
    posterior = Posterior(learnt.kernel, learnt.noise_variance, Inputs(own, scaling, settings.mean), z)
    left_out = LeftOut.of(posterior.residuals, posterior.diagonal, z)
    filled = scaling.filled(own.X)
    difficulty = choose_difficulty(settings, left_out, learnt.transformation, filled, own_y)
    if difficulty is not None and settings.difficulty == "auto":
        bounded = difficulty.is_bounded(posterior.correlations(), filled, left_out.mean)
        difficulty = difficulty if bounded else None
    return Tuned(
        guarantee=tuned_guarantee(tuning_rows.size),
        mean=settings.mean,
        target=Target.of(learnt.transformation, y, settings.mean, **bounds_in_use(settings, own_y)),
        gamma=settings.gamma,
        tuning_rows=tuning_rows,
        warnings=learnt.remarks,
        kernel=learnt.kernel,
        noise_variance=learnt.noise_variance,
        scaling=scaling,
        difficulty=difficulty,
        learning=learning,
    )


# Most tuning rows of a low-rank GP, by default; of how many of them the likelihood is, and with many inputs of so many
# numbers, but not of fewer rows than the last; and of how many of them inducing inputs are the centres.
MOST_LOW_RANK_TUNING_ROWS = 20_000
LEARNING_ROWS = 6000
LEARNING_ENTRIES = 300_000
FEWEST_LEARNING_ROWS = 600
CENTRED_ROWS = 4000
# Default number of inducing inputs, and where these limit what is known of a function without much noise: where so many
# tuning rows of the exact GP predict each other better than that by all tuning rows of the low-rank one.
INDUCING = 512
MORE_INDUCING = 1536
TRIAL_ROWS = 2000
CLEARLY_LESS = 0.95
# There the exact GP is taken up to so many rows, if they are in memory.
ROWS_FOR_EXACT_WITHOUT_NOISE = 10_000

# Least noise variance that is learnt, relative to the kernel's variance: in all, and for each training row. The matrix
# of the sums over rows then has a condition number that double precision can handle, on test functions without noise.
LEAST_RATIO = 1e-7
LEAST_RATIO_A_ROW = 2e-10


def low_rank(settings: Settings, source: RowSource, rng: np.random.RandomState) -> Tuned:
    """Hyperparameters and inducing inputs from tuning rows.

    Where the number of inducing inputs is not given, tuning rows choose it, and for up to
    :data:`ROWS_FOR_EXACT_WITHOUT_NOISE` rows in memory whether the GP is exact.
    """
    content = None
    if isinstance(source, ArrayRows) and source.in_memory:
        content = source.rows.content, source.y
    tuning_rows = draw_tuning_rows(settings, source.n_rows, content, rng, MOST_LOW_RANK_TUNING_ROWS)
    found, limited = _low_rank(settings, source, tuning_rows, rng)
    if limited and isinstance(source, ArrayRows) and source.n_rows <= ROWS_FOR_EXACT_WITHOUT_NOISE:
        settings = replace(settings, tuning_rows=tuning_rows)
        return holdout(settings, source.rows, source.y, rng, most_learning=MOST_TUNING_ROWS)
    return found


def _low_rank(
    settings: Settings, source: RowSource, tuning_rows: Indices, rng: np.random.RandomState
) -> tuple[Tuned, bool]:
    """Results from tuning rows, and whether an exact GP would be better, where that can be."""
    inducing = settings.inducing
    own, y = source.take(tuning_rows)
    order = content_order(own.content, y)
    own = own.take(order)
    y = y[order]
    least_ratio = max(LEAST_RATIO, LEAST_RATIO_A_ROW * source.n_rows)
    if settings.tuning == "fixed":
        given = fixed(replace(settings, tuning_rows=None), own, y, rng)
        scaling = settings.scaling(own.X)
        learnt = Learnt(given.target.transformation, given.kernel, given.noise_variance, [], 0)
        least_ratio = 0.0
    else:
        most = min(LEARNING_ROWS, max(LEARNING_ENTRIES // own.X.shape[1], FEWEST_LEARNING_ROWS))
        some = rng.permutation(y.size)[:most]
        learning = own.take(some)
        scaling = settings.scaling(learning.X)
        with one_blas_thread():
            learnt = learn(
                settings, learning, scaling, y[some], source.n_rows, rng, least_ratio=least_ratio, low_rank=True
            )
    inputs = Inputs(own, scaling, settings.mean)
    z = transformed(learnt.transformation, y)
    prior = partial(LowRankPrior, learnt.kernel, learnt.noise_variance, inputs, z)
    few = isinstance(source, ArrayRows) and source.n_rows <= ROWS_FOR_EXACT_WITHOUT_NOISE
    condition = ""
    limited = False
    if isinstance(inducing, np.ndarray):
        Z = independent(learnt.kernel, scaling.transform(inducing))
        left_out = _left_out(prior(Z), own, z)
        condition = " The inducing inputs that were given must not come from calibration rows."
    else:
        scaled = scaling.transform(own.X[rng.permutation(y.size)[:CENTRED_ROWS]])
        Z = centres(learnt.kernel, scaled, inducing or INDUCING, rng)
        left_out = _left_out(prior(Z), own, z)
        if inducing is None:
            least_noise = least_ratio * float(learnt.kernel.diag(scaled).max())
            some = rng.permutation(y.size)[:TRIAL_ROWS]
            trial = Inputs(own.take(some), scaling, settings.mean)
            next_to_no_noise = few and learnt.noise_variance <= 2.0 * least_noise
            limited = next_to_no_noise or _limits(learnt, trial, z[some], Z, left_out.take(some))
        if limited and not few:
            Z = centres(learnt.kernel, scaled, MORE_INDUCING, rng)
            left_out = _left_out(prior(Z), own, z)
    guarantee = tuned_guarantee(tuning_rows.size, f"a GP with {len(Z)} inducing inputs was")
    if settings.tuning == "fixed":
        guarantee = fixed_guarantee(tuning_rows.size)
    tuned = Tuned(
        guarantee=guarantee + condition,
        mean=settings.mean,
        target=Target(learnt.transformation, **bounds_in_use(settings, y)),
        gamma=settings.gamma,
        tuning_rows=tuning_rows,
        warnings=learnt.remarks,
        kernel=learnt.kernel,
        noise_variance=learnt.noise_variance,
        scaling=scaling,
        difficulty=choose_difficulty(settings, left_out, learnt.transformation, scaling.filled(own.X), y),
        inducing=Z,
    )
    return tuned, limited


def _left_out(prior: LowRankPrior, rows: Rows, y: Array) -> LeftOut:
    """Leave-one-out predictions of the tuning rows."""
    state = LowRankPosterior(prior, prior.sums(rows, y)).rows(rows, y)
    return LeftOut.of(state.alpha, state.diagonal, y)


def _limits(learnt: Learnt, inputs: Inputs, z: Array, Z: Array, left_out: LeftOut) -> bool:
    """Whether the number of inducing inputs limits what is known: the exact GP of some of the rows knows more."""
    if unexplained_variance(learnt.kernel, inputs.X, Z) <= learnt.noise_variance:
        return False
    trial = Posterior(learnt.kernel, learnt.noise_variance, inputs, z)
    exact = LeftOut.of(trial.residuals, trial.diagonal, z)
    return bool(exact.error.mean() < CLEARLY_LESS * left_out.error.mean())
