"""Fuel consumption of 392 cars: plain Gaussian process intervals beside conformal ones.

Ten-fold cross-validation on the bundled Auto-mpg data: every car is predicted from the other nine folds. Prints mean
width and miscoverage at three levels and draws the 99% intervals of all held-out cars.

    python examples/auto_mpg.py [--out PICTURE]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm
from sklearn.model_selection import KFold

from conformal_gp import ConformalGPRegressor
from conformal_gp.datasets import load_auto_mpg

LEVELS = (0.90, 0.95, 0.99)


def cross_validated_intervals(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Held-out means, and intervals (n, 2, levels) of both methods."""
    mean = np.empty(y.size)
    intervals = {name: np.empty((y.size, 2, len(LEVELS))) for name in ("GPR", "GPR-CP")}
    z = norm.ppf(0.5 + np.array(LEVELS) / 2)
    for fold, (train, test) in enumerate(KFold(10, shuffle=True, random_state=0).split(X), start=1):
        plain = ConformalGPRegressor(kernel="se", tuning="train", random_state=0).fit(X[train], y[train])
        mean[test], std = plain.predict(X[test], return_std=True)
        intervals["GPR"][test] = mean[test, None, None] + np.array([-1, 1])[:, None] * std[:, None, None] * z
        model = ConformalGPRegressor(kernel="se").fit(X[train], y[train])
        intervals["GPR-CP"][test] = model.predict_interval(X[test], LEVELS)
        print(f"  fold {fold:2d} of 10: fitted to {train.size} cars, predicted {test.size}", flush=True)
    print(f"  {model.guarantee_}")
    return mean, intervals


def missed(y: np.ndarray, intervals: np.ndarray) -> np.ndarray:
    """Whether each label lies outside its closed interval, for each level."""
    return (y[:, None] < intervals[:, 0]) | (y[:, None] > intervals[:, 1])


def print_table(y: np.ndarray, intervals: dict[str, np.ndarray]) -> None:
    """Mean width and miscoverage, a row for each method."""
    print(f"\n{'':8}  {'mean width (miles per gallon)':^30}  {'labels outside, %':^30}")
    print(f"{'':8}  " + "  ".join(" ".join(f"{level:>9.0%}" for level in LEVELS) + " " for _ in range(2)))
    for name, ends in intervals.items():
        widths = (ends[:, 1] - ends[:, 0]).mean(axis=0)
        shares = 100 * missed(y, ends).mean(axis=0)
        print(f"{name:8}  " + " ".join(f"{w:9.2f}" for w in widths) + "   " + " ".join(f"{s:9.2f}" for s in shares))
    print(f"{'nominal':8}  {'':32}" + " ".join(f"{100 * (1 - level):9.2f}" for level in LEVELS) + "\n")


def draw(y: np.ndarray, mean: np.ndarray, intervals: dict[str, np.ndarray], level: int, path: Path) -> None:
    """Intervals of one level, cars sorted by predicted value, misses marked."""
    order = np.argsort(mean)
    place = np.arange(y.size)
    figure, axes = plt.subplots(2, 1, figsize=(9, 6), sharex=True, sharey=True, layout="constrained")
    for ax, (name, ends) in zip(axes, intervals.items(), strict=True):
        low, high = ends[order, 0, level], ends[order, 1, level]
        out = missed(y, ends)[order, level]
        ax.vlines(place, low, high, color="#9ecae1", linewidth=1.4, label=f"{LEVELS[level]:.0%} interval")
        ax.plot(place[~out], y[order][~out], ".", color="#333333", markersize=3, label="label inside")
        ax.plot(place[out], y[order][out], "x", color="#d95f02", markersize=5, label="label outside")
        width = (high - low).mean()
        ax.set_title(f"{name}: {out.mean():.1%} outside, mean width {width:.2f}", loc="left", fontsize=10)
        ax.set_ylabel("miles per gallon")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, fontsize=8, loc="upper left")
    axes[1].set_xlabel("held-out cars, by predicted value")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/auto-mpg-intervals.png"), help="where the picture goes")
    arguments = parser.parse_args()
    X, y = load_auto_mpg(return_X_y=True)
    print(f"Auto-mpg: {y.size} cars, {X.shape[1]} inputs; ten-fold cross-validation", flush=True)
    mean, intervals = cross_validated_intervals(X, y)
    print_table(y, intervals)
    draw(y, mean, intervals, level=2, path=arguments.out)
    print(f"Picture of the 99% intervals: {arguments.out}")


if __name__ == "__main__":
    main()
