"""What `make test` runs of these tests: the command, and one fold of each method as the stored results have it."""

import re
from pathlib import Path

import pytest

from reproduction.__main__ import main
from reproduction.experiments.methods import LEVELS
from reproduction.experiments.paper import Row
from reproduction.experiments.protocol import one_fold

PACKAGE = Path(__file__).parents[2] / "src" / "conformal_gp"

# First fold of Servo, 17 test rows: sum of the 90% widths, and labels outside at 50, 60, 70, 80, 90, 95, 98, 99%.
STORED = {
    ("SE", Row("GPR", "SE")): (29.465149, [4, 4, 4, 4, 3, 3, 1, 1]),
    ("SE", Row("GPR-CP", "SE", 2.0)): (23.417143, [11, 10, 5, 4, 4, 2, 1, 0]),
    ("NN", Row("GPR-CP", "NN", 1.0)): (26.322954, [10, 5, 4, 4, 3, 1, 1, 0]),
    ("GPR-RI", Row("GPR-RI", "SE")): (29.214608, [6, 7, 7, 3, 1, 1, 1, 1]),
    ("GPR-RC", Row("GPR-RC", "SE")): (88.246356, [8, 3, 3, 1, 0, 0, 0, 0]),
    ("RR-CP", Row("RR-CP", "SE")): (29.070734, [10, 8, 6, 4, 2, 1, 1, 0]),
    ("kNNR-CP", Row("kNNR-CP")): (23.268010, [12, 9, 9, 7, 2, 2, 2, 0]),
}


@pytest.mark.parametrize(("unit", "row"), STORED, ids=str)
def test_a_fold_comes_out_as_it_is_stored(unit, row):
    (found,) = (each for each in one_fold("servo", unit, 0, 0, 0)["found"] if Row(*each["row"]) == row)
    width, missed = STORED[unit, row]
    assert found["width"][LEVELS.index(0.9)] == pytest.approx(width, rel=1e-4)
    assert found["missed"] == missed


def test_a_table_is_made_and_its_checks_are_printed(tmp_path, capsys):
    main(["table1", "--runs", "1", "--jobs", "1", "--out", str(tmp_path)])
    said = capsys.readouterr().out
    assert "1 of 1 tasks to do" in said
    assert "GPR and GPR-CP are well calibrated" in said
    assert {path.suffix for path in tmp_path.glob("table*")} == {".md", ".csv", ".tex"}
    main(["table1", "--quick", "--out", str(tmp_path)])
    assert capsys.readouterr().out.startswith("Only a sample")
    main(["table1", "--runs", "1", "-q", "--out", str(tmp_path)])
    said = capsys.readouterr().out
    assert said.startswith("# The paper, run again")
    assert "tasks to do" not in said


@pytest.mark.parametrize("arguments", [["table9"], ["--jobs", "0"], ["--runs", "0"]])
def test_mistakes_are_named(arguments, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert arguments[-1] in capsys.readouterr().err


def test_the_package_does_not_import_the_reproduction():
    wanted = re.compile(r"^\s*(?:from|import) reproduction\b", flags=re.MULTILINE)
    assert not [path for path in PACKAGE.rglob("*.py") if wanted.search(path.read_text())]
