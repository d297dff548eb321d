"""A list of candidates inside the bag by brute force: for one label at a time, all l + 1 rows with every candidate.

Likelihoods come from explicit dense inverses over the whole bag, scores from refits (:mod:`oracle`). How inputs are
scaled is the package's: that is the rule, not the arithmetic that is under test.
"""

import numpy as np

import oracle
from cases import make_basis
from conformal_gp.gp.inputs import SymmetricScaling
from noisy_rows import WithNoise


def scaled(X, candidates):
    """Inputs of a bag as the model sees them."""
    scaling = SymmetricScaling(X, stationary=all(kernel.is_stationary() for kernel, _ in candidates))
    return scaling.scaling(scaling.training_key()).transform(X)


def criterion(kernel, noise, X, y, H, profiled):
    """Minus twice the log restricted likelihood of all rows but for constants, its amplitude profiled out or given."""
    C = np.linalg.inv(kernel(X) + noise * np.eye(y.size))
    value, degrees = -np.linalg.slogdet(C)[1], y.size
    if H is not None:
        information = H.T @ C @ H
        value += np.linalg.slogdet(information)[1]
        C = C - C @ H @ np.linalg.solve(information, H.T @ C)
        degrees -= H.shape[1]
    return value + (degrees * np.log(y @ C @ y) if profiled else y @ C @ y)


class Bag:
    """Training rows, a test input, and the list.

    ``known`` holds known noise variances of all rows, the test row's last; amplitudes are then those of the candidates.
    """

    def __init__(self, candidates, X, y, x, mean="constant", gamma=2.0, scale_inputs=True, ranked=None, known=None):
        rows = np.vstack([X, x])
        self.rows = scaled(rows, candidates) if scale_inputs else rows
        self.basis = make_basis(mean, self.rows)
        self.candidates, self.y, self.gamma, self.profiled = candidates, y, gamma, known is None
        self.ranked = np.arange(y.size) if ranked is None else ranked
        if known is not None:
            self.rows = np.column_stack([self.rows, known])
            self.candidates = [(WithNoise(kernel), noise) for kernel, noise in candidates]

    def chosen(self, label):
        """The candidate of greatest likelihood with some label of the test row."""
        labels = np.append(self.y, label)
        values = [criterion(*pair, self.rows, labels, self.basis, self.profiled) for pair in self.candidates]
        return self.candidates[int(np.argmin(values))]

    def _arguments(self, label):
        bases = (None, None) if self.basis is None else (self.basis[:-1], self.basis[-1])
        return (*self.chosen(label), self.rows[:-1], self.y, self.rows[-1]), bases

    def p_value(self, label):
        """Share of the ranked rows and the test row whose score is at least the test row's."""
        rows, bases = self._arguments(label)
        return float(oracle.p_value(*rows, label, self.gamma, *bases, ranked=self.ranked))

    def signed_counts(self, label):
        """How many ranked rows have a lower signed score than the test row, and how many a higher one."""
        rows, bases = self._arguments(label)
        a, b = oracle.lines(*rows, self.gamma, *bases)
        scores = a + b * label
        tie = 1e-9 * np.abs(scores).max()
        others = scores[self.ranked]
        return int((others < scores[-1] - tie).sum()), int((others > scores[-1] + tie).sum())


def labels_about(region, step=1e-7):
    """Labels on both sides of the ends of a region, and in its middles."""
    ends = region[np.isfinite(region)]
    size = np.abs(ends).max() + np.ptp(ends)
    near = [end + side * step * size for end in ends for side in (-1, 1)]
    return np.concatenate([near, np.linspace(ends.min() - 0.5 * size, ends.max() + 0.5 * size, 7)])
