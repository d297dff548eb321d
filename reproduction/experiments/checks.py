"""How far our numbers agree with the paper's, and whether they support its claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from reproduction.experiments.folds import BENCHMARKS
from reproduction.experiments.paper import PAPER_LEVELS, Row, printed
from reproduction.experiments.results import QUANTILES, TOLERATED_EXCESS, Cell, Results
from reproduction.experiments.tables import TITLES, narrowest

RECALIBRATIONS = ("GPR-RI", "GPR-RB", "GPR-RM", "GPR-RC")
OURS = Row("GPR-CP", "SE", 2.0)
"""The row of GPR-CP that the paper compares with other methods."""
ROUNDING = 0.005
"""Miscoverage is printed to two digits after the point."""


class Agreement(NamedTuple):
    """Counts of cells."""

    finite: int
    """Cells of finite width in the paper."""
    within: dict[int, int]
    """For each percentage, the number of them where our width is that close."""
    infinite: int
    """Cells of infinite width in the paper."""
    infinite_too: int
    """How many of them are infinite in our run."""
    cells: int
    """All cells."""
    miscoverage: int
    """How many of them have our miscoverage within three of its standard errors of the paper's."""


class Check(NamedTuple):
    """A claim, whether it holds, and the evidence."""

    claim: str
    passed: bool
    evidence: str


def agreement(counted: Callable[[str, Row], bool], results: Results) -> Agreement:
    """Count cells that agree with the paper's, among the data sets and rows for which ``counted`` is true."""
    finite, infinite, cells, miscoverage, infinite_too = 0, 0, 0, 0, 0
    within = dict.fromkeys((3, 8, 10, 20), 0)
    for (data_set, row, percent), paper in printed().items():
        if (data_set, row) not in results or not counted(data_set, row):
            continue
        ours = results[data_set, row].cell(percent)
        cells += 1
        miscoverage += abs(ours.miscoverage - paper.miscoverage) <= 3.0 * ours.miscoverage_error + ROUNDING
        if math.isinf(paper.width):
            infinite += 1
            infinite_too += math.isinf(ours.width)
        else:
            finite += 1
            for limit in within:
                within[limit] += abs(ours.width / paper.width - 1.0) <= limit / 100
    return Agreement(finite, within, infinite, infinite_too, cells, miscoverage)


def claims(results: Results) -> list[Check]:
    """The paper's claims that the results allow to check."""
    return [check for claim in _CLAIMS for check in claim(results)]


def _known_hyperparameters(results: Results) -> Iterator[Check]:
    name = "artificial_well_specified"
    rows = _rows(name, results)
    if rows:
        calibrated = [row for row in rows if results[name, row].calibrated()]
        yield Check(
            "With known hyperparameters GPR and GPR-CP are well calibrated",
            len(calibrated) == len(rows),
            f"{len(calibrated)} of {len(rows)} rows",
        )
        yield _gamma_two_is_best(name, results)


def _outliers(results: Results) -> Iterator[Check]:
    name = "artificial_outliers"
    if _rows(name, results):
        cell = results[name, Row("GPR", "SE")].cell(99)
        yield Check(
            "With outliers GPR misses more than twice the nominal share at 99%",
            cell.miscoverage > 2.0,
            f"{_outside(cell)} outside",
        )
        yield _gamma_two_is_best(name, results)


def _gamma_two_is_best(name: str, results: Results) -> Check:
    rows = [row for row in _rows(name, results) if row.method == "GPR-CP"]
    best = [min(rows, key=lambda row: results[name, row].cell(p).width).gamma for p in PAPER_LEVELS]
    return Check(
        f"{TITLES[name]}: gamma 2 gives the narrowest intervals of GPR-CP",
        all(gamma == 2.0 for gamma in best),
        "narrowest at 90, 95, 99%: gamma " + ", ".join(f"{gamma:g}" for gamma in best),
    )


def _gpr_undercovers(results: Results) -> Iterator[Check]:
    for name in _benchmarks(results):
        cells = [results[name, row].cell(99) for row in _rows(name, results) if row.method == "GPR"]
        if cells:
            least = min(cells, key=lambda cell: cell.miscoverage)
            yield Check(
                f"{TITLES[name]}: GPR misses more than 1% at 99%, by two standard errors, with every covariance",
                _significantly_above(least, 1.0),
                f"{_outside(least)} outside or more",
            )


def _recalibrations_undercover(results: Results) -> Iterator[Check]:
    for method in RECALIBRATIONS[:3]:
        row = Row(method, "SE")
        cells = {name: results[name, row].cell(99) for name in _having(row, results)}
        if cells:
            yield Check(
                f"{method} misses more than 1% at 99%, by two standard errors, on every data set",
                all(_significantly_above(cell, 1.0) for cell in cells.values()),
                ", ".join(f"{TITLES[name]} {_outside(cell)}" for name, cell in cells.items()),
            )


def _conformal_holds(results: Results) -> Iterator[Check]:
    for methods in (("GPR-CP",), ("GPR-RC", "RR-CP", "kNNR-CP")):
        keys = [(name, row) for name in _benchmarks(results) for row in _rows(name, results) if row.method in methods]
        if keys:
            failed = [key for key in keys if not results[key].calibrated()]
            yield Check(
                f"{', '.join(methods)}: well calibrated at all levels on every data set",
                not failed,
                f"{len(keys) - len(failed)} of {len(keys)} rows"
                + "".join(f"; not {TITLES[name]} {_spoken(row)}" for name, row in failed),
            )


def _tighter_than_full_conformal(results: Results) -> Iterator[Check]:
    exceptions = {("RR-CP", "auto_mpg", 95), ("kNNR-CP", "servo", 90)}
    for other in (Row("RR-CP", "SE"), Row("kNNR-CP")):
        names = _having(other, results)
        if names:
            wider = [
                (other.method, name, percent)
                for name in names
                for percent in PAPER_LEVELS
                if results[name, OURS].cell(percent).width >= results[name, other].cell(percent).width
            ]
            excepted = [f"{TITLES[name]} {p}%" for method, name, p in exceptions if method == other.method]
            yield Check(
                f"GPR-CP (SE, gamma 2) is narrower than {other.method}, save {', '.join(excepted)}",
                set(wider) <= exceptions,
                "not narrower: " + (", ".join(f"{TITLES[name]} {percent}%" for _, name, percent in wider) or "never"),
            )


def _tighter_than_recalibrations(results: Results) -> Iterator[Check]:
    beaten, compared = [], 0
    for method in RECALIBRATIONS:
        for name in _having(Row(method, "SE"), results):
            for percent in PAPER_LEVELS:
                cell, ours = results[name, Row(method, "SE")].cell(percent), results[name, OURS].cell(percent)
                compared += 1
                far_off = cell.miscoverage > (1.0 + TOLERATED_EXCESS) * (100 - percent)
                if ours.width >= cell.width and not far_off:
                    beaten.append((method, name, percent))
    if compared:
        yield Check(
            "GPR-CP (SE, gamma 2) is narrower than the recalibration methods, or these miss over 30% more than "
            "nominal, save Servo 90%",
            {(name, percent) for _, name, percent in beaten} <= {("servo", 90)},
            f"{compared - len(beaten)} of {compared} comparisons"
            + "".join(f"; not {method} on {TITLES[name]} {percent}%" for method, name, percent in beaten),
        )


def _narrowest_of_all(results: Results) -> Iterator[Check]:
    names = _having(Row("kNNR-CP"), results)
    if names:
        best = {(name, percent): narrowest(name, percent, results) for name in names for percent in PAPER_LEVELS}
        others = {key: row for key, row in best.items() if row is None or row.method != "GPR-CP"}
        yield Check(
            "The narrowest well calibrated intervals are GPR-CP's, save Servo 90%",
            set(others) <= {("servo", 90)},
            "others: "
            + (", ".join(f"{TITLES[name]} {p}% ({_spoken(row)})" for (name, p), row in others.items()) or "none"),
        )


def _normalisation_helps(results: Results) -> Iterator[Check]:
    names = _benchmarks(results)
    if len(names) == len(BENCHMARKS):
        gain = {}
        for name in names:
            plain, normalised = results[name, OURS._replace(gamma=math.inf)], results[name, OURS]
            ratios = [plain.cell(p).width / normalised.cell(p).width for p in PAPER_LEVELS]
            gain[name] = math.exp(np.mean(np.log(ratios)))
        most = sorted(names, key=gain.__getitem__)[-2:]
        yield Check(
            "Normalisation (gamma 2 against infinity) helps most on Boston Housing and CPU Performance",
            set(most) == {"boston", "cpu"},
            "width ratio, geometric mean over levels: "
            + ", ".join(f"{TITLES[name]} {ratio:.3f}" for name, ratio in gain.items()),
        )


def _boxplots(results: Results) -> Iterator[Check]:
    names = [name for name in _benchmarks(results) if results[name, OURS].quantiles is not None]
    for name in ("boston", "cpu"):
        if name in names:
            lower = _quantile(name, math.inf, 0.25, results)
            medians = np.max([_quantile(name, gamma, 0.5, results) for gamma in (1.0, 2.0, 3.0, 4.0, 8.0)], axis=0)
            yield Check(
                f"{TITLES[name]}: three quarters of gamma infinity's intervals are wider than any other gamma's median",
                bool(np.all(lower >= medians)),
                "lower quartile over that median at 90, 95, 99%: "
                + ", ".join(f"{ratio:.3f}" for ratio in lower / medians),
            )
    if "cpu" in names:
        lower = _quantile("cpu", math.inf, 0.1, results)[2]
        upper = max(_quantile("cpu", gamma, 0.9, results)[2] for gamma in (2.0, 3.0, 4.0))
        yield Check(
            "CPU Performance at 99%: the lower decile of gamma infinity is above the upper deciles of gamma 2, 3, 4",
            bool(lower > upper),
            f"{lower:.0f} against {upper:.0f}",
        )


def _likelihood_prefers(results: Results) -> Iterator[Check]:
    preferred = {"boston": "Matern32", "auto_mpg": "RQ", "cpu": "NN", "servo": "Matern52"}
    for name in _benchmarks(results):
        rows = [row for row in _rows(name, results) if not math.isnan(results[name, row].log_likelihood)]
        if not rows:
            continue
        mean = {row.covariance: results[name, row].log_likelihood for row in rows}
        best = max(mean, key=mean.__getitem__)
        yield Check(
            f"{TITLES[name]}: {preferred[name]} has the largest mean likelihood",
            best == preferred[name],
            f"{best} is best; log likelihoods "
            + ", ".join(f"{covariance} {value:.2f}" for covariance, value in mean.items()),
        )


_CLAIMS: tuple[Callable[[Results], Iterator[Check]], ...] = (
    _known_hyperparameters,
    _outliers,
    _gpr_undercovers,
    _recalibrations_undercover,
    _conformal_holds,
    _tighter_than_full_conformal,
    _tighter_than_recalibrations,
    _narrowest_of_all,
    _normalisation_helps,
    _boxplots,
    _likelihood_prefers,
)


def _rows(data_set: str, results: Results) -> list[Row]:
    return [row for name, row in results if name == data_set]


def _having(row: Row, results: Results) -> list[str]:
    return [name for name in BENCHMARKS if (name, row) in results]


def _benchmarks(results: Results) -> list[str]:
    return _having(OURS, results)


def _significantly_above(cell: Cell, percent: float) -> bool:
    slack = 2.0 * cell.miscoverage_error if cell.runs > 1 else 0.0
    return cell.miscoverage - slack > percent


def _outside(cell: Cell) -> str:
    error = "" if math.isnan(cell.miscoverage_error) else f" ± {cell.miscoverage_error:.2f}"
    return f"{cell.miscoverage:.2f}{error}%"


def _quantile(data_set: str, gamma: float, share: float, results: Results) -> np.ndarray:
    quantiles = results[data_set, OURS._replace(gamma=gamma)].quantiles
    assert quantiles is not None  # kept for the squared exponential covariance
    return quantiles[QUANTILES.index(share)]


def _spoken(row: Row | None) -> str:
    if row is None:
        return "no row"
    gamma = "" if row.gamma is None else f"gamma {row.gamma:g}"
    return " ".join(part for part in (row.method, row.covariance, gamma) if part)
