"""One report that several tests read: hostile names, and too few rows for the highest levels."""

from types import SimpleNamespace

import numpy as np
import pytest

from cases import fixed_model
from conformal_gp.evaluation import cross_validate_intervals
from conformal_gp.report import build_report
from conformal_gp.report.numbers import CONFORMAL, LEVELS, PLAIN, QUANTILES

NAMES = ["<script>window.broken = true</script>", "\"quoted\" & 'so'", "</script><img src=x onerror=alert(1)>"]
TARGET = "<b>label</b>"


@pytest.fixture(scope="session")
def report():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.standard_t(3, size=90)
    model = fixed_model()
    options = {"model": model, "cv": 5, "random_state": 0}
    page = build_report(X, y, feature_names=NAMES, target_name=TARGET, title="A <i>title</i>", **options)
    model = options.pop("model")
    asked = {"plain": PLAIN, "p_values": True, "quantiles": QUANTILES}
    with pytest.warns(UserWarning, match="needs at least"):
        found = cross_validate_intervals({CONFORMAL: model}, X, y, LEVELS, **asked, **options)
    held_out = SimpleNamespace(
        prediction=found.prediction[CONFORMAL],
        intervals=found.intervals[CONFORMAL],
        plain=found.intervals[PLAIN],
        p_values=found.p_values[CONFORMAL],
        quantiles=found.quantiles[CONFORMAL],
    )
    return SimpleNamespace(X=X, y=y, names=NAMES, target=TARGET, page=page, held_out=held_out)
