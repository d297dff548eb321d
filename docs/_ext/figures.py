"""Figures on the pages, from results files: each is written, and checked, by the function that its mark names.

A page marks a sentence or a table by ``<!-- figures: NAME -->`` and ``<!-- end -->``. The site is built with what the
function NAME of this file returns, ``python docs/_ext/figures.py`` writes it into the pages, and a test compares them.
"""

from __future__ import annotations

import csv
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MARK = re.compile(r"(<!-- figures: (\w+) -->\n)(.*?)(<!-- end -->)", flags=re.DOTALL)
STUDIES = ROOT / "reproduction" / "results" / "studies"
SPEED = ROOT / "benchmarks" / "results" / "speed.md"
REAL = ROOT / "benchmarks" / "real" / "results" / "results.md"
WIDTH = 120
OURS = "conformal-gp"
TRAIN = "conformal, tuned on the same rows"


def rows_of(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def table_rows(path: Path, after: str = "") -> list[list[str]]:
    """Cells of the first table of a page of results after a text."""
    text = path.read_text()
    text = text[text.index(after) :]
    lines = re.search(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
    assert lines is not None
    return [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines[0].splitlines()]


def markdown(rows: list[list[str]]) -> str:
    """Lines of a table, the first row its heads."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def sentence(text: str) -> str:
    """A paragraph, or an item of a list, in lines of the pages' width."""
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def percent(low: float, high: float) -> str:
    """A range of shares, such as "62 to 87%"."""
    return f"{100 * low:.0f} to {100 * high:.0f}%"


def coverages(method: str | None) -> list[float]:
    """Coverage at 90% by number of rows, of a method or (None) of all standard GPs, in the study of standard GPs."""
    rows = [row for row in rows_of(STUDIES / "standard_gps.csv") if row["table"] == "all"]
    if method is None:
        return [float(row["coverage 90%"]) for row in rows if row["method"] not in (OURS, TRAIN)]
    return [float(row["coverage 90%"]) for row in rows if row["method"] == method]


def libraries() -> str:
    """How many libraries' standard GPs there are in the study, in words."""
    methods = {row["method"] for row in rows_of(STUDIES / "standard_gps.csv")} - {OURS, TRAIN}
    return {3: "three", 4: "four", 5: "five", 6: "six"}[len(methods)]


def standard_gps_in_short() -> str:
    """The line of evidence in the README."""
    standard = coverages(None)
    train = coverages(TRAIN)
    ours = coverages(OURS)
    return sentence(
        f"- **Coverage.** On 20 to 60 rows of five real tables, nominal 90% intervals of {libraries()} libraries' "
        "standard GPs cover "
        f"{percent(min(standard), max(standard))}. Full conformal prediction with a GP tuned on the same rows covers "
        f"{percent(min(train), max(train))}, and conformal-gp {percent(min(ours), max(ours))} "
        f"(`python -m reproduction.studies.standard_gps`)."
    )


def standard_gps_caption() -> str:
    """What the picture of standard GPs shows."""
    standard = coverages(None)
    ours = coverages(OURS)
    draws = {row["draws"] for row in rows_of(STUDIES / "standard_gps.csv") if row["table"] != "all"}
    return sentence(
        f"*Nominal 90% intervals with 20 to 60 rows: standard GPs of {libraries()} libraries cover "
        f"{percent(min(standard), max(standard))}, "
        f"conformal-gp {percent(min(ours), max(ours))}. Means over {draws.pop()} random draws from each of five real "
        "tables. "
        f"`make demo` draws this picture.*"
    )


def standard_gps_table() -> str:
    """Coverage by method and number of rows, and each score over the default's."""
    rows = [row for row in rows_of(STUDIES / "standard_gps.csv") if row["table"] == "all"]
    numbers = list(dict.fromkeys(row["rows"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    cells = {(row["rows"], row["method"]): row for row in rows}
    found = [["method", *(f"{number} rows" for number in numbers), "its score over ours"]]
    for method in methods:
        own = [cells[number, method] for number in numbers]
        scores = [1 / float(c["score 90%, ours over it"]) for c in own]
        shares = [f"{float(c['coverage 90%']):.1%}" for c in own]
        found.append([method, *shares, f"{min(scores):.2f}\N{EN DASH}{max(scores):.2f}"])
    return markdown(found)


def standard_gps_errors() -> str:
    """Standard errors of that table."""
    rows = [row for row in rows_of(STUDIES / "standard_gps.csv") if row["table"] == "all"]
    errors = [100 * float(row["standard error 90%"]) for row in rows]
    return sentence(f"Standard errors are at most {max(errors):.1f} percentage points.")


def benchmark_sets_in_short() -> str:
    """The paper's benchmark sets, in the README."""
    text = " ".join((STUDIES / "benchmark_sets.md").read_text().split())
    found = re.search(r"narrower in (\d+) of (\d+) cells; .*? is ([\d.]+), the geometric mean ([\d.]+)\.", text)
    assert found is not None
    return sentence(
        "- **Width.** On the paper's four benchmark data sets, intervals are narrower than the narrowest of the "
        "paper's conformal "
        f"methods in {found[1]} of {found[2]} cells. The ratio of widths is {found[4]} in the geometric mean and "
        f"{found[3]} at most "
        f"(`python -m reproduction.studies.benchmark_sets`)."
    )


def kriging_in_short() -> str:
    """Test functions of computer experiments, in the README."""
    rows = rows_of(STUDIES / "simulators.csv")
    kriging = [row for row in rows if row["method"] == "kriging"]
    scores = [float(row["default's score over it"]) for row in kriging]
    theirs = [float(row["coverage 90%"]) for row in kriging]
    ours = [float(row["coverage 90%"]) for row in rows if row["method"] == "default"]
    runs = [int(row["rows"]) for row in kriging]
    return sentence(
        f"- **Simulators.** On nine test functions with {min(runs)} to {max(runs)} runs, the interval score is "
        f"{min(scores):.2f} to {max(scores):.2f} of "
        "that of scikit-learn's kriging (smaller is better). Kriging's 90% intervals cover "
        f"{percent(min(theirs), max(theirs))}, "
        f"ours {percent(min(ours), max(ours))} (`python -m reproduction.studies.simulators`)."
    )


def ratio(what: str, peer: str, after: str) -> str:
    """The ratio of a row of the page of speeds, with two digits."""
    found = [row for row in table_rows(SPEED, after) if row[0] == what and row[2].startswith(peer)]
    return f"{float(found[0][3].split()[-1]):.2g}"


def speed() -> str:
    """Ratios of the page of speeds, for 1,000 and 2,000 rows and two threads."""
    one = "## One likelihood"
    fit = "## A whole fit"
    intervals = "## Intervals for"
    numbers = (1000, 2000)
    short = [f"SE, one length scale, l = {n}, 2 threads" for n in numbers]
    long = [f"SE, eight length scales, l = {n}, 2 threads" for n in numbers]
    whole = [f"SE, one length scale, l = {n}, 0 restarts" for n in numbers]
    threads = [f"l = {n}, 2 threads" for n in numbers]
    cells = [
        ["two threads", "1,000 rows", "2,000 rows"],
        [
            "likelihood with gradient, one length scale: scikit-learn over ours",
            *(ratio(w, "scikit", one) for w in short),
        ],
        ["the same, eight length scales: scikit-learn over ours", *(ratio(w, "scikit", one) for w in long)],
        ["the same, one length scale: ours over the bare LAPACK calls", *(ratio(w, "bare", one) for w in short)],
        ["a whole fit from one start: scikit-learn over ours", *(ratio(w, "scikit", fit) for w in whole)],
        [
            "three-level intervals of 1,000 rows: ours over scikit-learn's `predict(return_std=True)`",
            *(ratio(w, "scikit", intervals) for w in threads),
        ],
    ]
    return markdown(cells)


def speed_in_short() -> str:
    """The README's line on speed."""
    cost = ratio("l = 1000, 2 threads", "scikit", "## Intervals for")
    largest = table_rows(SPEED.with_name("scale.md"))[-1]
    return sentence(
        f"- **Speed.** With fixed hyperparameters, intervals at three levels take {cost} times scikit-learn's "
        f"`predict(return_std=True)` with 1,000 rows (`make bench`). {largest[0]} rows are fitted in {largest[1]} on "
        "two cores "
        f"(`make bench-scale`). Nothing is compiled."
    )


def evidence() -> str:
    """The README's lines of evidence."""
    return "\n".join([standard_gps_in_short(), benchmark_sets_in_short(), kriging_in_short(), speed_in_short()])


def scale() -> str:
    """Time, memory and coverage by number of rows."""
    heads, _, *rows = table_rows(SPEED.with_name("scale.md"))
    kept = [heads.index(name) for name in ("rows", "fit", "predict", "memory", "coverage")]
    found = [[row[i] for i in kept] for row in [heads, *rows]]
    found[0][-1] = "coverage at 90 / 95 / 99%"
    for row in found[1:]:
        row[-1] = " / ".join(f"{float(share):.1%}" for share in row[-1].split(" / "))
    return markdown(found)


def real_tables_in_short() -> str:
    """How many real tables were compared, and of how many rows."""
    rows = {row["table"]: int(row["rows"]) for row in rows_of(REAL.with_suffix(".csv"))}
    return sentence(
        f"`make bench-real` (`python -m benchmarks.real`) runs {len(rows)} real regression tables of "
        f"{min(rows.values()):,} to {max(rows.values()):,} rows, and compares ours with what a user would use instead."
    )


def compared(*after: str) -> str:
    """The methods of some parts of the comparison on real tables; cells have a figure for each part."""
    parts = []
    for text in after:
        heads, _, *rows = table_rows(REAL, text)
        parts.append({row[0]: dict(zip(heads, row, strict=True)) for row in rows})
    found = [["method", "coverage, %", "worst fifth, %", "score, over ours", "ours is ahead on", "seconds"]]
    for method in parts[0]:
        cells = [part[method] for part in parts if method in part]
        shares = [cell["coverage at 80 / 90 / 95%"].split(" / ")[1] for cell in cells]
        worst = [cell["worst fifth, 90%"] for cell in cells]
        scores = [cell["score, 80 / 90 / 95%"].split(" / ")[1] for cell in cells]
        ahead = [cell["default ahead"].replace(" of ", "/") for cell in cells if cell["default ahead"] != "-"]
        joined = [", ".join(figures) for figures in (shares, worst, scores, ahead)]
        found.append([method, *joined, cells[0]["seconds"]])
    return markdown(found)


def real_tables() -> str:
    """What the comparison on real tables found with 2,000 rows and more, on the first and the second list."""
    return compared("## 2,000 rows", "## Twenty more tables: 2,000")


def real_tables_of_few_rows() -> str:
    """What it found with fewer rows."""
    return compared("## Fewer than", "## Twenty more tables: 200")


def standard_gps_of_real_tables() -> str:
    """How standard GPs cover the small tables."""
    heads, _, *rows = table_rows(REAL, "## Fewer than")
    cells = {row[0]: dict(zip(heads, row, strict=True)) for row in rows}
    shares = {name: cells[name]["coverage at 80 / 90 / 95%"].split(" / ")[1] for name in cells}
    return sentence(
        f"- **The standard GP is no alternative if the level matters.** scikit-learn's, plus or minus z standard "
        f"deviations, covers {shares['GP ± z sd']}% at nominal 90%, over {cells['GP ± z sd']['tables']} tables of up "
        f"to 200 training rows. gpyconform, tuned on the training rows, covers {shares['gpyconform']}% "
        f"({cells['gpyconform']['tables']} tables)."
    )


def seeds() -> str:
    """How fits compare with LightGBM's, and how much they depend on the seed."""
    heads, _, *rows = table_rows(REAL.with_name("seeds.md"), "## Counting")
    *tables, mean = [dict(zip(heads, row, strict=True)) for row in rows]
    counts = sorted({int(row["seeds"].split()[0]) for row in tables})
    sizes = [int(row["rows"]) for row in tables]
    by_seed = {row["table"]: float(row["score by seeds"]) for row in tables}
    worst = max(by_seed, key=lambda name: by_seed[name])
    others = max(ratio for name, ratio in by_seed.items() if name != worst)
    return sentence(
        f"`python -m benchmarks.real.seeds --lists counting` fits {len(tables)} tables of {min(sizes):,} to "
        f"{max(sizes):,} training rows with {' or '.join(map(str, counts))} seeds each. Over LightGBM's conformalised "
        f"quantile regression the interval score is {float(mean['score']):.2f} in the mean, the error of the median "
        f"{float(mean['error']):.2f}, and processor time {float(mean['seconds']):.0f}. The greatest score of the seeds "
        f"is {float(mean['score by seeds']):.2f} times the least in the mean (LightGBM: "
        f"{float(mean['LightGBM by seeds']):.2f}). On {worst} it is {by_seed[worst]:.1f} times, elsewhere at most "
        f"{others:.2f} times."
    )


def default_over_holdout() -> str:
    """How the default compares with a split on real tables of few rows, and how much both depend on the seed."""
    path = REAL.with_name("few_rows.md")
    heads, _, *rows = table_rows(path)
    tables = [dict(zip(heads, row, strict=True)) for row in rows]
    ours, split = (
        float(np.median([float(row[name]) for row in tables])) for name in ("seeds, default", "seeds, holdout")
    )
    means = re.findall(r"(\d+ to \d+ rows): ([\d.]+) \((\d+) tables\)", path.read_text())
    scores = " and ".join(f"{1.0 / float(ratio):.2f} with {size} ({count} tables)" for size, ratio, count in means)
    return sentence(
        f'`python -m benchmarks.real.few_rows` compares the default with `tuning="holdout"` on {len(tables)} of these '
        f"tables. The split's score over ours is {scores}, in the geometric mean. The widest interval of ten seeds is "
        f"{ours:.2f} times the narrowest, in the median over test rows and tables; with the split {split:.2f} times."
    )


def step() -> str:
    """The change from the exact to the low-rank GP at 2,000 rows."""
    rows = [
        row for row in table_rows(STUDIES.parents[2] / "benchmarks" / "results" / "step.md")[2:] if row[1] == "2,000"
    ]
    clean = [float(row[2]) for row in rows]
    noisy = [float(cell) for row in rows for cell in row[3:5]]
    return sentence(
        f"On noisy rows the change from exact to low rank is small. On {len(rows)} test functions with 1 and 20% "
        "noise the interval "
        f"score of 2,001 rows is {min(noisy):.2f} to {max(noisy):.2f} times that of 2,000, and {min(clean):.2f} to "
        f"{max(clean):.2f} "
        f"times without noise (`python -m benchmarks.step`)."
    )


def step_without_noise() -> str:
    """The change from the exact to the low-rank GP at 10,000 rows without noise."""
    rows = table_rows(STUDIES.parents[2] / "benchmarks" / "results" / "step.md")
    large = {row[0]: float(row[2]) for row in rows[2:] if row[1] == "10,000"}
    return sentence(
        "Above 10,000 noise-free rows there are 1,536 inducing inputs, and intervals become wider: "
        f"{large['Hartmann 6']:.1f} times on "
        f"Hartmann's function, and {large['Branin']:.0f} times on Branin's, where exact intervals were nearly "
        "degenerate."
    )


def least_rows() -> str:
    """The least number of rows for each level."""
    from conformal_gp.models.tuning_rows import calibration_size

    levels = (0.8, 0.9, 0.95, 0.99, 0.999)
    needed = [round(1 / (1 - level)) - 1 for level in levels]
    holdout = [next(n for n in range(1, 5000) if calibration_size(n) >= least) for least in needed]
    default = [least if least <= 500 else n for least, n in zip(needed, holdout, strict=True)]
    return markdown(
        [
            ["level", *(f"{100 * level:g}%" for level in levels)],
            ["calibration rows, at least", *(f"{n:,}" for n in needed)],
            ["rows, at least, by default", *(f"{n:,}" for n in default)],
            ['rows, at least, with `tuning="holdout"`', *(f"{n:,}" for n in holdout)],
        ]
    )


def beta_deviations() -> str:
    """Standard deviation of the coverage at 90% by the Beta law."""
    numbers = (19, 39, 59, 119, 299, 499, 999)
    deviations = [f"{100 * np.sqrt(0.09 / (n + 2)):.1f}" for n in numbers]
    return markdown(
        [
            ["calibration rows", *map(str, numbers)],
            ["standard deviation of the coverage at 90%, in percentage points", *deviations],
        ]
    )


def variability() -> str:
    """The measured variability over that of the Beta law."""
    text = (STUDIES / "scatter.md").read_text()
    found = re.search(r"over that of the Beta law: .*?holdout ([\d.]+) to ([\d.]+\d)", text)
    assert found is not None
    return sentence(
        "Measured on two test functions, with 80 training sets of 30 to 500 rows each, the standard deviation of "
        "the split is "
        f"{found[1]} to {found[2]} times that of the Beta law "
        f"([table](https://github.com/conformal-gp/conformal-gp/blob/main/reproduction/results/studies/scatter.md), "
        "`python -m reproduction.studies.scatter`). If hyperparameters are averaged over, the variability can be "
        "larger, because "
        f"scores depend on the calibration rows more."
    )


def deviations() -> tuple[str, str, list[float]]:
    """The least and the largest number of rows in the study of few rows, and deviations of coverage from its level."""
    heads, _, *rows = table_rows(STUDIES / "few_rows.md")
    at = [heads.index("90%"), heads.index("95%")]
    return rows[0][0], rows[-1][0], [float(row[i].split()[0]) for row in rows for i in at]


def few_rows() -> str:
    """The largest deviation of mean coverage at 90 and 95% in the study of few rows."""
    least, most, found = deviations()
    return sentence(
        f"For the draws that are made, mean coverage was measured on eight kinds of data with {least} to {most} rows. "
        f"At 90 and 95% it was {min(found):+.1f} to {max(found):+.1f} percentage points from the level "
        f"([table](https://github.com/conformal-gp/conformal-gp/blob/main/reproduction/results/studies/few_rows.md))."
    )


WRITTEN: dict[str, Callable[[], str]] = {
    function.__name__: function
    for function in (
        evidence,
        standard_gps_caption,
        standard_gps_table,
        standard_gps_errors,
        speed,
        scale,
        real_tables_in_short,
        real_tables,
        real_tables_of_few_rows,
        standard_gps_of_real_tables,
        seeds,
        default_over_holdout,
        step,
        step_without_noise,
        least_rows,
        beta_deviations,
        variability,
        few_rows,
    )
}


def update(text: str) -> str:
    """The page with all its figures as the results files have them now.

    A table stands apart from its marks by empty lines, as Markdown needs.
    """

    def fill(match: re.Match[str]) -> str:
        found = WRITTEN[match[2]]()
        gap = "\n" if found.startswith(("|", "- ")) else ""
        return f"{match[1]}{gap}{found}\n{gap}{match[4]}"

    return MARK.sub(fill, text)


def main() -> None:
    """Update all pages."""
    for page in PAGES:
        text = page.read_text()
        if MARK.search(text):
            page.write_text(update(text))


def setup(app: Sphinx) -> dict[str, bool]:
    """Fill in the figures of each page when it is read."""

    def read(_: Sphinx, __: str, source: list[str]) -> None:
        source[0] = update(source[0])

    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    main()
