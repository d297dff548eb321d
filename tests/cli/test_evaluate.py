"""``conformal-gp evaluate`` and ``report``, and ``demo``."""

import html
import json
import re

import numpy as np
import pandas as pd
import pytest

FAST = ("--tuning", "holdout", "--folds", "3")


def test_evaluate(command_line, train):
    common = ("evaluate", train, "--target", "y", *FAST, "--confidence", "80%")
    lines = command_line(*common).stdout.splitlines()
    assert lines[0] == "y: 60 of 60 rows held out"
    assert re.match(r"80% intervals covered \d\d\.\d%, .*; median width \d", lines[1])
    assert re.search(r": at 80% the standard GP covered .*, with intervals (\d.* times )?as wide\.$", lines[-1])
    assert len(lines) <= 5
    detailed = command_line(*common, "--details").stdout
    for word in ("conformal", "standard GP", "70.0 to 90.0%", "in nine cases out of ten"):
        assert word in detailed
    assert detailed.splitlines()[-1] == lines[-1]
    document = command_line.json("evaluate", train, "-t", "y", *FAST, "-c", "80%")
    assert [finding["method"] for finding in document["findings"]] == ["conformal", "standard GP"]
    for found in document["findings"]:
        assert found["n_below"] + found["n_above"] == found["outside"]
        assert found["miscoverage"] == found["outside"] / 60


def test_evaluate_and_report_by_group(command_line, train):
    by_group = ("-t", "y", "--groups", "kind", *FAST)
    said = command_line("evaluate", train, *by_group, "-c", "60").stdout
    assert "By kind, corrected for the number of groups" in said
    assert re.search(r"60% +group middle +\d", said)
    document = command_line.json("evaluate", train, *by_group, "-c", "60", "-c", "95")
    assert sum(group["n_rows"] for group in document["groups"]) == 2 * 60
    assert "needs at least 19 calibration rows in each group" in " ".join(document["words"])
    command_line("report", train, *by_group, "-o", "page.html")
    page = (command_line.folder / "page.html").read_text()
    assert re.search(r"By group, at [58]0%", page)  # most intervals of higher levels are infinite
    assert '<th scope="row">group top</th>' in page
    assert "It is for each group, not for other subgroups." in page


def test_few_rows_are_not_oversold(command_line):
    few = command_line.write("few.csv", command_line.rows(45))
    result = command_line("evaluate", few, "-t", "y", *FAST)
    assert "99%" not in result.stdout
    assert "infinite" not in result.stdout
    assert "too few rows to tell" in result.stdout
    assert "The guarantee raised coverage: at 90% the standard GP covered" in result.stdout
    assert "Advice: More rows" in result.stdout
    assert "99% intervals need 452 rows here" in result.stderr  # two folds of three train


def test_the_verdict_names_rows_with_too_narrow_intervals(command_line):
    rng = np.random.default_rng(0)
    x = rng.uniform(size=600)
    pd.DataFrame({"x": x, "y": 3 * x**3 * rng.standard_normal(600)}).to_csv("uneven.csv", index=False)
    options = ("uneven.csv", "-t", "y", "-c", "90", *FAST, "--difficulty", "none", "--target-transform", "none")
    document = command_line.json("evaluate", *options)
    assert re.search(r"overall, but too narrow where x is 0\.8\d* to 0\.99\d* \(covered \d", document["words"][0])
    assert {part["among"].split()[0] for part in document["too_narrow"]} <= {"x", "prediction"}


def test_outliers_are_rows_of_small_p_values(command_line):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 3, 90)
    y = np.sin(2 * x) + 0.1 * rng.standard_normal(90)
    y[17] += 9.0
    names = [f"S-{i}" for i in range(90)]
    pd.DataFrame({"sample": names, "x": x, "y": y}).to_csv("mistyped.csv", index=False)
    worst = command_line.json("evaluate", "mistyped.csv", "-t", "y", "-c", "90", *FAST, "--outliers")["outliers"]
    (mistyped,) = [each for each in worst[:2] if each["row"] == 19]  # beside a row that was predicted from it
    assert mistyped["name"] == "S-17"
    assert mistyped["observed"] == pytest.approx(y[17])
    assert mistyped["upper"] < y[17]
    assert len(worst) == 9  # a tenth
    p_values = [each["p_value"] for each in worst]
    assert p_values == sorted(p_values)
    assert p_values[0] < 0.1
    said = command_line("evaluate", "mistyped.csv", "-t", "y", "-c", "90", *FAST, "--outliers").stdout
    assert "Rows whose y is least expected, by p-value" in said
    assert re.search(r"19 +S-17 +0\.0", said)


def test_rows_in_order_of_time_are_looked_at_for_drift(command_line):
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"x": rng.uniform(size=240), "y": rng.normal(size=240)})
    found = []
    for name, later in {"alike": 0.0, "shifted": 4.0}.items():
        frame.assign(y=frame["y"] + later * (np.arange(240) >= 160)).to_csv(f"{name}.csv", index=False)
        found.append(command_line("evaluate", f"{name}.csv", "-t", "y", *FAST, "-c", "80", "--ordered").stdout)
    assert (
        "Drift: No shift, trend or change of spread in the errors of predictions in the order of 240 rows" in found[0]
    )
    (drift,) = re.findall(r"Drift: (From about row (\d+) on, errors of .*)", found[1])
    assert 150 <= int(drift[1]) <= 170
    command_line("report", "shifted.csv", "-t", "y", *FAST, "--ordered", "-o", "page.html")
    page = html.unescape((command_line.folder / "page.html").read_text())
    assert re.findall(r'<li class="warns"><strong>Drift.</strong> (.*?)</li>', page) == [drift[0]]


def test_on_a_grid_nothing_is_called_as_expected(command_line):
    """Cross-validation on a full factorial design without noise covers nearly all; between levels it may be nothing."""
    levels = np.linspace(0.0, 1.0, 4)
    runs = pd.DataFrame([(a, b, c) for a in levels for b in levels for c in levels], columns=["a", "b", "c"])
    runs.assign(y=np.exp(runs["a"]) * np.sin(3 * runs["b"]) + runs["c"] ** 2).to_csv("grid.csv", index=False)
    document = command_line.json("evaluate", "grid.csv", "-t", "y", *FAST, "-c", "60", "80")
    ours = [found["judgement"] for found in document["findings"] if found["method"] == "conformal"]
    assert set(ours) <= {"unknown between the levels", "too narrow"}
    assert document["grid"] == "4 levels of 'a', 4 of 'b', 4 of 'c'; 64 of 64 combinations"
    said = " ".join(document["words"])
    assert "as expected" not in said
    assert "a guarantee is for new rows at these levels, not between them" in said
    assert "Advice: Some 19 additional runs at random points" in said
    command_line("report", "grid.csv", "-t", "y", *FAST, "-o", "page.html", "-q")
    page = html.unescape((command_line.folder / "page.html").read_text())
    assert "64 of 64 combinations" in page
    assert "as expected" not in page
    assert command_line.json("evaluate", "grid.csv", "-t", "y", *FAST, "-c", "60", "--drop", "c")["grid"] is not None


def test_of_many_rows_a_third_is_held_out_once(command_line, train, monkeypatch):
    monkeypatch.setattr("conformal_gp.cli.evaluate.ROWS_FOR_ALL_FOLDS", 50)
    document = command_line.json("evaluate", train, "-t", "y", "-c", "80", "--tuning", "holdout")
    assert (document["rows"], document["held_out"]) == (60, 20)
    assert "20 of 60 rows are held out, once" in document["notices"][-1]
    assert command_line.json("evaluate", train, "-t", "y", "-c", "80", *FAST)["held_out"] == 60


def test_names_with_markup_are_text(command_line):
    odd = command_line.write("odd.csv", command_line.rows(30).replace("a,b,kind,y", "[red]a,b,<script>,[b]y[/b]"))
    said = command_line("evaluate", odd, "-t", "[b]y[/b]", *FAST, "-c", "60", "--groups", "<script>")
    assert "[b]y[/b]: 30 of 30 rows" in said.stdout
    assert "By <script>, corrected" in said.stdout
    assert "categories: '<script>'" in said.stderr


def test_demo_and_what_it_proposes_next(command_line):
    proposed = [line.split()[1:] for line in command_line("demo").stdout.splitlines() if "  conformal-gp" in line]
    assert [words[0] for words in proposed] == ["predict", "plot", "evaluate", "report"]
    command_line(*proposed[0], "--tuning", "holdout", "-q")
    folder = command_line.folder / "conformal-gp-demo"
    assert len((folder / "predicted.csv").read_text().splitlines()) == 41
    (folder / "cars.csv").write_text("my own\n1\n")
    assert "with other content" in command_line.error("demo")
    assert (folder / "cars.csv").read_text() == "my own\n1\n"


def test_report(command_line):
    header, *lines = command_line.rows(30).replace("a,b,kind,y", "<script>alert(1)</script>,b,kind,y").splitlines()
    lines[4] = "," + lines[4].split(",", 1)[1]
    path = command_line.write("odd.csv", "\n".join([header, *lines]))
    page = command_line("report", path, "-t", "y", "-o", "-", *FAST, "--missing", "drop").stdout
    assert page.lstrip().lower().startswith("<!doctype html")
    assert "<script>alert(1)" not in page
    shown = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])["rows"]
    assert sorted(int(row["row"]) for row in shown) == [i for i in range(2, 32) if i != 6]  # as in the file
    command_line("report", path, "-t", "y", "-o", "r.html", *FAST, "--missing", "drop", "-q")
    written = (command_line.folder / "r.html").read_text(encoding="utf-8")
    assert written.replace("-o r.html", "-o -").replace(" -q<", "<").strip() == page.strip()
    facts = html.unescape(page[page.index("<footer>") :])
    assert "odd.csv" in facts
    assert "left out" in facts
    assert "conformal-gp report" in facts
    assert "--missing drop" in facts
