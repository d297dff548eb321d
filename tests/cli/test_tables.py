"""Cells of tables as numbers, and what columns look like."""

import numpy as np
import pandas as pd
import pytest

from conformal_gp.cli.columns import Columns
from written_tables import reading, values

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def test_numbers_of_workbooks_have_no_decimal_mark(table):
    frame = pd.DataFrame({"a": [1.5, 2.25, "3,125"], "mpg": [0.5, "<0,25", 1]})
    found = table(frame, "cars.xlsx", decimal=",")
    assert values(found) == ([[1.5], [2.25], [3.125]], [0.5, 0.25, 1])


def test_rows_of_means_below_a_table_are_pointed_out(table):
    rows = "".join(f"S{i},{i % 7}.5,{i}\n" for i in range(20))
    found = table(f"sample,a,mpg\n{rows}Mean,3.5,9.5\nSD,2,6\nn,20,20\n")
    with pytest.warns(UserWarning, match=r"rows '22 \(Mean\)', '23 \(SD\)', '24 \(n\)' look like summaries of others"):
        Columns.learn(found, "mpg", reading())


def test_thousands_in_a_comma_separated_file(table):
    assert values(table("a,mpg\n1.234,1\n2.345,2\n"))[0] == [[1.234], [2.345]]
    with pytest.raises(ValueError, match=r"'3,210' is not a number .*--thousands the mark between thousands"):
        values(table('a,mpg\n1,"3,210"\n2,950\n'))


def test_numbers_are_read_to_the_last_digit(table):
    numbers = np.random.default_rng(0).normal(size=50) * 10.0 ** np.arange(-25, 25)
    assert values(table("a,mpg\n" + "".join(f"{n!r},1\n" for n in numbers.tolist())))[0] == numbers[:, None].tolist()


ORDER = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("name", "numbers", "named"),
    [
        ("x", range(60), True),
        ("x", ORDER.permutation(60), True),  # without a gap
        ("x", np.arange(60) * 7 + 3, False),  # with gaps
        ("car_id", ORDER.permutation(600)[:60], True),
        ("humid", ORDER.permutation(600)[:60], False),
        ("x", np.arange(60) // 2, False),  # not all different
        ("x", ORDER.normal(size=60), False),
    ],
)
def test_row_numbers_and_identifiers_are_pointed_out(table, recwarn, name, numbers, named):
    values(table(f",{name},mpg\n" + "".join(f"{i},{number},1\n" for i, number in enumerate(numbers))))
    said = " ".join(str(warning.message) for warning in recwarn)
    assert (f"--drop {name} leaves them out" in said) is named
    assert "columns without a name are not used" in said


def test_numbers_of_replicates_are_pointed_out(command_line):
    rows = [f"{dose},{replicate},{dose + 0.1 * replicate}" for dose in range(6) for replicate in (1, 2, 3)]
    path = command_line.write("doses.csv", "\n".join(["dose,Replicate,y", *rows]))
    said = command_line("fit", path, "-t", "y", "--tuning", "holdout", "-o", "doses.model").stderr
    assert "numbers of replicates say nothing of a new one, and hide that inputs are equal (--drop Replicate" in said
