"""The page: right numbers, escaped names, nothing from outside."""

import html
import json
import re
from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import ShuffleSplit

from cases import fixed_model
from conformal_gp import ConformalGPRegressor
from conformal_gp.evaluation import Finding
from conformal_gp.metrics import coverage
from conformal_gp.report import build_report
from conformal_gp.report import page as report_page
from conformal_gp.report.chart import PERCENTS, decimals, text

from .conftest import NAMES, TARGET


class Page(HTMLParser):
    """Tags with their attributes, and the text of the cells of each table."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.tables, self._cell = [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")
            self._cell = tag

    def handle_endtag(self, tag):
        if tag == self._cell:
            self._cell = None

    def handle_data(self, text):
        if self._cell:
            self.tables[-1][-1][-1] += text


def embedded(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_the_table_has_the_library_s_numbers(report):
    head, *found = Page(report.page).tables[0]
    assert head == ["level", "method", "coverage", "expected", "median width", "verdict"]
    digits = decimals(report.y, report.intervals)
    assert [row[:2] for row in found] == [
        [level, method] for level in ("50%", "80%", "90%", "95%", "99%") for method in ("conformal", "standard GP")
    ]
    for cells in found:
        k = PERCENTS.index(int(cells[0][:-1]))
        ends = {"conformal": report.intervals, "standard GP": report.plain}[cells[1]][:, :, k]
        width = text(np.median(ends[:, 1] - ends[:, 0]), digits)
        assert [cells[2], cells[4]] == [f"{100 * coverage(report.y, ends):.1f}%", width]
    assert found[-2][3:] == ["96.7 to 100.0%", "∞", "infinite"]  # 72 calibration rows cannot support 99%
    assert "More rows, or a lower level: 99% needs at least 99 calibration rows." in report.page


def test_the_chart_has_the_library_s_numbers(report):
    data = embedded(report.page)
    assert data["levels"] == list(range(50, 100))
    np.testing.assert_allclose(data["conformal"]["coverage"], coverage(report.y, report.intervals), atol=1e-6)
    np.testing.assert_allclose(data["standard"]["coverage"], coverage(report.y, report.plain), atol=1e-6)
    assert [row["prediction"] for row in data["rows"]] == sorted(row["prediction"] for row in data["rows"])
    assert sorted(int(row["row"]) for row in data["rows"]) == list(range(1, 91))
    half = 0.5 * 10.0 ** -data["decimals"] + 1e-12
    for row in data["rows"]:
        i = int(row["row"]) - 1
        low, high = report.intervals[i]
        np.testing.assert_allclose([-np.inf if end is None else end for end in row["low"]], low, rtol=0, atol=half)
        np.testing.assert_allclose([np.inf if end is None else end for end in row["high"]], high, rtol=0, atol=half)
        assert abs(row["y"] - report.y[i]) <= half


def test_names_are_text(report):
    page = Page(report.page)
    assert [attributes.get("type", "") for tag, attributes in page.tags if tag == "script"] == ["application/json", ""]
    assert not {"b", "i", "img"} & {tag for tag, _ in page.tags}
    data = embedded(report.page)
    assert data["inputs"] == NAMES
    assert data["target"] == TARGET
    assert "<title>Prediction intervals for &lt;b&gt;label&lt;/b&gt;</title>" in report.page


def test_nothing_comes_from_outside(report):
    addresses = set(re.findall(r"[a-z]+://[^\s\"'<)]*", report.page))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, not a place
    for tag, attributes in Page(report.page).tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "form", "base")
        assert not {"src", "href", "style", "onclick"} & set(attributes)
    assert "@import" not in report.page
    assert "url(" not in report.page
    policy = next(
        attributes["content"]
        for _, attributes in Page(report.page).tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


def verdict_of(page):
    """Class and text of the verdict."""
    return re.search(r'<p class="verdict (\w+)">(.*?)</p>', page).groups()


def test_words_are_plain(report):
    quality, line = verdict_of(report.page)
    assert quality == "unknown"
    assert re.fullmatch(r"90% intervals covered \d\d\.\d% of 90 held-out rows, too few rows to tell\.", line)
    assert "Guaranteed: if new rows are exchangeable" in report.page
    assert fixed_model().fit(report.X, report.y).guarantee_ in report.page
    learnt = ConformalGPRegressor("se", tuning="train", n_restarts=0, random_state=0)
    with pytest.warns(UserWarning, match="tuning='train' learns"):
        page = build_report(report.X, report.y, model=learnt, cv=2)
    assert "Not guaranteed: " in page
    assert verdict_of(page)[0] != "good"
    for shown in (report.page, page):
        assert not re.search(r"augmented|1 - delta|\bbag\b|miscoverage|missed", shown)


@pytest.mark.parametrize(
    ("below", "quality", "ending"),
    [
        (20, "good", "of 200 held-out rows, as expected."),
        (30, "doubt", "of 200 held-out rows, in doubt (expected 85.5 to 94.0%)."),
        (60, "bad", "of 200 held-out rows, too narrow (expected 85.5 to 94.0%)."),
        (2, "doubt", "of 200 held-out rows, too wide (expected 85.5 to 94.0%)."),
    ],
)
def test_the_verdict_says_how_good_it_is(below, quality, ending):
    finding = Finding("conformal", Fraction(9, 10), 200, below, 0, 1.0, 0)
    assert report_page.verdict(finding, []) == (quality, f"90% intervals covered {100 - below / 2:.1f}% {ending}")
    few = Finding("conformal", Fraction(9, 10), 200, 1, 1, 1.0, 0, n_batches=20)
    of_few, line = report_page.verdict(few, [])
    assert of_few == "unknown"
    assert line.endswith("of 200 held-out rows, too few batches to tell.")
    part = Finding("conformal", Fraction(9, 10), 50, 20, 0, 1.0, 0, among="kind is b")
    of_part, line = report_page.verdict(finding, [part])
    assert (of_part == "bad") == (quality == "bad")
    assert line.endswith(" overall, but too narrow where kind is b (covered 60.0%).") == (quality != "bad")


def test_what_to_look_at_is_found_and_named():
    """One category is much noisier, one target is mistyped, and rows with the largest input extrapolate."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.uniform(size=600), "kind": pd.Categorical(rng.choice(list("ab"), 600, p=[0.8, 0.2]))})
    y = X["x"].to_numpy() + np.where(X["kind"] == "b", 1.0, 0.1) * rng.standard_normal(600)
    y[7] = 50.0
    X.loc[9, "x"] = 3.0
    model = fixed_model(noise_variance=0.1, difficulty=None)
    origin = {"source": "wear.csv", "notes": ["2 rows have no y and are left out"]}
    names = [f"{i} (named)" for i in range(1, 601)]
    page = html.unescape(build_report(X, y, model=model, cv=3, row_names=names, target_name="y", **origin))
    assert verdict_of(page)[0] != "good"
    warned = re.findall(r'<li class="warns"><strong>(\w+)\.</strong> (.*?)</li>', page)
    assert {topic for topic, _ in warned} == {"Subgroup", "Extrapolation", "Outlier"}
    assert any(re.match(r"Where kind is b, 90% intervals covered only", text) for _, text in warned)
    assert any(re.match(r"Row 8 \(named\): 50\.\d*, predicted", text) for _, text in warned)
    assert any("1 of 600 held-out rows lie outside" in text for _, text in warned)
    assert "or intervals valid in each category (groups=)" in page
    assert "2 rows have no y and are left out." in page
    assert "wear.csv" in page
    by_command = build_report(X, y, model=model, cv=3, command="conformal-gp report wear.csv")
    assert "or intervals valid in each category (--groups)" in by_command
    assert "conformal-gp report wear.csv" in by_command
    assert "build_report in Python, ConformalGPRegressor(" in page


def test_rows_that_were_held_out_once_are_those_of_the_page(report):
    cv = ShuffleSplit(1, test_size=20, random_state=0)
    page = build_report(report.X, report.y, model=fixed_model(), cv=cv)
    assert "All 20 held-out rows are drawn" in re.sub(r"\s+", " ", page)
    held_out = next(cv.split(report.X))[1]
    rows = embedded(page)["rows"]
    assert sorted(int(row["row"]) for row in rows) == sorted(held_out + 1)
    assert all(
        row["y"] == pytest.approx(report.y[int(row["row"]) - 1], abs=10.0 ** -embedded(page)["decimals"])
        for row in rows
    )
    assert all(float(row["x"][0]) == pytest.approx(report.X.iloc[int(row["row"]) - 1, 0], rel=1e-3) for row in rows)
    assert "20 of the 90 rows were held out" in page


def test_progress_and_the_same_page_again(report):
    heard = []
    options = {"target_name": TARGET, "model": fixed_model(), "cv": 5}
    page = build_report(report.X, report.y, progress=lambda *fits: heard.append(fits), **options)
    assert heard == [(done, 5) for done in range(1, 6)]
    assert page == report.page


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_labels_of_any_size(report, factor):
    page = build_report(report.X, factor * report.y, model=fixed_model(noise_variance=0.1 * factor**2), cv=2)
    shown = {int(row["row"]) - 1: row["y"] for row in embedded(page)["rows"]}
    labels = factor * report.y
    assert max(abs(shown[i] - labels[i]) for i in range(90)) < 1e-3 * np.std(labels)


def test_a_target_transformation_is_named(report):
    model = fixed_model(target_transform="log")
    page = build_report(report.X, np.exp(0.1 * report.y), model=model, cv=2)
    assert "target transformation</th><td>log" in page
    assert "target transformation</th><td>none" in report.page


def test_bad_arguments(report):
    with pytest.raises(ValueError, match="model must have predict_interval, as ConformalGPRegressor has; got Ridge"):
        build_report(report.X, report.y, model=Ridge())
    with pytest.raises(ValueError, match="row_names must name each of 90 rows, got 2 names"):
        build_report(report.X, report.y, model=fixed_model(), row_names=["1", "2"])
    with pytest.raises(ValueError, match="in any row of column 0"):
        build_report(np.full((20, 1), np.nan), np.zeros(20))
