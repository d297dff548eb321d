"""What tuning has decided, and what it guarantees; with the training rows it makes a predictor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.gp.inputs import Inputs, Points, Scaling
from conformal_gp.gp.posterior import Posterior
from conformal_gp.gp.warps import Warp
from conformal_gp.kernels import multiplied
from conformal_gp.predictors.bag import BagPredictor, Candidate
from conformal_gp.predictors.base import Predictor
from conformal_gp.predictors.one_process import OneProcess
from conformal_gp.predictors.transformed import ShiftedPredictor, WarpedPredictor
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
UNSEEN_CONDITION = (
    "That includes rows of unseen categories only if the list of categories was fixed before rows were divided into "
    "training and test rows."
)

NO_ROWS: Rows = np.empty(0, dtype=np.int64)
# Labels that differ by less than this share of their size are measured from one of them.
OFFSET = 1e-3


class Fitted(NamedTuple):
    """A predictor, and the plain process behind it in units of the (mapped) labels."""

    predictor: Predictor
    kernel: Kernel
    noise_variance: float
    mean_coef: Array
    log_marginal_likelihood: float


def mapped(warp: Warp | None, y: Array) -> Array:
    """Labels under a map; None is the identity."""
    return y if warp is None else warp.forward(y)


@dataclass(frozen=True, kw_only=True)
class TuningResult(ABC):
    """What a tuning method has decided."""

    mean: str
    gamma: float
    guarantee: str
    design: Rows = field(default_factory=lambda: NO_ROWS)
    """Rows that are not ranked."""
    warp: Warp | None = None
    """Monotone transformation of the labels."""
    warnings: list[str] = field(default_factory=list, compare=False)
    """What to warn of, once, in ``fit``."""

    def ranked(self, n_rows: int) -> Rows | None:
        """Rows that are ranked; None is all."""
        return None if self.design.size == 0 else np.setdiff1d(np.arange(n_rows), self.design)

    def fitted(self, rows: Points, y: Array, n_jobs: int | None) -> Fitted:
        """Make the predictor; nothing is learnt."""
        labels = mapped(self.warp, y)
        by = self._origin(labels)
        fitted = self._fitted(rows, labels - by, n_jobs)
        if by != 0.0:
            predictor = ShiftedPredictor(fitted.predictor, by)
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
    def _fitted(self, rows: Points, y: Array, n_jobs: int | None) -> Fitted:
        """The predictor of mapped labels."""


@dataclass(frozen=True, kw_only=True)
class OneModel(TuningResult):
    """One set of hyperparameters for all rows and labels."""

    kernel: Kernel
    noise_variance: float
    scaling: Scaling
    flat_prior: bool = True
    """Whether the coefficients of the mean have a flat prior, or are given at their estimate."""
    def _fitted(self, rows: Points, y: Array, n_jobs: int | None) -> Fitted:
        """See TuningResult."""
        inputs = Inputs(rows, self.scaling, self.mean)
        posterior = Posterior(self.kernel, self.noise_variance, inputs, y, flat_prior=self.flat_prior)
        return Fitted(
            OneProcess(inputs, posterior, self.ranked(y.size), self.gamma, n_jobs),
            self.kernel,
            self.noise_variance,
            inputs.coefficients(posterior.coefficients),
            posterior.log_marginal_likelihood,
        )


@dataclass(frozen=True, kw_only=True)
class InsideBag(TuningResult):
    """Hyperparameters chosen inside the bag, anew for every label, from a list of candidates."""

    candidates: list[Candidate]
    scale_inputs: bool

    def _fitted(self, rows: Points, y: Array, n_jobs: int | None) -> Fitted:
        """See TuningResult."""
        predictor = BagPredictor(
            self.candidates, rows, y, self.scale_inputs, self.mean, self.ranked(y.size), self.gamma, n_jobs
        )
        (kernel, noise), amplitude, coefficients, log_likelihood = predictor.chosen
        return Fitted(predictor, multiplied(kernel, amplitude), noise * amplitude, coefficients, log_likelihood)
