"""The tuning methods: checked settings and rows in, a tuning result out, which makes a predictor of the rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.conformal.lines import Spread
from conformal_gp.gp.inputs import Inputs, Points, Scaling
from conformal_gp.gp.posterior import Posterior
from conformal_gp.gp.warps import Bounds, Warp
from conformal_gp.predictors.base import OneProcess, Predictor, Process
from conformal_gp.predictors.bounded import BoundedPredictor
from conformal_gp.predictors.transformed import ShiftedPredictor, WarpedPredictor
from conformal_gp.tuning.choices import (
    choose_difficulty,
    learn_with_warp,
    learnt_bounds,
    mapped,
    only_warp,
)
from conformal_gp.tuning.design import design_rows
from conformal_gp.tuning.difficulty import Difficulty, LeftOut
from conformal_gp.tuning.learning import Hyperparameters, Purpose, choose_gamma
from conformal_gp.tuning.settings import Settings, check_kernel, explained
from conformal_gp.types import Array, Rows

# Sentences of ``guarantee_``.
PROMISE = (
    "if new rows are exchangeable with the training rows, intervals cover the label of a new row at least as often as "
    "they say"
)
FIXED_GUARANTEE = (
    f"Valid: kernel and noise were fixed beforehand and all training rows are calibration rows, so {PROMISE}."
)
SCALED_GUARANTEE = (
    "Not valid in general: inputs were scaled by the training rows alone, so coverage can differ slightly from the "
    "level; with scale_inputs=False it is valid."
)
TRAIN_GUARANTEE = (
    "Not valid in general: hyperparameters and mean function were learnt from the training rows alone, so coverage "
    "can fall below the level, most with few rows or many hyperparameters."
)
UNSEEN_CONDITION = (
    "That includes rows of unseen categories only if the list of categories was fixed before rows were divided into "
    "training and test rows."
)

NO_ROWS: Rows = np.empty(0, dtype=np.int64)
# Labels that differ by less than this share of their size are measured from one of them.
OFFSET = 1e-3


# Numbers learnt from the training rows, as a share of these, and coverage measured at nominal 90% with tuning="train"
# (python -m reproduction.coverage).
MEASURED_COVERAGE = ((0.1, 0.88), (0.2, 0.84), (0.33, 0.74), (0.5, 0.66), (0.68, 0.54))


class Fitted(NamedTuple):
    """A predictor, and the plain process behind it in units of the (mapped) labels."""

    predictor: Predictor
    kernel: Kernel
    noise_variance: float
    mean_coef: Array
    log_marginal_likelihood: float


@dataclass(frozen=True, kw_only=True)
class TuningResult(ABC):
    """What a tuning method has decided."""

    mean: str
    gamma: float
    guarantee: str
    """A sentence, in which ``{n_ranked}`` stands for the number of calibration rows."""
    design: Rows = field(default_factory=lambda: NO_ROWS)
    """Rows that are not ranked."""
    warp: Warp | None = None
    """Monotone transformation of the labels."""
    difficulty: Difficulty | None = None
    """What widths follow, besides the standard deviation."""
    bounds: Bounds | None = None
    """Bounds of labels that design rows suggest."""
    warnings: list[str] = field(default_factory=list, compare=False)
    """What to warn of, once, in ``fit``."""

    def ranked(self, n_rows: int) -> Rows | None:
        """Rows that are ranked; None is all."""
        return None if self.design.size == 0 else np.setdiff1d(np.arange(n_rows), self.design)

    @abstractmethod
    def fitted(self, rows: Points, y: Array, n_jobs: int | None, earlier: Process | None = None) -> Fitted:
        """Make the predictor; nothing is learnt.

        ``earlier`` is the process of the first of these rows, if there is one, of which an exact process is extended.
        """


class ExactProcess(TuningResult):
    """What a tuning method of the exact process has decided."""

    def fitted(self, rows: Points, y: Array, n_jobs: int | None, earlier: Process | None = None) -> Fitted:
        """See TuningResult."""
        labels = mapped(self.warp, y)
        by = self._origin(labels)
        fitted = self._fitted(rows, labels, by, n_jobs, earlier)
        if by != 0.0:
            mean_coef = np.append(fitted.mean_coef[0] + by, fitted.mean_coef[1:])
            fitted = fitted._replace(predictor=ShiftedPredictor(fitted.predictor, by), mean_coef=mean_coef)
        predictor = fitted.predictor if self.warp is None else WarpedPredictor(fitted.predictor, self.warp)
        if self.bounds is not None:
            predictor = BoundedPredictor(predictor, self.bounds, self.bounds.side(y))
        return fitted._replace(predictor=predictor)

    def _origin(self, y: Array) -> float:
        """A constant to take from labels that are large beside their differences, so that rounding takes no digits.

        The mean function takes up any constant, so it makes no difference but that.
        """
        middle = float(np.sort(y)[y.size // 2])
        if self.mean == "zero" or not np.abs(y - middle).max() < OFFSET * abs(middle):
            return 0.0
        return middle

    @abstractmethod
    def _fitted(self, rows: Points, y: Array, by: float, n_jobs: int | None, earlier: Process | None) -> Fitted:
        """The predictor of mapped labels y less a constant."""


@dataclass(frozen=True, kw_only=True)
class OneModel(ExactProcess):
    """One set of hyperparameters for all rows and labels."""

    kernel: Kernel
    noise_variance: float
    scaling: Scaling
    flat_prior: bool = True
    """Whether the coefficients of the mean have a flat prior, or are given at their estimate."""
    learning: Rows = field(default_factory=lambda: NO_ROWS)
    """Design rows that the difficulty was learnt from."""

    def _fitted(self, rows: Points, y: Array, by: float, n_jobs: int | None, earlier: Process | None) -> Fitted:
        """See ExactProcess."""
        inputs = Inputs(rows, self.scaling, self.mean)
        if isinstance(earlier, OneProcess):
            before, difficulty = earlier.posterior, earlier.difficulty
        else:
            before, difficulty = None, self._difficulty(rows, y)
        posterior = Posterior(
            self.kernel, self.noise_variance, inputs, y - by, flat_prior=self.flat_prior, earlier=before
        )
        return Fitted(
            OneProcess(inputs, posterior, self.ranked(y.size), self.gamma, n_jobs, rows, difficulty),
            self.kernel,
            self.noise_variance,
            inputs.coefficients(posterior.coefficients),
            posterior.log_marginal_likelihood,
        )

    def _difficulty(self, rows: Points, y: Array) -> Callable[[Points], Spread] | None:
        """Difficulty as a function of rows, by way of what the design rows predict."""
        if self.difficulty is None:
            return None
        known, inputs = self.difficulty, Inputs(rows.take(self.learning), self.scaling, self.mean)
        posterior = Posterior(self.kernel, self.noise_variance, inputs, y[self.learning])
        return lambda new: known(new.X, posterior.mean(inputs.new(new)))


def fixed(settings: Settings, rows: Points, y: Array, rng: np.random.RandomState) -> OneModel:
    """Kernel and noise as given; only the scaling comes from the rows, or from design rows where these are given."""
    given, gamma = settings.only(settings.kernels, "kernel", "fixed"), settings.only(settings.gammas, "gamma", "fixed")
    if settings.noise_variance is None:
        raise ValueError(
            "noise_variance must be a number with tuning='fixed', got None (0 if the kernel has its own noise)."
        )
    if settings.learns_warp:
        raise ValueError(
            f"warp={settings.warp!r} is learnt, and tuning='fixed' learns nothing; give 'log', 'sqrt' or a "
            "pair of functions."
        )
    warp = only_warp(settings, y)
    design = NO_ROWS if settings.design is None else design_rows(settings, rows.X, rng)
    scaling = settings.scaling(rows.X[design] if design.size else rows.X)
    inputs = Inputs(rows, scaling, settings.mean)
    kernel = settings.kernel(given, rows.X.shape[1])
    check_kernel(kernel, inputs.X)
    guarantee = SCALED_GUARANTEE if settings.scale_inputs else FIXED_GUARANTEE
    return OneModel(
        kernel=kernel,
        noise_variance=settings.noise_variance,
        scaling=scaling,
        mean=settings.mean,
        gamma=gamma,
        guarantee=guarantee if design.size == 0 else _learnt_guarantee(design.size),
        design=design,
        warp=warp,
        warnings=explained(inputs, mapped(warp, y), settings.mean),
    )


def train(settings: Settings, rows: Points, y: Array, rng: np.random.RandomState) -> OneModel:
    """Everything by maximum likelihood on the training rows, the coefficients of the mean included: the paper's way."""
    gamma = settings.only(settings.gammas, "gamma", "train")
    scaling = settings.scaling(rows.X)
    inputs = Inputs(rows, scaling, settings.mean)
    warp, learnt = learn_with_warp(settings, rows, scaling, y, Purpose(y.size, exact=False), rng)
    return OneModel(
        kernel=learnt.kernel,
        noise_variance=learnt.noise_variance,
        scaling=scaling,
        mean=settings.mean,
        gamma=gamma,
        guarantee=TRAIN_GUARANTEE,
        flat_prior=False,
        warp=warp,
        warnings=[*learnt.warnings, *_few_rows(learnt, inputs, y.size)],
    )


def _few_rows(found: Hyperparameters, inputs: Inputs, n_rows: int) -> list[str]:
    """A warning where tuning on the training rows is known to lower coverage."""
    learnt = found.n_learnt + 1 + inputs.H.shape[1]
    share = learnt / n_rows
    if share < MEASURED_COVERAGE[0][0]:
        return []
    shares, coverages = np.transpose(MEASURED_COVERAGE)
    expected = float(np.interp(share, shares, coverages))
    return [
        f"tuning='train' learns {learnt} numbers from {n_rows} rows; with such a share, intervals of nominal 90% "
        f"held about {expected:.0%} of the labels in simulations (docs/theory.md). tuning='auto' keeps the level."
    ]


def holdout(
    settings: Settings, rows: Points, y: Array, rng: np.random.RandomState, most_learning: int | None = None
) -> OneModel:
    """Everything by maximum restricted likelihood on design rows; all rows predict, the others are ranked."""
    design = design_rows(settings, rows.X, rng)
    learning = design if most_learning is None else np.sort(rng.permutation(design)[:most_learning])
    own, known = rows.take(learning), y[learning]
    scaling = settings.scaling(own.X)
    inputs = Inputs(own, scaling, settings.mean)
    warp, learnt = learn_with_warp(settings, own, scaling, known, Purpose(y.size), rng)
    labels = mapped(warp, known)
    posterior = Posterior(learnt.kernel, learnt.noise_variance, inputs, labels)
    left_out = LeftOut.of(posterior.residuals, posterior.diagonal, labels)
    return OneModel(
        kernel=learnt.kernel,
        noise_variance=learnt.noise_variance,
        scaling=scaling,
        mean=settings.mean,
        gamma=choose_gamma(settings, learnt, inputs, labels),
        guarantee=_learnt_guarantee(design.size),
        design=design,
        learning=learning,
        warp=warp,
        difficulty=choose_difficulty(settings, left_out, warp, own.X, known),
        bounds=learnt_bounds(known) if settings.learns_bounds else None,
        warnings=learnt.warnings,
    )


def _learnt_guarantee(n_design: int) -> str:
    return (
        f"Valid: scaling and hyperparameters were learnt from {n_design} design rows and the other {{n_ranked}} are "
        f"calibration rows, so {PROMISE}."
    )
