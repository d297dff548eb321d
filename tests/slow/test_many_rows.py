"""A file of 100,000 rows on the command line."""

import json

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="the command line is an extra: pip install '.[cli]'")

from conformal_gp.cli import run  # noqa: E402


@pytest.mark.slow
def test_a_hundred_thousand_rows(tmp_path, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=102_000), "kind": rng.choice(["low", "top"], 102_000)})
    frame["y"] = np.sin(frame["a"]) + (frame["kind"] == "top") + 0.2 * rng.normal(size=102_000)
    train, new = tmp_path / "train.csv", tmp_path / "new.csv"
    frame[2_000:].to_csv(train, index=False)
    frame[:2_000].to_csv(new, index=False)
    assert run(["predict", str(train), str(new), "-t", "y", "-c", "90%", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert "inducing inputs" in document["guarantee"]
    low, high = ([row[f"{side}_90"] for row in document["rows"]] for side in ("lower", "upper"))
    inside = np.mean((frame["y"][:2_000] >= low) & (frame["y"][:2_000] <= high))
    assert abs(inside - 0.9) < 0.03  # 2,000 labels, given the training rows: a standard error of 0.7%
