"""``conformal-gp evaluate``, ``plot``, ``report`` and ``demo``."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from cli_cases import noisy_tables, rows

pytest.importorskip("typer", reason="the command line is an extra: pip install 'conformal-gp[cli]'")

from conformal_gp import ConformalGPRegressor
from conformal_gp.evaluation import cross_validate_intervals
from conformal_gp.plotting import PredictionBandDisplay

PNG = b"\x89PNG"


def test_evaluate(command_line, train):
    result = command_line("evaluate", train, "--target", "y", "--confidence", "80%", "90%", "--folds", "4")
    for word in ("GPR-CP", "plain GPR", "split conformal", "promised", "y: 60 rows, each held out once in 4 folds"):
        assert word in result.stdout
    assert (command_line.folder / "train-evaluation.png").read_bytes().startswith(PNG)


def test_evaluate_json_is_the_same_every_time(command_line, train):
    arguments = ("evaluate", train, "-t", "y", "-c", "80%", "--folds", "3")
    document = command_line.json(*arguments)
    assert document | {"picture": "p.svg"} == command_line.json(*arguments, "--picture", "p.svg")
    assert (command_line.folder / "p.svg").read_text().startswith("<?xml")
    assert [finding["method"] for finding in document["findings"]] == ["GPR-CP", "plain GPR", "split conformal"]
    for found in document["findings"]:
        assert found["miscoverage"] == found["outside"] / found["rows"]
        assert found["below"] + found["above"] == found["outside"]
    assert set(document["crps"]) == {"GPR-CP", "plain GPR"}
    assert all(0.0 < score < 1.0 for score in document["crps"].values())
    assert list(command_line.folder.glob("*.png")) == []


def test_evaluate_sees_that_error_bars_are_wrong(command_line):
    # Noise with heavy tails and few rows: a Gaussian's 99% error bars are too narrow.
    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, size=300)
    y = np.sin(x) + 0.1 * rng.standard_t(1.5, size=300)
    table = "x,y\n" + "".join(f"{a},{b}\n" for a, b in zip(x.tolist(), y.tolist(), strict=True))
    path = command_line.write("tails.csv", table)
    document = command_line.json("evaluate", path, "-t", "y", "-c", "50%", "95%", "--folds", "3")
    judgement = {(found["method"], found["level"]): found["judgement"] for found in document["findings"]}
    assert judgement["GPR-CP", 0.95] == "kept"
    assert judgement["GPR-CP", 0.5] == "kept"
    assert judgement["plain GPR", 0.5] == "too wide"


def test_evaluate_tells_the_tails_apart(command_line):
    rng = np.random.default_rng(3)
    table = "x,y\n" + "".join(f"{i},{label}\n" for i, label in enumerate(rng.exponential(size=300).tolist()))
    path = command_line.write("skewed.csv", table)
    common = ("evaluate", path, "-t", "y", "-c", "90%", "--folds", "3", "--kernel", "se")
    joint, equal = (command_line.json(*common, "--tails", tails)["findings"][0] for tails in ("joint", "equal"))
    assert (joint["judgement"], joint["judgement_above"]) == ("kept", "too narrow")
    assert equal["judgement_below"] == equal["judgement_above"] == "kept"
    assert "CRPS: GPR-CP" in command_line(*common, "--no-picture").stdout


@pytest.mark.parametrize("kind", ["intervals", "coverage", "widths", "importance", "band", "comparison", "p-values"])
def test_plot(command_line, train, kind):
    result = command_line("plot", train, "-t", "y", "--kind", kind, "-o", "p.png", "--folds", "2")
    assert "Picture: p.png" in result.stderr
    assert (command_line.folder / "p.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize("kind", ["band", "comparison"])
def test_a_band_is_that_of_the_most_frequent_categories(command_line, monkeypatch, kind):
    """With text in the first column, and no category in half of the rows: all of their inputs have the median 0."""
    lines = [line.split(",") for line in rows(60).splitlines()]
    table = command_line.write("t.csv", "\n".join(",".join([text, a, b, y]) for a, b, text, y in lines))
    drawn: list[PredictionBandDisplay] = []
    monkeypatch.setattr(PredictionBandDisplay, "plot", _and_keep(PredictionBandDisplay.plot, drawn))
    command_line("plot", table, "-t", "y", "--kind", kind, "-o", "p.png")
    assert drawn
    for band in drawn:
        name, *others = band.feature_name.splitlines()
        assert name == "a"
        assert "kind=top 1" in " ".join(others)
        assert np.isfinite(band.intervals).all()


def _and_keep(method, kept):
    def wrapped(self, *args, **kwargs):
        kept.append(self)
        return method(self, *args, **kwargs)

    return wrapped


def test_a_column_of_known_noise_variances(command_line):
    frame, train, _ = noisy_tables(command_line)
    rows = frame[:60]
    options = ("-t", "y", "--folds", "3", "--noise-column", "v")
    document = command_line.json("evaluate", train, *options, "-c", "80%")
    assert document["inputs"] == ["a"]
    models = {"GPR-CP": ConformalGPRegressor(random_state=0)}
    held_out = cross_validate_intervals(
        models, rows[["a"]], rows["y"], [0.8], cv=3, plain="plain GPR", noise_variance=rows["v"]
    )
    for told, found in zip(document["findings"], held_out.findings(), strict=False):
        assert told["outside"] == found.n_outside
        assert told["mean_width"] == pytest.approx(found.mean_width, rel=1e-9)
    words = command_line("evaluate", train, *options, "-c", "80%", "--no-picture").stderr
    assert "split conformal does without the noise variances of 'v'" in " ".join(words.split())
    page = command_line("report", train, *options, "-o", "-", "-q").stdout
    assert "a variance of each row" in page
    chart = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    inside = chart["conformal"]["coverage"][chart["levels"].index(80)]
    assert inside == pytest.approx(1 - document["findings"][0]["outside"] / 60, abs=1e-6)


def test_plot_mistakes(command_line, train):
    common = ("plot", train, "-t", "y")
    assert "--out must end in .png" in command_line.error(*common, "-o", "p.xyz")
    wrong_input = command_line.error(*common, "-o", "p.png", "--kind", "band", "--input", "kind")
    assert "cannot go over 'kind'" in wrong_input
    assert "'a', 'b'" in wrong_input
    assert "between 1 and 60" in command_line.error(*common, "-o", "p.png", "--kind", "p-values", "--row", "61")


def test_report(command_line, train):
    command_line("report", train, "-t", "y", "-o", "r.html", "--folds", "2", "-q")
    page = (command_line.folder / "r.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html")
    assert command_line("report", train, "-t", "y", "-o", "-", "--folds", "2").stdout.strip() == page.strip()


def test_rows_have_their_numbers_in_the_table(command_line):
    header, *lines = rows(30).splitlines()
    lines[4] = "," + lines[4].split(",", 1)[1]
    command_line.write("holes.csv", "\n".join([header, *lines]))
    drop = ("holes.csv", "-t", "y", "--missing", "drop")
    page = command_line("report", *drop, "-o", "-", "--folds", "2").stdout
    shown = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])["rows"]
    assert sorted(row["row"] for row in shown) == [i for i in range(1, 31) if i != 5]
    label = float(lines[29].split(",")[3])
    assert {row["row"]: row["y"] for row in shown}[30] == pytest.approx(label, abs=0.01)
    common = ("plot", *drop, "-o", "p.png", "--kind", "p-values")
    assert "must be a row that was kept, got 5" in command_line.error(*common, "--row", "5")
    assert "between 1 and 30, got 31" in command_line.error(*common, "--row", "31")


def test_report_escapes_names(command_line):
    path = command_line.write("odd.csv", rows(30).replace("a,b,kind,y", "<script>alert(1)</script>,b,kind,y"))
    page = command_line("report", path, "-t", "y", "-o", "-", "--folds", "2").stdout
    assert "<script>alert(1)" not in page


def test_demo_and_what_it_proposes_next(command_line):
    result = command_line("demo", "--folds", "2")
    assert "GPR-CP" in result.stdout
    folder = command_line.folder / "conformal-gp-demo"
    assert (folder / "evaluation.png").read_bytes().startswith(PNG)
    proposed = [line.split()[1:] for line in result.stderr.splitlines() if line.startswith("  conformal-gp")]
    assert [words[0] for words in proposed] == ["predict", "report", "--help"]
    command_line(*proposed[0])
    assert len((folder / "predicted.csv").read_text().splitlines()) == 41


def test_parts_errors_and_what_matters(command_line, train):
    common = ("evaluate", train, "-t", "y", "--folds", "4", "-c", "80")
    document = command_line.json(*common)
    parts = document["parts"]
    assert {part["of"] for part in parts} == {"prediction", "a", "b", "kind=low", "kind=middle", "kind=top"}
    assert sum(part["n_rows"] for part in parts if part["of"] == "a") == 60
    assert set(document["importance"]) == {"a", "b", "kind"}  # a column of categories is shuffled as a whole
    found = document["accuracy"]["GPR-CP"]
    labels = pd.read_csv(train)["y"]
    assert found["r2"] == pytest.approx(1 - found["rmse"] ** 2 / labels.var(ddof=0))
    assert all(finding["interval_score"] >= finding["mean_width"] for finding in document["findings"])
    said = " ".join(command_line(*common, "--no-picture").stdout.split())
    assert "At 80% no fifth of the prediction or of an input has more labels outside" in said
    assert "By chance alone, of 60 labels 10.0 to 30.0% at 80% would be outside." in said
    assert "Error of predictions when a column is shuffled: " in said
    assert f"R² {found['r2']:.3f}" in said


def test_of_many_rows_a_third_is_held_out_once_and_of_very_many_a_number(monkeypatch, capsys):
    from conformal_gp.cli import evaluate
    from conformal_gp.cli.output import Output
    from conformal_gp.cli.training import ModelChoice, Training
    from conformal_gp.tables import Columns

    monkeypatch.setattr(evaluate, "ROWS_FOR_ALL_FOLDS", 60)
    monkeypatch.setattr(evaluate, "HELD_OUT_ROWS", 30)
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(120, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(120)
    columns = Columns.of_numbers("table", "y", ["x"])
    for n_rows, asked, folds, held_out in (
        (60, None, 10, 60),
        (61, None, None, 20),
        (120, None, None, 30),
        (120, 2, 2, 120),
    ):
        output = Output(quiet=False, as_json=True)
        training = Training(X[:n_rows], y[:n_rows], columns, np.arange(n_rows))
        choice = ModelChoice(tuning="holdout")
        evaluate.run_evaluation(training, choice, evaluate.parse_levels(["80%"]), asked, None, output)
        document = json.loads(capsys.readouterr().out)
        assert (document["folds"], document["held_out"]) == (folds, held_out)
        assert document["findings"][0]["rows"] == held_out
        assert sum(part["n_rows"] for part in document["parts"] if part["of"] == "x") == held_out
        assert bool(document["notices"]) == (folds is None)


def test_report_and_pictures_hold_out_the_same_rows_of_many(command_line, train, tmp_path, monkeypatch):
    from conformal_gp.cli import evaluate

    monkeypatch.setattr(evaluate, "ROWS_FOR_ALL_FOLDS", 50)
    page = tmp_path / "page.html"
    found = command_line("report", train, "--target", "y", "--tuning", "holdout", "-o", page)
    assert "20 of 60 rows are held out, once" in found.stderr
    assert "20 of the 60 rows were held out" in page.read_text()
    for kind in ("intervals", "coverage"):
        picture = tmp_path / f"{kind}.png"
        options = ["--target", "y", "--tuning", "holdout", "-o", picture]
        assert "20 of 60 rows" in command_line("plot", train, "--kind", kind, *options).stderr
        assert picture.exists()


def test_progress_is_told_in_lines_where_there_is_no_terminal(monkeypatch, capsys):
    from threading import Event

    from conformal_gp.cli import output

    monkeypatch.setattr(output, "SECONDS_BETWEEN_LINES", 0.01)
    said, told = Event(), []

    def listen(self, text):
        told.append(text)
        if "1 of 3" in text:
            said.set()

    monkeypatch.setattr(output.Output, "info", listen)
    with output.Output(quiet=False, as_json=False).progress("cross-validating") as progress:
        progress(1, 3)
        assert said.wait(60)
    assert told[-1].startswith("cross-validating: 1 of 3 done (")
    n_lines = len(told)
    with output.Output(quiet=True, as_json=False).working("fitting"):
        pass
    assert len(told) == n_lines
