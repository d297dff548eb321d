"""Draw the pictures of the pages, light and dark: ``python docs/figures/draw.py``.

The picture of standard GPs on the start page is that of ``examples/standard_gps.py``, which has the same colours.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import train_test_split

from conformal_gp import ConformalGPRegressor
from conformal_gp.datasets import load_auto_mpg
from conformal_gp.plotting import IntervalDisplay

FOLDER = Path(__file__).parent
RESULTS = FOLDER.parents[1] / "benchmarks" / "real" / "results" / "results.csv"
LEAST_SHOWN, MOST_SHOWN = 0.45, 6.0
CONFORMAL, MISS, MIDDLE = "#0072B2", "#D55E00", "#888888"
# Ink and the colour of what remains, on light and dark pages.
COLOURS = {"": ("#222222", CONFORMAL), "-dark": ("#e7eaee", "#56B4E9")}

# The picture of full conformal prediction: eleven points, and a GP with fixed hyperparameters.
X = np.array([0.3, 0.9, 1.5, 2.3, 2.9, 3.4, 4.2, 6.0, 6.7, 7.4, 8.1])
Y = np.sin(X) + np.array([0.1, -0.25, 0.2, 0.05, -0.3, 0.15, -0.1, 0.2, -0.15, 0.3, -0.1])
NEW = 5.1
CANDIDATES = (0.9, -0.3, -1.9)
LEVEL = 0.8
KERNEL = RBF(1.2)
NOISE = 0.06


def theme(ink: str) -> dict:
    """Settings of matplotlib for ink of one colour on a transparent ground, and for files that do not change."""
    coloured = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    return dict.fromkeys(coloured, ink) | {
        "svg.hashsalt": "figures",
        "savefig.transparent": True,
        "axes.facecolor": "none",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "font.size": 11,
    }


def save(figure: plt.Figure, name: str) -> None:
    """Write a picture beside this file, without the date."""
    figure.savefig(FOLDER / name, dpi=150, metadata={"Date": None} if name.endswith(".svg") else None)
    plt.close(figure)


def residuals(candidate: float) -> tuple[np.ndarray, np.ndarray]:
    """What the other eleven points predict for each of the twelve, and its error in standard deviations."""
    x = np.append(X, NEW)
    y = np.append(Y, candidate)
    M = np.linalg.inv(KERNEL(x[:, None]) + NOISE * np.eye(x.size))
    errors = M @ y / np.diag(M)
    return y - errors, errors * np.sqrt(np.diag(M))


def candidate_panel(ax: Axes, number: int, candidate: float, p: float, ink: str, remains: str) -> None:
    """The curve refitted to twelve points, and the errors of all."""
    grid = np.linspace(-0.2, 8.6, 300)
    x = np.append(X, NEW)
    y = np.append(Y, candidate)
    refit = GaussianProcessRegressor(KERNEL, alpha=NOISE, optimizer=None).fit(x[:, None], y)
    predicted, scores = residuals(candidate)
    sizes = np.abs(scores)
    place = int((sizes >= sizes[-1]).sum())
    assert np.isclose(p, place / x.size)  # the package has the same p-value

    colours = [*[MIDDLE] * X.size, remains if p > 1 - LEVEL else MISS]
    ax.plot(grid, refit.predict(grid[:, None]), color=ink, linewidth=1.2)
    ax.vlines(x, y, predicted, color=colours, linewidth=3)
    ax.plot(X, Y, "o", color=ink, markersize=5)
    ax.plot(NEW, candidate, "D", color=colours[-1], markersize=8)
    if p <= 1 - LEVEL:
        ax.plot(NEW, candidate, "x", color=colours[-1], markersize=20, markeredgewidth=1.8)
    verdict = "remains" if p > 1 - LEVEL else "crossed out"
    words = {1: "largest", 2: "2nd largest", 3: "3rd largest"}.get(place, f"{place}th largest")
    ax.set_title(f"{number}. {words} of 12 errors: {verdict}", loc="left", fontsize=11)

    order = np.argsort(-sizes)
    strip = ax.inset_axes((0.02, 0.02, 0.4, 0.2))
    strip.bar(range(x.size), sizes[order], color=[colours[i] for i in order], width=0.75)
    strip.set_title("errors, sorted", fontsize=8, pad=1, loc="left")
    strip.set(xticks=[], yticks=[])
    strip.spines[["left", "bottom"]].set_visible(False)


def full_conformal(ink: str, remains: str, name: str) -> None:
    """Three candidates, and all of them with the interval that remains."""
    model = ConformalGPRegressor(KERNEL, noise_variance=NOISE, tuning="fixed", mean="zero", scale_inputs=False)
    model.fit(X[:, None], Y)
    figure, axes = plt.subplots(2, 2, figsize=(7, 6), sharey=True, layout="constrained")
    for number, (ax, candidate) in enumerate(zip(axes.flat, CANDIDATES, strict=False), 1):
        p = model.predict_p([[NEW]], [candidate])
        candidate_panel(ax, number, candidate, float(p[0]), ink, remains)
        ax.set_xticks([])
        ax.set_xlabel("input")
    for ax in axes[:, 0]:
        ax.set_ylabel("target")

    values = np.linspace(-3.2, 1.9, 1200)
    p = model.predict_p(np.full((values.size, 1), NEW), values)
    low, high = model.predict_interval([[NEW]], LEVEL)[0]
    last = axes[1, 1]
    last.plot(p, values, color=ink, linewidth=1.2)
    last.axvline(1 - LEVEL, color=MIDDLE, linestyle="--", linewidth=1)
    last.vlines(-0.04, low, high, color=remains, linewidth=6)
    last.axhspan(low, high, color=remains, alpha=0.15, linewidth=0)
    last.set_title(f"4. All candidates: the {LEVEL:.0%} interval", loc="left", fontsize=11)
    last.set_xlabel("share of errors at least as large (p-value)")
    last.set(xlim=(-0.06, 1.03), ylim=(-3.2, 1.9))
    last.annotate("20%", (1 - LEVEL, 1.75), xytext=(4, 0), textcoords="offset points", color=MIDDLE, va="top")
    save(figure, name)


def card(name: str) -> tuple[plt.Figure, Axes]:
    """A small picture for the start page, in colours that suit light and dark pages."""
    figure, ax = plt.subplots(figsize=(3.2, 1.5))
    ax.set_axis_off()
    figure.subplots_adjust(0.06, 0.1, 0.94, 0.9)
    return figure, ax


def cards() -> None:
    """Pictures of the cards on the start page."""
    rng = np.random.default_rng(0)
    place = np.arange(24)
    centre = np.sort(rng.normal(size=24))
    half = 0.6 + 0.25 * rng.random(24)
    truth = centre + rng.normal(scale=0.35, size=24)
    truth[17] = centre[17] + 1.3

    figure, ax = card("start")
    inside = np.abs(truth - centre) <= half
    ax.vlines(place, centre - half, centre + half, color=CONFORMAL, linewidth=3, alpha=0.6)
    ax.plot(place[inside], truth[inside], "o", color=MIDDLE, markersize=3)
    ax.plot(place[~inside], truth[~inside], "x", color=MISS, markersize=7, markeredgewidth=2)
    save(figure, "card-start.svg")

    figure, ax = card("full-conformal")
    _, scores = residuals(CANDIDATES[0])
    sizes = np.abs(scores)
    order = np.argsort(-sizes)
    ax.bar(range(12), sizes[order], color=[MISS if i == 11 else MIDDLE for i in order], width=0.7)
    save(figure, "card-full-conformal.svg")

    figure, ax = card("guarantees")
    levels = np.linspace(0.5, 0.99, 12)
    ax.plot([0.48, 1], [0.48, 1], color=MIDDLE, linewidth=1)
    ax.plot(levels, levels + 0.012 * rng.normal(size=12), "o-", color=CONFORMAL, markersize=4)
    ax.plot(levels, levels - 0.35 * (levels - 0.45), "s-", color="#E69F00", markersize=4)
    save(figure, "card-guarantees.svg")

    figure, ax = card("command")
    ax.text(0, 0.75, "conformal-gp predict", family="monospace", color=MIDDLE)
    ax.text(0, 0.45, "  cars.csv new.csv", family="monospace", color=MIDDLE)
    ax.text(0, 0.08, "27.5   24.25 to 31.18", family="monospace", color=CONFORMAL, weight="bold")
    ax.set(xlim=(0, 1), ylim=(0, 1))
    save(figure, "card-command.svg")

    figure, ax = card("gallery")
    x = np.linspace(0, 7, 200)
    noise = 0.15 + 0.08 * x
    for factor, alpha in ((2.2, 0.2), (1.3, 0.3), (0.7, 0.4)):
        ax.fill_between(
            x, np.sin(x) - factor * noise, np.sin(x) + factor * noise, color=CONFORMAL, alpha=alpha, linewidth=0
        )
    inputs = rng.uniform(0, 7, 40)
    ax.plot(inputs, np.sin(inputs) + (0.15 + 0.08 * inputs) * rng.normal(size=40), "o", color=MIDDLE, markersize=3)
    save(figure, "card-gallery.svg")

    figure, ax = card("troubleshooting")
    half = np.r_[0.3 + 0.2 * rng.random(6), 1.5, 0.3 + 0.2 * rng.random(5)]
    ax.vlines(range(12), -half, half, color=[MISS if i == 6 else CONFORMAL for i in range(12)], linewidth=4, alpha=0.7)
    ax.text(6.5, 1.0, "why?", color=MISS, fontsize=13)
    save(figure, "card-troubleshooting.svg")


def quick_start(model: ConformalGPRegressor, X: Any, y: np.ndarray, name: str) -> None:
    """The picture that the quick start makes."""
    plt.rcParams["axes.facecolor"] = "black" if "dark" in name else "white"  # the display's colours depend on it
    figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
    IntervalDisplay.from_estimator(model, X, y, confidence_level=0.9, target_name="miles per gallon", ax=ax)
    save(figure, name)


def difficulty(models: dict[str, ConformalGPRegressor], rows: np.ndarray, ink: str, band: str, name: str) -> None:
    """Bands of one width, and of widths that follow the noise."""
    figure, axes = plt.subplots(1, 2, figsize=(7, 3), sharey=True, layout="constrained")
    grid = np.linspace(-2, 2, 200)[:, None]
    for ax, (title, model) in zip(axes, models.items(), strict=True):
        low, high = model.predict_interval(grid, 0.9).T
        ax.plot(*rows, ".", color=MIDDLE, markersize=2)
        ax.fill_between(grid[:, 0], low, high, color=band, alpha=0.3, linewidth=0)
        ax.plot(grid[:, 0], model.predict(grid), color=ink, linewidth=1)
        ax.set_title(title, loc="left", fontsize=11)
        ax.set_xlabel("input")
    axes[0].set_ylabel("target")
    save(figure, name)


def noisy_rows(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose noise grows with the input, as on the page on adaptive intervals."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, number)
    return x, np.sin(2 * x) + 0.3 * np.exp(0.8 * x) * rng.standard_normal(number)


def real_tables(ink: str, ours: str, name: str) -> None:
    """Scores of the peers over ours on real tables: a dot for each table, a bar at the geometric mean."""
    with RESULTS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    scores = {(row["table"], row["method"]): float(row["score 90%"]) for row in rows}
    ratios: dict[str, list[float]] = {}
    for (table, method), score in scores.items():
        if not method.startswith("conformal-gp"):
            ratios.setdefault(method, []).append(score / scores[table, "conformal-gp"])
    means = {method: float(np.exp(np.mean(np.log(values)))) for method, values in ratios.items()}
    order = sorted(means, key=lambda method: -means[method])

    figure, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
    jitter = np.random.default_rng(0)
    for place, method in enumerate(order):
        shown = np.clip(ratios[method], LEAST_SHOWN, MOST_SHOWN)
        ax.plot(shown, place + jitter.uniform(-0.2, 0.2, shown.size), "o", color=MIDDLE, markersize=3.5, alpha=0.6)
        ax.plot(means[method], place, "|", color=ink, markersize=18, markeredgewidth=3)
    ax.axvline(1.0, color=ours, linewidth=2)
    ax.set_xscale("log")
    ticks = (0.5, 0.7, 1, 1.5, 2, 3, 5)
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_xticks([], minor=True)
    ax.set_yticks(range(len(order)), [f"{method} ({len(ratios[method])})" for method in order])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel("interval score over conformal-gp's (blue line)")
    ax.set_title("Each dot is a table, bars are geometric means", loc="left", fontsize=11)
    save(figure, name)


def main() -> None:
    """Draw all of them."""
    rows = noisy_rows(800)
    one_width = ConformalGPRegressor(difficulty=None, random_state=0).fit(rows[0][:, None], rows[1])
    adapted = ConformalGPRegressor(random_state=0).fit(rows[0][:, None], rows[1])
    models = {"difficulty=None": one_width, 'difficulty="auto"': adapted}
    cars = train_test_split(*load_auto_mpg(return_X_y=True, as_frame=True), train_size=300, random_state=0)
    model = ConformalGPRegressor(random_state=0).fit(cars[0], cars[2])
    for suffix, (ink, remains) in COLOURS.items():
        with plt.rc_context(theme(ink)):
            full_conformal(ink, remains, f"full-conformal{suffix}.svg")
            real_tables(ink, remains, f"real-tables{suffix}.png")
            difficulty(models, rows, ink, remains, f"difficulty{suffix}.png")
            quick_start(model, cars[1], cars[3], f"intervals{suffix}.png")
    with plt.rc_context(theme(MIDDLE)):
        cards()


if __name__ == "__main__":
    main()
