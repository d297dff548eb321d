"""Fuel consumption of 392 cars: error bars of a standard Gaussian process compared with guaranteed ones.

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

from conformal_gp import ConformalGPRegressor
from conformal_gp.datasets import load_auto_mpg
from conformal_gp.evaluation import cross_validate_intervals
from conformal_gp.metrics import mean_width, miscoverage

LEVELS = (0.90, 0.95, 0.99)


def draw(y: np.ndarray, mean: np.ndarray, intervals: dict[str, np.ndarray], level: int, path: Path) -> None:
    """Intervals of one level, cars sorted by predicted value, misses marked."""
    order = np.argsort(mean)
    place, y = np.arange(y.size), y[order]
    figure, axes = plt.subplots(2, 1, figsize=(9, 6.2), sharex=True, sharey=True, layout="constrained")
    for ax, (name, ends) in zip(axes, intervals.items(), strict=True):
        low, high = ends[order, :, level].T
        out = (y < low) | (y > high)
        ax.vlines(place, low, high, color="#9ecae1", linewidth=1.4, label=f"{LEVELS[level]:.0%} interval")
        ax.plot(place[~out], y[~out], ".", color="#333333", markersize=3, label="true value inside")
        ax.plot(place[out], y[out], "x", color="#d95f02", markersize=6, markeredgewidth=1.6, label="true value outside")
        text = f"{name}: {1 - out.mean():.1%} of true values inside {LEVELS[level]:.0%} intervals"
        ax.set_title(text, loc="left", fontsize=11, fontweight="bold")
        ax.set_ylabel("miles per gallon")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, fontsize=9, loc="upper left")
    axes[1].set_xlabel("392 held-out cars, by predicted value")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/auto-mpg-intervals.png"), help="where the picture goes")
    arguments = parser.parse_args()
    X, y = load_auto_mpg(return_X_y=True)
    print(f"Auto-mpg: {y.size} cars, {X.shape[1]} inputs; ten-fold cross-validation", flush=True)
    process = ConformalGPRegressor(tuning="train", n_restarts=0, random_state=0)
    plain = cross_validate_intervals({"same process": process}, X, y, LEVELS, standard_gp="standard GP")
    ours = cross_validate_intervals({"conformal-gp": ConformalGPRegressor(random_state=0)}, X, y, LEVELS)
    mean = plain.prediction["standard GP"]
    intervals = {"standard GP": plain.intervals["standard GP"]} | ours.intervals

    print(f"\n{'':14}{'mean width (miles per gallon)':>30}{'outside, %':>30}")
    print(f"{'level':14}" + 2 * ("".join(f"{level:10.0%}" for level in LEVELS)))
    for name, ends in intervals.items():
        shares = 100 * miscoverage(y, ends)
        print(f"{name:14}" + "".join(f"{w:10.2f}" for w in mean_width(ends)) + "".join(f"{s:10.2f}" for s in shares))
    draw(y, mean, intervals, level=2, path=arguments.out)
    print(f"\nPicture of the 99% intervals: {arguments.out}")


if __name__ == "__main__":
    main()
