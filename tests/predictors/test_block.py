"""A block of test rows: steps that fail without a look at them."""

import numpy as np
import pytest

from conformal_gp import ConformalGPRegressor
from conformal_gp.predictors.block import Block

rng = np.random.default_rng(0)
X = rng.uniform(-2.0, 2.0, (70, 2))
y = np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(70)


@pytest.mark.parametrize("options", [{}, {"mean": "linear"}, {"noise": "varying"}])
def test_steps_that_are_hopeless_whatever_the_test_rows_are_would_fail(options, monkeypatch):
    """With a kernel that is not compiled: the same intervals when test rows are always looked at, from more points."""
    found, looked_at = [], []
    hopeless, learn = Block._hopeless, Block._learn

    def count(self, point, segments):
        looked_at[-1].add(point)
        return learn(self, point, segments)

    monkeypatch.setattr(Block, "_learn", count)
    for rule in (hopeless, lambda self, point, criterion, segments, *_: np.zeros(segments.size, dtype=bool)):
        monkeypatch.setattr(Block, "_hopeless", rule)
        looked_at.append(set())
        model = ConformalGPRegressor("rq", **options).fit(X[:60], y[:60])
        found.append(model.predict_interval(X[60:], [0.5, 0.9]))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)
    assert len(looked_at[0]) < 0.9 * len(looked_at[1])
