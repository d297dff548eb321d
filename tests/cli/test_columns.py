"""Columns of tables: numbers, categories, names of rows, dates, missing values, channels of spectra."""

import io

import numpy as np
import pandas as pd
import pytest

from conformal_gp.cli.columns import Columns
from conformal_gp.cli.output import Output
from conformal_gp.cli.rows import read_training
from written_tables import PLAIN, reading, values

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def test_a_table_of_one_column_names_the_separator(table):
    with pytest.raises(ValueError, match=r"Its columns are 'a mpg' \(separator ','; --separator sets another, as in"):
        Columns.learn(table("a mpg\n1 2\n3 4\n"), "mpg", reading())


@pytest.mark.parametrize(
    ("cell", "word"),
    [
        ("abc", r"column 'weight', row 4: 'abc' is not a number .*--na 'abc'"),
        ("1,5", r"'1,5' is not a number \(the decimal mark is '\.', --decimal"),
        ("1,234", "'1,234' is not a number"),
        ("1_0", "'1_0' is not a number"),
        ("inf", "'inf' is not a number"),
        ("1e999", "'1e999' is not a number"),
        ("2024-01-05", "'2024-01-05' is not a number"),
        ("$3", "is not a number"),
        ("44.5*", r"'44.5\*' is not a number \(write 44.5 alone: its unit belongs into the header"),
        ("12 mg/L", r"'12 mg/L' is not a number \(write 12 alone"),
        ("-1.5 ± 0.2", r"is not a number \(write -1.5 alone: .*, its uncertainty into a column"),
    ],
)
def test_cells_that_are_no_numbers(table, cell, word):
    with pytest.raises(ValueError, match=word):
        values(table(f"weight;mpg\n1.5;30\n2.5;20\n{cell};25\n3.5;15\n"))


def test_target_and_dropped_columns_must_exist(table):
    cars = table(PLAIN)
    for wrong in ("MPG", "mgp", "mpg "):
        with pytest.raises(ValueError, match=r"has no column .* Did you mean 'mpg'\? Its columns are 'weight'"):
            values(cars, target=wrong)
    for drop in (["mpg"], ["weight", "origin"]):
        with pytest.raises(ValueError, match="must have the target 'mpg', and other columns"):
            values(cars, drop=drop)
    with pytest.raises(ValueError, match=r"column 'origin', row 2: 'usa' is not a number"):
        values(cars, target="origin")


def test_columns_are_matched_by_name(table):
    columns = Columns.learn(table(PLAIN), "mpg", reading())
    new = table("colour,origin,weight,mpg\nred,japan,9,\n", "new.csv")
    assert columns.inputs(new).X.astype(object).to_numpy().tolist() == [[9, "japan"]]
    with pytest.raises(ValueError, match=r"new\.csv lacks 'weight', which .*cars\.csv has. Did you mean 'Weight'"):
        columns.inputs(table("Weight,origin\n1,usa\n", "new.csv"))


def test_a_new_category_is_named_or_left_out(table):
    columns = Columns.learn(table(PLAIN), "mpg", reading())
    new = table("weight,origin\n1,usa\n2,jpaan\n", "new.csv")
    with pytest.raises(ValueError, match=r"column 'origin', row 3: 'jpaan' is not among .*Did you mean 'japan'"):
        columns.inputs(new)
    lots = Columns.learn(table("lot,a,mpg\n" + "S04,1,2\nS15,2,4\n" * 4), "mpg", reading())
    with pytest.raises(ValueError, match=r"'S05' is not among the categories of .* \('S04', 'S15'\)\. If 'lot' names"):
        lots.inputs(table("lot,a\nS05,1\n", "new.csv"))
    with pytest.warns(UserWarning, match="category that no training row has: 1"):
        assert Columns.learn(table(PLAIN), "mpg", reading(missing="drop")).inputs(new).X.index.tolist() == [2]


def test_names_are_not_taken_for_categories(table):
    named = "".join(f"car {i},m{i // 2},{i},{i}\n" for i in range(30))
    with pytest.raises(ValueError, match=r"16 different values in 30 rows.*--drop 'maker'"):
        values(table("name,maker,a,mpg\n" + named.replace("m0,", "m99,", 1)))
    with pytest.warns(UserWarning, match="names the rows, and is not used: 'name'"):
        assert values(table("name,maker,a,mpg\n" + named), drop=["maker"])[0] == [[i] for i in range(30)]
    with pytest.raises(ValueError, match="apart from 'mpg' there are only names of rows: 'name'"):
        values(table("name,maker,a,mpg\n" + named), drop=["maker", "a"])
    countries = "from,mpg\n" + "".join(f"country {i % 98},{i % 7}\n" for i in range(98 * 50))
    assert len(values(table(countries))[0]) == 98 * 50


@pytest.mark.parametrize("mark", ["", "NA", "?", "-999"])
@pytest.mark.parametrize("name", ["cars.csv", "cars.parquet"])
def test_missing_values(table, mark, name):
    text = f"weight,origin,mpg\n1,usa,30\n{mark},japan,20\n3,{mark},25\n7,usa,15\n"
    found = table(text if name.endswith("csv") else pd.read_csv(io.StringIO(text)), name)
    marks = ["-999"]
    with pytest.raises(ValueError, match=r"column 'weight', row [23] has no value; --missing drop"):
        values(found, na=marks)
    assert values(found, missing="drop", na=marks) == ([[1, 1], [7, 1]], [30, 15])
    assert values(found, missing="impute", na=marks) == ([[1, 1], [7, 1]], [30, 15])  # too few for the model to learn


def test_missing_targets_are_never_imputed(table, tmp_path):
    found = table("a,mpg\n1,30\n2,\n3,10\n")
    with pytest.raises(ValueError, match=r"column 'mpg', row 3 has no value"):
        read_training(str(tmp_path / "cars.csv"), "mpg", reading(), Output(quiet=True))
    labels = Columns.learn(found, "mpg", reading(missing="impute")).targets(table("a,mpg\n1,\n"))
    assert labels["y"].isna().all()


DAYS = ("2024-02-29", "2023-12-31", "2024-01-01")
ELAPSED = [[60], [0], [1]]


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d-%m-%Y", "typed"])
def test_dates_become_days_since_the_first(table, form):
    days = pd.to_datetime(pd.Series(DAYS))
    frame = pd.DataFrame({"day": days if form == "typed" else days.dt.strftime(form), "mpg": [1, 2, 3]})
    found = table(frame, "days.parquet") if form == "typed" else table(frame.to_csv(index=False))
    with pytest.warns(UserWarning, match="dates are days since 2023-12-31; rows in order of time"):
        assert values(found, dates="elapsed")[0] == ELAPSED
    with pytest.raises(ValueError, match=r"'day' has dates .*--dates elapsed .*--drop 'day'"):
        values(found)


def test_hours_and_new_dates(table):
    found = table("day,mpg\n2024-02-29 12:30,1\n2024-03-01T00:00:00Z,2\n2024-03-02 06:00+02:00,3\n")
    columns = Columns.learn(found, "mpg", reading(dates="elapsed"))
    assert columns.inputs(found).X["day"].tolist() == pytest.approx([0, 11.5 / 24, 1 + 15.5 / 24])
    columns = Columns.learn(table("day,mpg\n13/1/2024,1\n14/1/2024,2\n"), "mpg", reading(dates="elapsed"))
    assert columns.inputs(table("day\n3/1/2024\n")).X.to_numpy().tolist() == [[-10]]
    with pytest.raises(ValueError, match=r"column 'day', row 2: '1/13/2024' is not a date"):
        columns.inputs(table("day\n1/13/2024\n"))
    with pytest.raises(ValueError, match="lacks 'day'"):
        columns.inputs(table("dya\n1/1/2024\n"))


@pytest.mark.parametrize(
    ("cells", "word"),
    [
        (("1/2/2024", "3/4/2024"), "may have day or month first"),
        (("2024-02-30", "2024-01-01"), "'2024-02-30' is not a date"),
        (("2024-01-01", "2024-01-02", "soon"), "'soon' is not a date"),
    ],
)
def test_dates_that_cannot_be_read(table, cells, word):
    with pytest.raises(ValueError, match=word):
        values(table("day,mpg\n" + "".join(f"{cell},1\n" for cell in cells)), dates="elapsed")


def spectra(n_rows, n_channels, seed=0):
    """Smooth channels that a few factors explain."""
    rng = np.random.default_rng(seed)
    channels = np.linspace(0, 1, n_channels)
    shapes = np.exp(-0.5 * ((channels - rng.uniform(size=(3, 1))) / 0.1) ** 2)
    factors = rng.normal(size=(n_rows, 3))
    frame = pd.DataFrame((1 + factors @ shapes).round(5), columns=[f"{1100 + 2 * j}" for j in range(n_channels)])
    frame.insert(0, "sample", [f"S{i:02d}" for i in range(n_rows)])
    return frame.assign(moisture=(10 + 2 * factors[:, 0] + 0.1 * rng.normal(size=n_rows)).round(3))


def test_spectra(command_line):
    table = spectra(28, 300)
    table.iloc[:24].to_csv("spectra.csv", index=False)
    table.iloc[24:].drop(columns="moisture").to_csv("new.csv", index=False)
    found = command_line.json("evaluate", "spectra.csv", "-t", "moisture", "--folds", 2, "-c", "80%")
    assert len(found["inputs"]) == 300
    run = command_line("predict", "spectra.csv", "new.csv", "-t", "moisture", "-c", "80%")
    predicted = run.stdout.splitlines()
    assert predicted[1].startswith("S24,")
    assert predicted[0].endswith("moisture_mean,moisture_lower_80,moisture_upper_80,moisture_beyond_training")
