"""Plans: what a way of tuning has decided, and what it guarantees. With the training rows, a plan makes a predictor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.gp.inputs import Inputs, Scaling, basis
from conformal_gp.gp.noise import VaryingNoise, coefficients
from conformal_gp.gp.posterior import Posterior
from conformal_gp.gp.warps import Warp
from conformal_gp.kernels import multiplied
from conformal_gp.predictors.augmented import AugmentedPredictor
from conformal_gp.predictors.base import Predictor
from conformal_gp.predictors.selectors import Candidates, Descents
from conformal_gp.predictors.shifted import ShiftedPredictor
from conformal_gp.predictors.single import SinglePredictor
from conformal_gp.predictors.warped import WarpedPredictor
from conformal_gp.types import Array, Rows

# Sentences of ``guarantee_``.
PROMISE = (
    "for exchangeable rows the region of level 1 - delta holds the label of a new row with probability at least "
    "1 - delta"
)

FIXED_GUARANTEE = f"Exact: kernel and noise were fixed beforehand and all rows enter alike, so {PROMISE}."
SCALED_GUARANTEE = (
    "Not exact: inputs were scaled by the training rows alone, so coverage can differ slightly from the level; "
    "with scale_inputs=False it is exact."
)
TRAIN_GUARANTEE = (
    "Not exact: hyperparameters and mean function were learnt from the training rows alone, so coverage can fall "
    "below the level, most with few rows or many hyperparameters."
)

# Labels that differ by less than this share of their size are measured from one of them.
OFFSET = 1e-3

UNSEEN_CONDITION = (
    "That includes rows of unseen categories only if the list of categories was fixed before rows were divided into "
    "training and test rows."
)


class Candidate(NamedTuple):
    """One setting of the hyperparameters, up to a common factor of signal and noise."""

    kernel: Kernel
    noise_variance: float


class Fitted(NamedTuple):
    """A plan carried out on its training rows."""

    predictor: Predictor
    kernel: Kernel
    noise_variance: float
    mean_coef: Array
    noise_coef: Array
    """Coefficients of varying noise; empty where it is constant."""
    log_marginal_likelihood: float


def mapped(warp: Warp | None, y: Array) -> Array:
    """Labels under a map; None is the identity."""
    return y if warp is None else warp.forward(y)


def _no_rows() -> Rows:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class Plan(ABC):
    """What a way of tuning has decided."""

    mean: str
    gamma: float
    guarantee: str
    design: Rows = field(default_factory=_no_rows)
    """Rows that are not ranked."""
    warp: Warp | None = None
    """Map of the labels."""
    warnings: list[str] = field(default_factory=list, compare=False)
    """What to warn of, once, in ``fit``."""

    def ranked(self, n_rows: int) -> Rows | None:
        """Rows that are ranked; None is all."""
        return None if self.design.size == 0 else np.setdiff1d(np.arange(n_rows), self.design)

    def carry_out(self, X: Array, y: Array, n_jobs: int | None) -> Fitted:
        """Make the predictor; nothing is learnt."""
        labels = mapped(self.warp, y)
        by = self._origin(labels)
        fitted = self._carry_out(X, labels - by, n_jobs)
        if by != 0.0:
            predictor = ShiftedPredictor(fitted.predictor, lambda inputs: np.full(inputs.shape[0], by))
            mean_coef = np.append(fitted.mean_coef[0] + by, fitted.mean_coef[1:])
            fitted = fitted._replace(predictor=predictor, mean_coef=mean_coef)
        if self.warp is None:
            return fitted
        return fitted._replace(predictor=WarpedPredictor(fitted.predictor, self.warp))

    def _origin(self, y: Array) -> float:
        """A constant to take from labels that are large beside their differences, so that rounding takes no digits.

        The mean function takes up any constant, so it makes no difference but that.
        """
        middle = float(np.sort(y)[y.size // 2])
        if self.mean == "zero" or not np.abs(y - middle).max() < OFFSET * abs(middle):
            return 0.0
        return middle

    @abstractmethod
    def _carry_out(self, X: Array, y: Array, n_jobs: int | None) -> Fitted:
        """The predictor of mapped labels."""


@dataclass(frozen=True, kw_only=True)
class OneModel(Plan):
    """One set of hyperparameters for all rows and labels."""

    kernel: Kernel
    noise_variance: float
    scaling: Scaling
    flat_prior: bool = True
    """Whether the coefficients of the mean have a flat prior, or are given at their estimate."""
    varying: VaryingNoise | None = None
    """How noise depends on scaled inputs; None is constant noise."""
    mean_coef: Array | None = None
    """Coefficients of the mean that were fixed beforehand; None where the rows have their say."""

    def _origin(self, y: Array) -> float:
        """See Plan."""
        return super()._origin(y) if self.mean_coef is None else 0.0

    def _given_mean(self, X: Array) -> Array:
        """The mean function at some inputs, where its coefficients are given."""
        return basis(self.mean, self.scaling.transform(X)) @ np.asarray(self.mean_coef)

    def _carry_out(self, X: Array, y: Array, n_jobs: int | None) -> Fitted:
        """See Plan."""
        given = self.mean_coef is not None
        inputs = Inputs(X, self.scaling, "zero" if given else self.mean, self.varying)
        labels = y - self._given_mean(X) if given else y
        posterior = Posterior(self.kernel, self.noise_variance, inputs, labels, flat_prior=self.flat_prior)
        predictor = SinglePredictor(inputs, posterior, self.ranked(y.size), self.gamma, n_jobs)
        return Fitted(
            ShiftedPredictor(predictor, self._given_mean) if given else predictor,
            self.kernel,
            self.noise_variance,
            inputs.coefficients(posterior.coefficients) if self.mean_coef is None else self.mean_coef.copy(),
            coefficients(self.varying),
            posterior.log_marginal_likelihood,
        )


@dataclass(frozen=True, kw_only=True)
class InsideBag(Plan):
    """Hyperparameters chosen inside the bag, anew for every label."""

    kernels: list[Kernel]
    """Kernels to descend with; none if there are candidates."""
    candidates: list[Candidate]
    scale_inputs: bool
    learns_noise: bool
    deviation: float | None
    """Standard deviation of the prior on length scales; None is a flat prior."""
    varying_noise: bool = False
    """Whether noise may vary with the inputs."""

    def _carry_out(self, X: Array, y: Array, n_jobs: int | None) -> Fitted:
        """See Plan."""
        choices = (
            Candidates(self.candidates)
            if self.candidates
            else Descents(self.kernels, self.learns_noise, self.deviation, self.varying_noise)
        )
        predictor = AugmentedPredictor(
            choices, X, y, self.scale_inputs, self.mean, self.ranked(y.size), self.gamma, n_jobs
        )
        best = predictor.plain
        return Fitted(
            predictor,
            multiplied(best.kernel, best.amplitude),
            best.noise_variance * best.amplitude,
            best.coefficients,
            best.noise_coefficients,
            best.log_likelihood,
        )


def holdout_guarantee(n_design: int, n_ranked: int) -> str:
    """Everything learnt from design rows."""
    return (
        f"Exact: scaling and hyperparameters were learnt from {n_design} design rows and the other {n_ranked} are "
        f"ranked, so {PROMISE}."
    )


def augmented_guarantee(n_candidates: int | None, n_design: int) -> str:
    """Hyperparameters chosen inside the bag, from candidates or by a descent."""
    way = "by a descent that treats all its rows alike"
    if n_candidates is not None:
        way = f"from {n_candidates} candidates fixed beforehand"
    unranked = f" ({n_design} design rows, which chose gamma or the map of labels, are not ranked)" if n_design else ""
    return f"Exact: hyperparameters are chosen inside the bag {way}{unranked}, so {PROMISE}."


def low_rank_guarantee(n_design: int, n_ranked: int, given_inducing: bool) -> str:
    """Everything learnt from design rows, in the low-rank model."""
    condition = ", if the inducing inputs given do not come from the latter" if given_inducing else ""
    return (
        f"Exact: everything that was learnt comes from {n_design} design rows and the other {n_ranked} are ranked, "
        f"so {PROMISE}{condition}."
    )
