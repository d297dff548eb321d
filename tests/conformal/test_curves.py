"""Scores that are curves in the label, against their definition."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from conformal_gp import ConformalGPRegressor
from conformal_gp.answers import Answers, Question
from conformal_gp.models.integrated import IntegratedModel
from conformal_gp.rows import Rows
from integrated_oracle import scores


def rows(n=14, d=2, seed=0, shift=4.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, shift + np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=n)


def answers_of(X, y, n_draws, variances=None, **parameters):
    """Answers with a few draws, from a chain or from the prior."""
    model = ConformalGPRegressor(tuning="integrated", scale_inputs=False, random_state=0, **parameters)
    model.fit(X, y, variances)
    target = model._tuned.target
    plan = model._tuned.averaging
    few = replace(plan, theta=plan.theta[:n_draws], log_ratio=plan.log_ratio[:n_draws])
    zero = float(target.extended(np.zeros(1))[0])
    return Answers(IntegratedModel(few, Rows(X, variances), target.forward(y), zero, 1), target)


@pytest.mark.parametrize("n", [9, 15])  # draws from the prior, and from a chain
@pytest.mark.parametrize("shift", [4.0, 0.0])  # transformed, and of both signs
@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("mean", ["auto", "zero"])
def test_brute_force(n, shift, noise, mean):
    X, y = rows(n + 2, shift=shift)
    variances = np.linspace(0.0, 0.05, n + 2) if noise else None
    if mean == "zero":
        mean_parameters = {"mean": "zero", "target_transform": None, "y_bounds": None}
    else:
        mean_parameters = {"mean": "auto", "y_bounds": None}
    answers = answers_of(X[:n], y[:n], 12, None if variances is None else variances[:n], **mean_parameters)
    plan = answers.model.averaging
    target = answers.target
    theta = plan.theta
    if mean == "zero":  # no linear term
        theta = np.insert(theta, [3, 3], [0.0, -np.inf], axis=1)
    H = np.ones((n + 1, 1)) if mean == "auto" else np.zeros((n + 1, 0))
    new = Rows(X[n:], None if variances is None else variances[n:])
    blocks = []
    answers.model.visit(new, Question(labels=np.zeros(2)), blocks.append)
    for block in blocks:
        for place, row in enumerate(block.rows):
            for label in (y[:n].mean(), y[row + n], y[:n].max() + 1.0):
                found, own = block.scores.scores_of_labels(target.forward(np.full((len(block.rows), 1), label)))
                every = target.forward(np.append(y[:n], label))
                each = np.append(np.arange(n), n + row)
                known = None if variances is None else variances[each] / target.unit**2
                targets = np.exp(every) if plan.positive else every
                expected = scores(theta, plan.log_ratio, X[each], targets, H, plan.positive, known)
                assert np.allclose(found[place, 0], expected[:-1], rtol=1e-6, atol=1e-8)
                assert np.isclose(own[place, 0], expected[-1], rtol=1e-6, atol=1e-8)


def test_one_draw_is_the_paper():
    """With one draw, regions are those of fixed hyperparameters and gamma 2."""
    X, y = rows(20, shift=0.0)
    answers = answers_of(X, y, 1, y_bounds=None, mean="constant")
    theta = answers.model.averaging.theta[0]
    share = 1.0 / (1.0 + np.exp(-theta[2]))
    kernel = (1.0 - share) * Matern(np.exp(theta[:2]), nu=2.5) + share * RBF(np.exp(theta[:2]))
    fixed = ConformalGPRegressor(
        kernel, tuning="fixed", noise_variance=float(np.exp(theta[3])), mean="constant", scale_inputs=False
    ).fit(X, y)
    X_new = np.random.default_rng(1).normal(size=(7, 2))
    found = answers.about(Rows(X_new)).intervals([Fraction(9, 10)])[:, :, 0]
    expected = fixed.predict_interval(X_new, confidence_level=0.9)
    assert np.allclose(found, expected, rtol=1e-3)
    assert (found[:, 0] <= expected[:, 0]).all()
    assert (found[:, 1] >= expected[:, 1]).all()


def test_targets_that_are_not_positive():
    """At most one row of the augmented set that is not positive has an infinite score."""
    X, y = rows(15)
    model = ConformalGPRegressor(tuning="integrated").fit(X, y)
    assert model.predict_p(X[:1], [-1.0])[0] == 1 / 16
    assert (model.predict_interval(X[:5], 0.9)[:, 0] >= 0.0).all()
    y[3] = -0.01  # now a row is not positive, and negative targets are possible
    model.fit(X, y)
    assert model.predict_p(X[:1], [-1.0])[0] < 0.5
    zeros = np.where(np.arange(15) < 4, 0.0, y)
    model.fit(X, np.where(zeros < 0.0, 0.5, zeros))
    assert model.predict_p(X[:1], [-1.0])[0] == 1 / 16
    assert model.predict_interval(X[:5], 0.9).min() >= 0.0
