"""A file of 100,000 rows on the command line."""

import json

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line is an extra: pip install 'conformal-gp[cli]'")

from typer.testing import CliRunner

from cli_cases import rows
from conformal_gp.cli.app import app


@pytest.mark.slow
def test_a_hundred_thousand_rows(tmp_path):
    train, new = tmp_path / "train.csv", tmp_path / "new.csv"
    train.write_text(rows(100_000))
    new.write_text(rows(2_000, seed=1))
    result = CliRunner().invoke(app, ["predict", str(train), str(new), "-t", "y", "-c", "90%", "--json"])
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert any("100,000 rows are too many for the exact Gaussian process" in notice for notice in document["notices"])
    # 2,000 labels, given the training rows: the share inside has a standard error of 0.7%
    assert abs(document["coverage"][0] - 0.9) < 0.03
    assert np.isfinite([row["lower"][0] for row in document["rows"]]).all()
