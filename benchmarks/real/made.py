"""Made tables: functions with noise of kinds that real tables have."""

from __future__ import annotations

import numpy as np
import pandas as pd


def made(name: str) -> pd.DataFrame:
    """Inputs and the label ``y``.

    ``friedman`` has noise whose size depends on an input, ``skewed`` noise in proportion to a positive label, and
    ``steps`` jumps between categories and at thresholds.
    """
    rng = np.random.default_rng(len(name))
    X = rng.uniform(size=(3000, 8))
    noise = rng.standard_normal(3000)
    curve = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2 + 10.0 * X[:, 3] + 5.0 * X[:, 4]
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(8)])
    if name == "friedman":
        return frame.assign(y=curve + 3.0 * X[:, 5] * noise)
    if name == "skewed":
        return frame.assign(y=np.exp(curve / 5.0 + 0.5 * noise))
    kind = rng.integers(8, size=3000)
    level = rng.standard_normal(8)[kind] + np.where(X[:, 0] > 0.6, 2.0, 0.0) * (X[:, 1] > 0.3)
    return frame.assign(kind=np.array(list("abcdefgh"))[kind], y=level + X[:, 2] + 0.3 * noise)
