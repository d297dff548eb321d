r"""Which inputs matter: length scales for each input as a pattern of few numbers, and how to walk among patterns.

A pattern multiplies the length scales of a kernel by a common factor, and each input's by one of three more: 1/2 (it
matters more), 1, or so large a number that the input does not matter at all. There are :math:`12 \cdot 3^d` patterns,
too many to try each, so they are searched: from a pattern one walks to the likeliest neighbour, in which one input has
gone one step along the three or the common factor has, as long as that is likelier. A first walk starts where one
input matters or two do, and goes on until at most half of them do; a second starts at the end of the first or at a
pattern that makes no differences, whichever is likelier. Where few inputs matter the first finds them; the second
alone would pass many patterns that are hardly better.

A pattern that makes differences between inputs has a handicap, the surprise at it under a prior that bets one to one
on no differences, and for the rest evenly on the number of inputs that differ, then evenly on which they are [1]_: of n
inputs, k that are picked out cost :math:`\log n + \log \binom{n}{k}` nats. Without it some input always seems to
matter by chance, most where there are many.

References
----------
.. [1] J. G. Scott and J. O. Berger, "Bayes and empirical-Bayes multiplicity adjustment in the variable-selection
   problem", Annals of Statistics 38 (2010), 2587-2619.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb, log
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Product

from conformal_gp.gp.candidates import LENGTH_SCALES, is_length

MORE, PLAIN, NOT = range(3)
# Factors on an input's length scale: it matters more, as the kernel has it, not at all.
FACTORS = np.array([0.5, 1.0, 1e3])
# Common factors, by their numbers, that are tried where one input matters or two do, to start from.
SINGLE_FACTORS = (2, 4, 6, 8)
PAIR_FACTOR = 4


class Pattern(NamedTuple):
    """Length scales for each input."""

    common: int
    """Number of the common factor in LENGTH_SCALES."""
    inputs: tuple[int, ...]
    """MORE, PLAIN or NOT for each input."""

    @property
    def number(self) -> int:
        """A number that no other pattern of as many inputs has."""
        number = self.common
        for level in self.inputs:
            number = len(FACTORS) * number + level
        return number

    @property
    def n_mattering(self) -> int:
        """Number of inputs that matter."""
        return sum(level != NOT for level in self.inputs)

    @property
    def handicap(self) -> float:
        """Nats by which the pattern must be likelier than one that makes no differences.

        >>> Pattern(0, (PLAIN, PLAIN, PLAIN)).handicap
        0.0
        >>> round(Pattern(0, (PLAIN, NOT, NOT)).handicap, 3)  # log 3 + log 3
        2.197
        """
        left = self.n_mattering
        return _surprise(len(self.inputs) - left, len(self.inputs)) + _surprise(self.inputs.count(MORE), left)

    def neighbours(self, most: int) -> Iterator[Pattern]:
        """Patterns one step away in which at most so many inputs matter."""
        for i, level in enumerate(self.inputs):
            for other in (level - 1, level + 1):
                if MORE <= other <= NOT:
                    neighbour = Pattern(self.common, (*self.inputs[:i], other, *self.inputs[i + 1 :]))
                    if neighbour.n_mattering <= most:
                        yield neighbour
        for common in (self.common - 1, self.common + 1):
            if 0 <= common < LENGTH_SCALES.size:
                yield Pattern(common, self.inputs)


def _surprise(picked: int, n: int) -> float:
    return 0.0 if picked == 0 else log(n) + log(comb(n, picked))


class Patterns:
    """The patterns of a kernel.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        A kernel with a length scale for each input, see :func:`has_patterns`.
    """

    def __init__(self, kernel: Kernel):
        self.given = kernel
        self._theta, self._bounds = kernel.theta, kernel.bounds
        self._is_length = is_length(kernel)
        self.n_inputs = int(self._is_length.sum())

    def kernel(self, pattern: Pattern) -> Kernel:
        """The kernel with the length scales of a pattern, within its bounds."""
        theta = self._theta.copy()
        theta[self._is_length] += np.log(LENGTH_SCALES[pattern.common] * FACTORS[list(pattern.inputs)])
        return self.given.clone_with_theta(np.clip(theta, *self._bounds.T))

    def pattern(self, number: int) -> Pattern:
        """The pattern of a number.

        >>> from sklearn.gaussian_process.kernels import RBF
        >>> Patterns(RBF([1.0, 1.0, 1.0])).pattern(Pattern(7, (MORE, NOT, PLAIN)).number)
        Pattern(common=7, inputs=(0, 2, 1))
        """
        levels = []
        for _ in range(self.n_inputs):
            number, level = divmod(number, len(FACTORS))
            levels.append(level)
        return Pattern(number, tuple(reversed(levels)))

    @property
    def most_at_first(self) -> int:
        """Number of inputs that may matter on the first walk."""
        return self.n_inputs // 2

    @property
    def alike(self) -> list[Pattern]:
        """Patterns that make no difference between inputs."""
        return [Pattern(common, (PLAIN,) * self.n_inputs) for common in range(LENGTH_SCALES.size)]

    @property
    def few(self) -> list[Pattern]:
        """Patterns in which one input matters or two do, to start from.

        Two, because inputs may matter together and neither alone, as in a product.
        """
        d = self.n_inputs
        single = [((i,), common) for common in SINGLE_FACTORS for i in range(d)]
        pairs = [(pair, PAIR_FACTOR) for pair in combinations(range(d), 2)]
        return [
            Pattern(common, tuple(PLAIN if i in mattering else NOT for i in range(d)))
            for mattering, common in single + (pairs if self.most_at_first >= 2 else [])
        ]


def has_patterns(kernel: Kernel) -> bool:
    """Whether all there is to learn of a kernel is its amplitude and a length scale for each of several inputs.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> has_patterns(ConstantKernel() * RBF([1.0, 1.0])), has_patterns(RBF(1.0)), has_patterns(RBF([1.0, 1.0]) + 1.0)
    (True, False, False)
    """
    if isinstance(kernel, Product):
        if isinstance(kernel.k1, ConstantKernel):
            return has_patterns(kernel.k2)
        return isinstance(kernel.k2, ConstantKernel) and has_patterns(kernel.k1)
    return kernel.n_dims > 1 and bool(is_length(kernel).all()) and kernel.is_stationary()
