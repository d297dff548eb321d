"""One report that several tests read: hostile names, and too few rows for the highest levels."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from cases import fixed_model
from conformal_gp.evaluation import cross_validate_intervals
from conformal_gp.formatting import CONFORMAL, STANDARD
from conformal_gp.report import build_report
from conformal_gp.report.chart import LEVELS

NAMES = ["<script>window.broken = true</script>", "\"quoted\" & 'so'", "</script><img src=x onerror=alert(1)>"]
TARGET = "<b>label</b>"


@pytest.fixture(scope="session")
def report():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(90, 3)), columns=NAMES)
    y = np.sin(X[NAMES[0]]).to_numpy() + 0.5 * X[NAMES[1]].to_numpy() + 0.3 * rng.standard_t(3, size=90)
    page = build_report(X, y, target_name=TARGET, model=fixed_model(), cv=5)
    with pytest.warns(UserWarning, match="needs at least"):
        found = cross_validate_intervals(fixed_model(), X, y, LEVELS, standard_gp=True, cv=5)
    return SimpleNamespace(
        X=X,
        y=y,
        page=page,
        prediction=found.prediction[CONFORMAL],
        intervals=found.intervals[CONFORMAL],
        plain=found.intervals[STANDARD],
    )
