"""Test rows beyond the training rows are pointed out."""

import warnings

import numpy as np
import pandas as pd
import pytest

from conformal_gp import ConformalGPRegressor, ExtrapolationWarning

FRAME = pd.DataFrame({"a": np.linspace(0, 10, 30), "b": np.arange(30) % 4 * 1.0, "same": 2.0})
LABELS = np.sin(FRAME["a"])
MODELS = [
    ConformalGPRegressor("se", tuning="holdout", random_state=0),
    ConformalGPRegressor("se", tuning_rows=10, low_rank=5, random_state=0),
]


@pytest.fixture(scope="module", params=MODELS, ids=["exact", "low rank"])
def model(request):
    return request.param.fit(FRAME, LABELS)


@pytest.mark.parametrize(
    ("row", "beyond"),
    [
        ((10.99, 3.2, 2.0), []),
        ((11.01, 3.2, 2.0), ["a"]),
        ((-1.01, 3.31, 2.0), ["a", "b"]),
        ((5.0, 1.5, 2.0000001), ["same"]),  # any other value than the one that all rows have
    ],
)
def test_a_tenth_of_the_range_is_what_counts(model, row, beyond):
    rows = pd.DataFrame([(5.0, 1.0, 2.0), row], columns=FRAME.columns)
    found = model.beyond_training(rows)
    assert not found[0].any()
    assert FRAME.columns[found[1]].tolist() == beyond


@pytest.mark.parametrize("method", ["predict", "predict_interval", "predict_set", "predict_quantiles", "predict_bound"])
def test_predictions_warn(model, method):
    call = getattr(model, method)
    rest = (0.5,) if method == "predict_quantiles" else ()
    far = FRAME.iloc[:3].assign(a=[0.0, 99.0, -99.0])
    with pytest.warns(ExtrapolationWarning, match="2 of 3 rows lie beyond the training rows, in 'a'") as caught:
        call(far, *rest)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExtrapolationWarning)
        call(FRAME, *rest)
