r"""Hyperparameters chosen from a finite list of candidates: the lower envelope of their parabolas."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.conformal.envelope import lower_envelope, select
from conformal_gp.gp.candidates import Candidate
from conformal_gp.gp.inputs import Inputs, NewInputs
from conformal_gp.gp.spectral import Moments, SpectralPosterior
from conformal_gp.predictors.bag import Bag, Parabolas, Selection, Stretch, Use, parabolas
from conformal_gp.threads import map_threads

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


class KernelGroup(NamedTuple):
    """Candidates that share a kernel, and so its eigendecomposition."""

    kernel: Kernel
    noise_variances: Array
    handicaps: Array


def group_by_kernel(candidates: Sequence[Candidate]) -> list[KernelGroup]:
    """Kernels, each with the noise variances that come with it."""
    kernels: list[Kernel] = []
    members: list[list[Candidate]] = []
    for candidate in candidates:
        if candidate.kernel not in kernels:
            kernels.append(candidate.kernel)
            members.append([])
        members[kernels.index(candidate.kernel)].append(candidate)
    return [
        KernelGroup(kernel, np.array([c.noise_variance for c in group]), np.array([c.handicap for c in group]))
        for kernel, group in zip(kernels, members, strict=True)
    ]


class ListedBag(Bag):
    """A list of candidates on the training rows."""

    def __init__(
        self,
        by_kernel: Sequence[KernelGroup],
        inputs: Inputs,
        y: Array,
        ranked: Rows | slice,
        gamma: float,
        n_jobs: int | None,
    ):
        super().__init__(inputs, y, ranked, gamma)
        inputs.pairs.squared_distances  # noqa: B018 (shared by all kernels: computed before the threads start)
        self.posteriors = list(
            map_threads(
                lambda group: SpectralPosterior(group.kernel, group.noise_variances, inputs, y), by_kernel, n_jobs
            )
        )
        self.uses = [Use(i, r) for i, group in enumerate(by_kernel) for r in range(group.noise_variances.size)]
        handicap = np.concatenate([group.handicaps for group in by_kernel])
        self._quadratic = np.concatenate([p.quadratic for p in self.posteriors])
        self._log_determinant = np.concatenate([p.log_determinant for p in self.posteriors]) + 2.0 * handicap

    def posterior(self, kernel: int) -> SpectralPosterior:
        """See Bag."""
        return self.posteriors[kernel]

    @cached_property
    def best(self) -> Use:
        """See Bag."""
        with np.errstate(divide="ignore"):
            return self.uses[int(np.argmin(self._degrees * np.log(self._quadratic) + self._log_determinant))]

    def select(self, new: NewInputs) -> Selection:
        """See Bag."""
        new.pairs.squared_distances  # noqa: B018 (shared by all kernels)
        moments = [posterior.moments(new) for posterior in self.posteriors]
        mean = np.concatenate([part.mean for part in moments])
        variance = np.concatenate([part.variance for part in moments])
        criteria = parabolas(self._quadratic, self._log_determinant, self._degrees + 1, mean, variance)
        return _Listed(self.uses, moments, criteria)


class _Listed(Selection):
    """What a block of new rows selects: stretches of the lower envelope."""

    def __init__(self, uses: list[Use], moments: list[Moments], criteria: Parabolas):
        self._uses = uses
        self._moments = moments
        self._criteria = criteria

    def stretches(self) -> list[list[Stretch]]:
        """See Selection."""
        rows = []
        for j in range(self._criteria.base.shape[1]):
            breaks, owner = lower_envelope(*(part[:, j] for part in self._criteria))
            rows.append(
                [Stretch(*stretch) for stretch in zip(breaks[:-1], breaks[1:], self._named(owner), strict=True)]
            )
        return rows

    def at(self, y: Array) -> list[Stretch | None]:
        """See Selection."""
        return [Stretch(*stretch) for stretch in zip(y, y, self._named(select(*self._criteria, y)), strict=True)]

    def _named(self, numbers: Rows) -> list[Use]:
        return [self._uses[g] for g in numbers.tolist()]

    def mean_and_variance(self, use: Use, j: int) -> tuple[float, float]:
        """See Selection."""
        moments = self._moments[use.kernel]
        return float(moments.mean[use.noise, j]), float(moments.variance[use.noise, j])

    def moments(self, kernel: int, rows: Rows) -> Moments:
        """See Selection."""
        return self._moments[kernel].take(rows)
