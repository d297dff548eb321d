"""Tuning inside the bag by brute force: the descent run anew on all rows of the bag, for one label at a time.

Likelihoods, residuals and scores come from explicit dense inverses over the rows that they concern. What a lattice is
and which trial comes next is the package's: that is the rule, not the arithmetic that is under test.
"""

import numpy as np

from conformal_gp.gp.descent import (
    COARSE,
    FINE,
    GAIN_OF_MUCH,
    LAST,
    LAST_FINE,
    MIDDLE,
    PROMISED,
    SCREENED_ROWS,
    Descent,
    descend,
    least_gain,
)
from conformal_gp.gp.hyperparameters import UNIT, Lattice
from conformal_gp.gp.inputs import SymmetricScaling
from conformal_gp.kernels import is_length
from conformal_gp.predictors.votes import N_GROUPS, groups


def scaled(X, scale_inputs=True):
    """Inputs of a bag as the model sees them, and the factor on the length scales at the start."""
    key = SymmetricScaling(X, stationary=True).training_key()
    scale = np.sqrt(2.0) ** key[: X.shape[1]]
    if scale_inputs:
        return X / scale, 1.0
    return X, float(np.exp(np.log(scale).mean()))


def basis(X, mean):
    """Regressors of the mean function, columns independent."""
    ones = np.ones((len(X), 1))
    return {"zero": ones[:, :0], "constant": ones, "linear": np.hstack([ones, X - X.mean(axis=0)])}[mean]


def features(X):
    """What noise may vary with inside a bag: inputs from their rounded median in units of their scale, and squares."""
    key = SymmetricScaling(X, stationary=False).training_key().astype(float)
    exponent, origin = np.split(key, 2)
    z = np.clip(X / np.sqrt(2.0) ** exponent - 0.25 * origin, -2.5, 2.5)
    return np.hstack([z, (z**2 - 1.0) / np.sqrt(2.0)])


def precision(kernel, noise, X, H):
    """P of the rows X with their noise variances, and log |A| |H'CH|."""
    C = np.linalg.inv(kernel(X) + np.diag(noise))
    log_determinant = -np.linalg.slogdet(C)[1]
    if H.shape[1]:
        information = H.T @ C @ H
        log_determinant += np.linalg.slogdet(information)[1]
        C = C - C @ H @ np.linalg.solve(information, H.T @ C)
    return C, log_determinant


class Bag:
    """All rows of a bag, the test row among them."""

    def __init__(self, X, y, kernel, mean="constant", scale_inputs=True, deviation=0.5, varying=False, votes=False):
        self.groups = [np.flatnonzero(groups(X) == group) for group in range(N_GROUPS)] if votes else []
        self.X, length = scaled(X, scale_inputs)
        self.features = features(X) if varying else np.empty((len(X), 0))
        self.y, self.H = y, basis(self.X, mean)
        n, d = X.shape
        self.lattice = Lattice(kernel, length * np.sqrt(d), d, n, True, deviation, n_features=self.features.shape[1])

    def noise(self, point):
        """Noise variances of all rows."""
        predictor = self.features @ self.lattice.noise_coefficients(point)
        return self.lattice.noise_variance(point) * np.exp(np.log(100.0) * np.tanh(predictor / np.log(100.0)))

    def precision(self, point, rows):
        """P and log determinant over some rows."""
        return precision(self.lattice.kernel(point), self.noise(point)[rows], self.X[rows], self.H[rows])

    def criterion(self, point, rows):
        """Minus twice the log restricted likelihood of some rows, but for constants, and the prior's part."""
        P, log_determinant = self.precision(point, rows)
        y = self.y[rows]
        degrees = rows.size - self.H.shape[1]
        return degrees * np.log(y @ P @ y) + log_determinant + self.lattice.penalty(point)

    def signed_scores(self, point, gamma=2.0):
        """Leave-one-out residual of every row over a root of its variance."""
        P, _ = self.precision(point, np.arange(self.y.size))
        return P @ self.y / np.diagonal(P) ** (1.0 - 1.0 / gamma)

    def scores(self, point, gamma=2.0):
        """Nonconformity of every row."""
        return np.abs(self.signed_scores(point, gamma))

    def is_promising(self, point, step, rows):
        """Whether a step would help some rows to first order; always, if slopes are not looked at."""
        if self.y.size > SCREENED_ROWS or self.lattice.shape is None:
            return True
        P, _ = self.precision(point, rows)
        kernel, noise = self.lattice.kernel(point), self.noise(point)
        _, slopes = kernel(self.X[rows], eval_gradient=True)
        lengths = slopes[:, :, is_length(kernel)]
        bend = 1.0 - (np.log(noise / self.lattice.noise_variance(point)) / np.log(100.0)) ** 2
        of_noise = np.column_stack([(noise * bend)[:, None] * self.features, noise])[rows]
        slopes = np.concatenate([lengths, np.eye(rows.size)[:, :, None] * of_noise], axis=2)
        w, degrees = P @ self.y[rows], rows.size - self.H.shape[1]
        gradient = np.einsum("ij,ijk->k", P - degrees * np.outer(w, w) / (self.y[rows] @ w), slopes)
        units = UNIT * np.append(np.ones(len(point) - 1), 2.0)  # the noise is a variance
        for j in range(len(point) - 1):  # the prior, by differences
            up, down = (np.add(point, sign * 1e-4 * np.eye(len(point))[j]) for sign in (1, -1))
            gradient[j] += (self.lattice.penalty(up) - self.lattice.penalty(down)) / (2e-4 * units[j])
        return -(units * step) @ gradient > PROMISED * least_gain(self.y.size)

    def kept(self, point):
        """All rows but the one that stands out most."""
        return np.delete(np.arange(self.y.size), np.argmax(self.scores(point)))

    def stage(self, stage, point):
        """Where a stage leads."""
        descent = Descent(self.lattice, stage)
        state = descent.skip(descent.start(point))
        rows = np.arange(self.y.size)
        while state.rounds:
            if not state.moved:
                rows = self.kept(state.point)
            helps = self.is_promising(state.point, descent.step(state), rows)
            if helps:
                gain = self.criterion(state.point, rows) - self.criterion(descent.trial(state), rows)
                helps = gain > least_gain(self.y.size)
            state = descent.skip(descent.next(state, helps))
        return state.point

    def is_better(self, new, old, gain):
        """Whether a point is better than another for two of three groups, without the row of each that stands out."""
        votes = 0
        for rows in self.groups:
            P, _ = self.precision(old, rows)
            kept = np.delete(rows, np.argmax(np.abs(P @ self.y[rows]) / np.sqrt(np.diagonal(P))))
            penalty = self.lattice.penalty(new) - self.lattice.penalty(old)
            change = self.criterion(new, kept) - self.criterion(old, kept) - (1 - 1 / N_GROUPS) * penalty
            votes += change < -gain / N_GROUPS
        return votes > 1

    def voted_end(self):
        """The hyperparameters that the bag selects, groups of its rows deciding all steps but the last."""
        n, start = self.y.size, self.lattice.start
        point = descend(self.lattice, COARSE + MIDDLE, start, lambda new, old: self.is_better(new, old, least_gain(n)))
        for stage in LAST if self.is_better(start, point, -GAIN_OF_MUCH * n) else LAST_FINE:
            point = self.stage(stage, point)
        return point

    def end(self):
        """The hyperparameters that the bag selects."""
        if self.groups:
            return self.voted_end()
        point, with_prior = self.lattice.start, self.lattice
        for stage in COARSE:
            point = self.stage(stage, point)
        rows = self.kept(point)
        gain = self.criterion(self.lattice.start, rows) - self.criterion(point, rows)
        much = gain > GAIN_OF_MUCH * self.y.size
        self.lattice = with_prior.without_prior() if much else with_prior
        for stage in MIDDLE + FINE if much else MIDDLE:
            point = self.stage(stage, point)
        self.lattice = with_prior
        return point


def labels_about(region):
    """Labels in and around a region, and next to its ends, on both sides."""
    span = region[-1, 1] - region[0, 0]
    step = 1e-8 * (span + np.abs(region).max())
    some = np.linspace(region[0, 0] - span, region[-1, 1] + span, 24)
    return np.concatenate([some, *(region + step), *(region - step)])


def p_value(X, y, x, label, kernel, gamma=2.0, tie=1e-9, **options):
    """p-value of a label of a test row, which comes last."""
    bag = Bag(np.vstack([X, x]), np.append(y, label), kernel, **options)
    scores = bag.scores(bag.end(), gamma)
    return np.mean(scores >= scores[-1] * (1 - tie))


def signed_counts(X, y, x, label, kernel, gamma=2.0, **options):
    """How many training rows have a lower and a higher signed score than a test row with a label, which comes last."""
    bag = Bag(np.vstack([X, x]), np.append(y, label), kernel, **options)
    scores = bag.signed_scores(bag.end(), gamma)
    slack = 1e-10 * np.abs(scores).max()
    return np.sum(scores < scores[-1] - slack), np.sum(scores > scores[-1] + slack)
