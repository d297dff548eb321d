"""``--positive``, ``--lower-bound``, ``--upper-bound``: what cannot be is cut off, and labels outside are an error."""

import io

import numpy as np
import pytest

pytest.importorskip("typer", reason="the command line is an extra: pip install 'conformal-gp[cli]'")

import pandas as pd

from cases import fixed_model
from conformal_gp.evaluation import cross_validate_intervals


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    x = np.random.default_rng(0).uniform(0, 3, 40).round(3)
    path = tmp_path_factory.mktemp("counts") / "counts.csv"
    pd.DataFrame({"x": x, "n": np.maximum(x - 1.0, 0.0).round(3)}).to_csv(path, index=False)
    return path


def predicted(command_line, counts, *options):
    result = command_line("predict", counts, counts, "--target", "n", "-c", "90", "--lower", "90", *options)
    return pd.read_csv(io.StringIO(result.stdout)), result.stderr


def test_ends_are_cut_off_and_nothing_else(command_line, counts):
    free, words = predicted(command_line, counts)
    cut, _ = predicted(command_line, counts, "--positive", "--upper-bound", "1.9999")
    ends = ["n_mean", "n_lower_90", "n_upper_90", "n_lower_bound_90"]
    assert (free["n_lower_90"] < 0.0).any()
    np.testing.assert_array_equal(cut[ends], free[ends].clip(0.0, 1.9999))
    assert "Kernel: Matérn 5/2, length scale" in words


def test_a_label_outside_is_an_error_that_names_its_row(command_line, counts):
    frame = pd.read_csv(counts)
    row = int(np.argmax(frame["n"] > 1.0)) + 1
    result = command_line("predict", counts, counts, "--target", "n", "--upper-bound", "1", code=2)
    assert f"in row {row}, outside the possible labels from -inf to 1" in result.stderr


@pytest.mark.parametrize("low_rank", [False, True])
def test_labels_of_a_saved_model_are_held_against_the_ends_too(command_line, counts, monkeypatch, low_rank):
    monkeypatch.setattr("conformal_gp.cli.training.MOST_EXACT_ROWS", 20 if low_rank else 5000)
    command_line("fit", counts, "--target", "n", "-o", "counts.model")
    result = command_line("predict", counts, "--model", "counts.model", "--upper-bound", "1", code=2)
    above = int((pd.read_csv(counts)["n"] > 1.0).sum())
    assert "in a training row, outside the possible labels from -inf to 1" in result.stderr
    assert f"({above} such rows)" in result.stderr
    cut = command_line("predict", counts, "--model", "counts.model", "--positive").stdout
    assert (pd.read_csv(io.StringIO(cut)).filter(like="n_lower") >= 0.0).all(axis=None)


def test_labels_of_a_folder_are_held_against_the_ends_too(command_line, counts, tmp_path):
    pytest.importorskip("dask.dataframe", reason="folders need the extra dask")
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "a.csv").write_text(counts.read_text())
    result = command_line("predict", folder, counts, "--target", "n", "--upper-bound", "1", code=2)
    assert "outside the possible labels" in result.stderr


@pytest.mark.parametrize(
    "options", [("--positive", "--lower-bound", "1"), ("--lower-bound", "2", "--upper-bound", "1")]
)
def test_ends_that_do_not_fit_together(command_line, counts, options):
    result = command_line("evaluate", counts, "--target", "n", *options, code=2)
    assert "--lower-bound" in result.stderr


def test_held_out_intervals_are_cut_off():
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(30, 2))
    y = X[:, 0]
    free, cut = (
        cross_validate_intervals({"a": fixed_model()}, X, y, 0.8, cv=3, plain="b", label_range=ends)
        for ends in ((-np.inf, np.inf), (0.0, 1.0))
    )
    for name in ("a", "b"):
        np.testing.assert_array_equal(cut.intervals[name], free.intervals[name].clip(0.0, 1.0))
    assert cut.beyond.shape == (30,)
    with pytest.raises(ValueError, match=r"within label_range=\(0.5, 1.0\), got .* in row"):
        cross_validate_intervals({"a": fixed_model()}, X, y, 0.8, cv=3, label_range=(0.5, 1.0))
