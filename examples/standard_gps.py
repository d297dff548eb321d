"""
Error bars of standard GPs with few rows
========================================

A Gaussian process that is fitted to a few dozen rows by maximum likelihood makes the errors of these rows too small,
and its error bars too short. This script draws what several libraries and conformal-gp cover on real tables (results of
``python -m reproduction.studies.standard_gps``), and repeats a small part of it. It is what ``make demo`` runs.
"""

# %%
# The picture is drawn from the results file: a mark for each library and number of rows.

import argparse
import csv
import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.preprocessing import StandardScaler

from conformal_gp import ConformalGPRegressor
from conformal_gp.metrics import coverage

NAME = Path("reproduction/results/studies/standard_gps.csv")
HERE = Path(globals().get("__file__", ".")).resolve()  # the gallery runs scripts in their folder
RESULTS = next(folder / NAME for folder in HERE.parents if (folder / NAME).exists())
STANDARD, TRAIN = "#E69F00", "#888888"
LIGHT, DARK = ("#222222", "#0072B2"), ("#e7eaee", "#56B4E9")  # ink and conformal-gp, on light and dark pages
MARKERS = {"scikit-learn": "o", "GPyTorch": "s", "BoTorch": "^", "GPy": "v"}


def draw(ink, conformal):
    """Coverage of nominal 90% intervals by number of rows, for each method."""
    with RESULTS.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["table"] == "all"]
    numbers = sorted({int(row["rows"]) for row in rows})
    figure, ax = plt.subplots(figsize=(5.8, 4.4), layout="constrained")
    methods = list(dict.fromkeys(row["method"] for row in rows))
    for method in methods:
        found = {int(row["rows"]): 100 * float(row["coverage 90%"]) for row in rows if row["method"] == method}
        values = [found[number] for number in numbers]
        if method in MARKERS:
            style = {"marker": MARKERS[method], "color": STANDARD, "linewidth": 1, "label": f"standard GP: {method}"}
        elif method == "conformal-gp":
            style = {"marker": "o", "color": conformal, "linewidth": 3, "markersize": 9, "label": "conformal-gp"}
        else:
            style = {"marker": "X", "color": TRAIN, "linewidth": 1, "linestyle": ":", "label": method}
        ax.plot(range(len(numbers)), values, **style)
    ax.axhline(90, color=ink, linestyle="--", linewidth=1)
    ax.annotate("nominal", (1, 90), (3, 0), ("axes fraction", "data"), "offset points", color=ink, va="center")
    ax.set_xticks(range(len(numbers)), [f"{number} rows" for number in numbers])
    ax.set_ylabel("true values covered, %")
    ax.set_ylim(50, 100)
    ax.set_title("Coverage of nominal 90% intervals on five real tables", loc="left", fontsize=11)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=9, loc="lower right")
    return figure


figure = draw(*LIGHT)

# %%
# A small part of it, computed now: 30 of 442 patients drawn at random ten times, ten inputs, and 100 other patients to
# predict. The standard GP is scikit-learn's, with a length scale for each input.

X, y = load_diabetes(return_X_y=True)
kernel = ConstantKernel() * Matern(np.ones(X.shape[1]), (1e-2, 1e4), nu=2.5) + WhiteKernel()
shares = {"standard GP (scikit-learn)": [], "conformal-gp": []}
for seed in range(10):
    order = np.random.default_rng(seed).permutation(y.size)
    train = order[:30]
    test = order[30:130]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of length scales at their bounds, and of extrapolation
        scaler = StandardScaler().fit(X[train])
        standard = GaussianProcessRegressor(kernel, normalize_y=True).fit(scaler.transform(X[train]), y[train])
        mean, std = standard.predict(scaler.transform(X[test]), return_std=True)
        conformal = ConformalGPRegressor().fit(X[train], y[train]).predict_interval(X[test], 0.9)
    gaussian = np.column_stack([mean - 1.645 * std, mean + 1.645 * std])
    shares["standard GP (scikit-learn)"].append(coverage(y[test], gaussian))
    shares["conformal-gp"].append(coverage(y[test], conformal))

for name, values in shares.items():
    error = np.std(values) / np.sqrt(len(values))
    print(f"{name:27} covers {np.mean(values):.1%} ± {error:.1%} at nominal 90%, 30 rows")

# %%
# As a script it saves the picture, for light and dark pages.

if __name__ == "__main__" and "sphinx_gallery" not in sys.modules:
    parser = argparse.ArgumentParser(description="Coverage of standard GPs with few rows: a picture")
    parser.add_argument("--out", type=Path, default=Path("build/standard-gps.svg"), help="where the picture goes")
    out = parser.parse_args().out
    out.parent.mkdir(parents=True, exist_ok=True)
    for path, (ink, conformal) in ((out, LIGHT), (out.with_stem(f"{out.stem}-dark"), DARK)):
        coloured = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
        with plt.rc_context(dict.fromkeys(coloured, ink) | {"svg.hashsalt": "standard-gps", "axes.facecolor": "none"}):
            draw(ink, conformal).savefig(path, transparent=True, metadata={"Date": None})
    print(f"Picture: {out}")

plt.show()
