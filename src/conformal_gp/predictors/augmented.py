"""Full conformal prediction with hyperparameters chosen inside the bag: anew for every candidate label."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from conformal_gp.gp.candidates import Candidate
from conformal_gp.gp.inputs import Inputs, NewInputs
from conformal_gp.gp.patterns import Patterns
from conformal_gp.gp.scaling import Scaling, SymmetricScaling
from conformal_gp.predictors.bag import Bag
from conformal_gp.predictors.base import Predictor
from conformal_gp.predictors.listed import ListedBag, group_by_kernel
from conformal_gp.predictors.searched import SearchedBag

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# Scalings that only some test rows have, kept for the next call.
KEPT_SCALINGS = 3
# Test rows that are searched at a time: hundreds of patterns have a mean and a variance for each.
SEARCHED_ROWS = 256


class AugmentedPredictor(Predictor):
    """Full conformal prediction with hyperparameters chosen inside the bag.

    Parameters
    ----------
    candidates : sequence of Candidate, or Patterns
        The finite set to choose among or to search; it may not depend on the ranked rows.
    X : ndarray of shape (l, d)
        Training inputs, unscaled.
    y : ndarray of shape (l,)
        Training labels.
    scaling : SymmetricScaling or Scaling
        Symmetric in the bag, or fixed beforehand.
    mean : {"zero", "constant", "linear"}
        Mean function; its coefficients have a flat prior.
    ranked : ndarray of int, or None
        Rows that are ranked; None ranks all.
    gamma : float
        Root of the variance in the nonconformity measure.
    n_jobs : int or None
        Threads over kernels and over blocks of test rows.
    prune : bool, default=True
        Whether to leave out candidates that cannot matter; the result is the same.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate] | Patterns,
        X: Array,
        y: Array,
        scaling: SymmetricScaling | Scaling,
        mean: str,
        ranked: Rows | None,
        gamma: float,
        n_jobs: int | None,
        prune: bool = True,
    ):
        self._candidates = candidates if isinstance(candidates, Patterns) else group_by_kernel(candidates)
        self._X = X
        self._y = y
        self._scaling = scaling
        self._mean = mean
        self._ranked: Rows | slice = slice(None) if ranked is None else ranked
        self._gamma = gamma
        self._prune = prune
        self.n_jobs = n_jobs
        self.n_rows = y.size
        self.n_ranked = y.size if ranked is None else ranked.size
        self._bags: dict[bytes, Bag] = {}
        key = scaling.training_key() if isinstance(scaling, SymmetricScaling) else np.empty(0, dtype=np.int64)
        self._main_key = key.tobytes()
        self.main = self._bag(key)

    def _bag(self, key: Rows) -> Bag:
        """Candidates under the scaling that ``key`` names; the training rows' own is never let go."""
        name = key.tobytes()
        if name not in self._bags:
            others = [known for known in self._bags if known != self._main_key]
            if len(others) >= KEPT_SCALINGS:
                del self._bags[others[0]]
            scaling = self._scaling.scaling(key) if isinstance(self._scaling, SymmetricScaling) else self._scaling
            inputs = Inputs(self._X, scaling, self._mean)
            if isinstance(self._candidates, Patterns):
                bag: Bag = SearchedBag(self._candidates, inputs, self._y, self._ranked, self._gamma, self.n_jobs)
            else:
                bag = ListedBag(self._candidates, inputs, self._y, self._ranked, self._gamma, self.n_jobs)
            self._bags[name] = bag
        return self._bags[name]

    def _by_bag(self, X: Array) -> Iterator[tuple[Rows, Bag]]:
        """Test rows grouped by their scaling, one group after the other: bags take memory."""
        if not isinstance(self._scaling, SymmetricScaling):
            yield np.arange(X.shape[0]), self.main
            return
        keys, member = np.unique(self._scaling.keys(X), axis=0, return_inverse=True)
        for i, key in enumerate(keys):
            yield np.flatnonzero(member.ravel() == i), self._bag(key)

    def _fill(self, bag: Bag, function: Callable[[Rows], None], rows: Rows) -> None:
        """Apply ``function`` to blocks of rows: in threads, unless the bag has its own."""
        if not isinstance(bag, SearchedBag):
            self.map_blocks(function, rows)
            return
        for start in range(0, rows.size, SEARCHED_ROWS):
            function(rows[start : start + SEARCHED_ROWS])

    def mean(self, X: Array) -> Array:
        """See Predictor."""
        return self.mean_and_variance(X)[0]

    def mean_and_variance(self, X: Array) -> tuple[Array, Array]:
        """See Predictor."""
        blocks = self.map_blocks(lambda rows: self.main.plain(self.main.inputs.new(X[rows])), np.arange(X.shape[0]))
        mean, variance = (np.concatenate(part) for part in zip(*blocks, strict=True))
        return mean, variance

    def hulls(self, X: Array, ranks: Sequence[int]) -> Array:
        """See Predictor."""
        ends = np.empty((X.shape[0], 2, len(ranks)))
        for level, pieces in enumerate(self._regions_by_level(X, ranks)):
            for j, region in enumerate(pieces):
                if region.shape[0] > 0:
                    ends[j, :, level] = region[0, 0], region[-1, 1]
                else:
                    ends[j, :, level] = self._most_conforming(X[j : j + 1], ranks[level])
        return ends

    def _most_conforming(self, X: Array, rank: int) -> float:
        """A label among the best of one test row, whose region of a rank is empty: intervals of all levels hold it."""
        not_empty = [region for (region,) in self._regions_by_level(X, range(1, rank)) if region.shape[0] > 0]
        return 0.5 * float(not_empty[-1][0, 0] + not_empty[-1][-1, 1])

    def regions(self, X: Array, rank: int) -> list[Array]:
        """See Predictor."""
        return self._regions_by_level(X, [rank])[0]

    def _regions_by_level(self, X: Array, ranks: Sequence[int]) -> list[list[Array]]:
        line = np.array([[-np.inf, np.inf]])
        found: list[list[Array]] = [[line] * X.shape[0] for _ in ranks]
        levels = [level for level, rank in enumerate(ranks) if rank > 0]
        wanted = [ranks[level] for level in levels]

        def fill(bag: Bag, rows: Rows) -> None:
            rows, new = _determined(bag, X, rows)
            if rows.size == 0:
                return
            for row, by_level in zip(rows, bag.regions(new, wanted, self._prune), strict=True):
                for level, region in zip(levels, by_level, strict=True):
                    found[level][row] = region

        if levels:
            for members, bag in self._by_bag(X):
                self._fill(bag, partial(fill, bag), members)
        return found

    def p_values(self, X: Array, y: Array, tie_breaks: Array | None) -> Array:
        """See Predictor."""
        p = np.ones(y.size) if tie_breaks is None else tie_breaks.copy()  # where all rows tie

        def fill(bag: Bag, rows: Rows) -> None:
            rows, new = _determined(bag, X, rows)
            if rows.size == 0:
                return
            p[rows] = bag.p_values(new, y[rows], None if tie_breaks is None else tie_breaks[rows])

        for members, bag in self._by_bag(X):
            self._fill(bag, partial(fill, bag), members)
        return p


def _determined(bag: Bag, X: Array, rows: Rows) -> tuple[Rows, NewInputs]:
    """Those rows whose mean the training rows determine; of the others' labels nothing is known."""
    new = bag.inputs.new(X[rows])
    if not new.undetermined.any():
        return rows, new
    return rows[~new.undetermined], new.take(np.flatnonzero(~new.undetermined))
