"""A worker that is killed in the middle of a fit or of a prediction changes nothing in the result."""

import os
from pathlib import Path

import numpy as np
import pytest

from cases import make_data
from conformal_gp import ConformalGPRegressor

pytest.importorskip("dask", reason="Dask is an extra: pip install '.[dask]'")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.slow


def read_or_die(block, armed):
    """A block of rows; while the file ``armed`` exists, the first worker to come here removes it and dies."""
    try:
        Path(armed).unlink()
    except FileNotFoundError:
        return block
    os._exit(1)


def test_a_worker_that_dies_changes_nothing(tmp_path):
    X, y = make_data(1, 3000)
    inputs, _ = make_data(2, 50)
    armed = tmp_path / "armed"
    rows = da.from_array(X, chunks=(200, 2)).map_blocks(
        read_or_die, armed=str(armed), dtype=float, meta=np.empty((0, 0))
    )
    given = np.arange(0, 3000, 15)  # in memory they are drawn by their content, which Dask does not sort
    model = ConformalGPRegressor(low_rank=40, tuning_rows=given, n_restarts=0, random_state=0)
    expected = model.fit(X, y).predict_interval(inputs, [0.5, 0.99])
    with (
        distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster),
    ):
        unharmed = model.fit(rows, y).predict_interval(inputs, [0.5, 0.99])
        np.testing.assert_allclose(unharmed, expected, rtol=1e-10)
        armed.touch()
        model.fit(rows, y)
        assert not armed.exists()  # a worker died in the middle of the fit
        armed.touch()
        np.testing.assert_array_equal(model.predict_interval(inputs, [0.5, 0.99]), unharmed)
        assert not armed.exists()  # and another in the middle of the prediction
