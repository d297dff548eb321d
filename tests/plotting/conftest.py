"""Pictures are drawn to memory, and put away after each test."""

import numpy as np
import pytest

from cases import fixed_model


@pytest.fixture(autouse=True)
def pyplot():
    matplotlib = pytest.importorskip("matplotlib", reason="pictures need Matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


@pytest.fixture(scope="session")
def rows():
    """Sixty rows with three inputs: forty to fit, twenty to predict."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=60)


@pytest.fixture(scope="session")
def model(rows):
    X, y = rows
    return fixed_model().fit(X[:40], y[:40])
