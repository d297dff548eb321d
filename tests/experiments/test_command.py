"""``conformal-gp reproduce``."""

import pytest

typer = pytest.importorskip("typer", reason="the extra cli is not installed")

from typer.testing import CliRunner  # noqa: E402

from conformal_gp.cli.app import app  # noqa: E402


def test_a_table_is_made_and_its_checks_are_printed(tmp_path):
    result = CliRunner().invoke(app, ["reproduce", "table1", "--runs", "2", "--jobs", "1", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "2 of 2 tasks to do" in result.output
    assert "GPR and GPR-CP are well calibrated" in result.output
    assert (tmp_path / "table1.md").exists()
    assert not (tmp_path / "table2.md").exists()


def test_quick_is_called_a_sample(tmp_path):
    result = CliRunner().invoke(app, ["reproduce", "table1", "--quick", "--jobs", "1", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("Only a sample")


def test_quiet_prints_the_page_alone(tmp_path):
    arguments = ["reproduce", "table1", "--runs", "1", "--jobs", "1", "-q", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert result.output.startswith("# The paper, run again")
    assert "tasks to do" not in result.output
    assert "Written to" not in result.output


def test_an_unknown_table_is_an_error(tmp_path):
    result = CliRunner().invoke(app, ["reproduce", "table9", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "table9" in result.output
