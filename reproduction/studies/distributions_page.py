"""The page of the study of distributions: tables and a picture."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

COMMAND = "python -m reproduction.studies.distributions"
LEVELS = ("90%", "95%")
NAMES = {
    "skewed": "skewed (exponential)",
    "heavy": "heavy tails (Student's t, 3)",
    "varying": "varying with an input",
}


def rows_of(results: list[dict]) -> list[dict]:
    """A row for each kind of data: coverage of tails with standard errors, and scores over those of others."""
    found = []
    for kind, n_rows in dict.fromkeys((result["kind"], result["rows"]) for result in results):
        own = [result for result in results if (result["kind"], result["rows"]) == (kind, n_rows)]
        row: dict = {"kind": kind, "rows": n_rows, "data sets": len(own), "test rows": sum(r["test rows"] for r in own)}
        for method, side, i in ((m, s, i) for m in ("ours", "plain") for s in ("lower", "upper") for i in (0, 1)):
            covered = np.array([result["methods"][method][side][i] for result in own])
            row[f"{method} {side} {LEVELS[i]}"] = float(covered.mean())
            row[f"{method} {side} {LEVELS[i]} se"] = float(covered.std(ddof=1) / np.sqrt(covered.size))
        for i, level in enumerate(LEVELS):
            row[f"crepes infinite {level}"] = float(
                np.mean([result["methods"]["crepes"]["infinite"][i] for result in own])
            )
        scores = {method: np.array([r["methods"][method]["crps"] for r in own]) for method in own[0]["methods"]}
        row["crps"] = float(scores["ours"].mean())
        for other in ("crepes", "plain"):
            row[f"crps over {other}"], row[f"crps over {other} se"] = _ratio(scores["ours"], scores[other])
        found.append(row)
    return found


def _ratio(ours: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """Ratio of means over data sets and its jackknife standard error."""
    n = ours.size
    left_out = (ours.sum() - ours) / (others.sum() - others)
    error = np.sqrt((n - 1) / n * np.sum((left_out - left_out.mean()) ** 2))
    return float(ours.mean() / others.mean()), float(error)


def too_low(rows: list[dict], method: str) -> list[tuple[dict, str]]:
    """Tails whose coverage is below the level by more than three standard errors, with the kind of data."""
    tails = [f"{method} {side} {level}" for side in ("lower", "upper") for level in LEVELS]
    return [(r, t) for r in rows for t in tails if r[t] < float(t.split()[-1].strip("%")) / 100 - 3.0 * r[f"{t} se"]]


def write_page(results: list[dict], out: Path) -> None:
    """Write table, page and picture."""
    rows = rows_of(results)
    out.mkdir(parents=True, exist_ok=True)
    with (out / "distributions.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)
    (out / "distributions.md").write_text(_markdown(rows))
    _draw([row for row in rows if row["kind"] in NAMES], out / "distributions.svg")


def _markdown(rows: list[dict]) -> str:
    cells, sets = [r for r in rows if r["kind"] in NAMES], [r for r in rows if r["kind"] not in NAMES]
    tails = 4 * len(cells)
    lines = [
        "# Distributions where noise is not normal",
        "",
        f"`{COMMAND} --data-sets {cells[0]['data sets']} --folds {sets[0]['data sets']}`: so many data sets of each",
        "kind, 25 test rows each, two inputs and a smooth truth, noise of half the truth's standard deviation. *Ours*",
        "is `predict_distribution` of the default. *Plain* is the Gaussian process with maximum likelihood on all rows",
        "and its normal quantiles. *crepes* is its split conformal predictive system on the same process with maximum",
        "likelihood on half of the rows; the other half calibrates, normalised by the process's standard deviations.",
        "Standard errors are over data sets.",
        "",
        "## Each tail on its own",
        "",
        "Share of labels at least the lower, and at most the upper bound, in percent. Bold: below the level by more",
        "than three standard errors.",
        "",
        "| noise | rows | ours: lower 90 | upper 90 | lower 95 | upper 95 "
        "| plain: lower 90 | upper 90 | lower 95 | upper 95 |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    low = {method: too_low(cells, method) for method in ("ours", "plain")}
    for row in cells:
        shares = [
            _share(row, f"{method} {side} {level}", (row, f"{method} {side} {level}") in low[method])
            for method in ("ours", "plain")
            for level in LEVELS
            for side in ("lower", "upper")
        ]
        lines.append(f"| {NAMES[row['kind']]} | {row['rows']} | " + " | ".join(shares) + " |")
    lines += [
        "",
        f"Too low by more than three standard errors: {len(low['ours'])} of {tails} tails of ours, "
        f"{len(low['plain'])} of {tails} of the plain process.",
        "",
        "![Coverage of tails by noise and number of rows](distributions.svg)",
        "",
        "*Bounds of level 95%; bars are three standard errors either way.*",
        "",
        "## Scores",
        "",
        "Mean CRPS of ours over that of the others, with standard errors of the ratio; less than 1 is better.",
        f"Benchmark data sets are {sets[0]['data sets']} folds of ten-fold cross-validation.",
        "",
        "| data | rows | over crepes | over plain |",
        "|---|---|---|---|",
    ]
    for row in rows:
        ratios = [
            f"{row[f'crps over {other}']:.3f} ± {row[f'crps over {other} se']:.3f}" for other in ("crepes", "plain")
        ]
        lines.append(f"| {NAMES.get(row['kind'], row['kind'])} | {row['rows']} | " + " | ".join(ratios) + " |")
    for other in ("crepes", "plain"):
        ratios = np.array([row[f"crps over {other}"] for row in rows])
        lines += [
            "",
            f"Over {other}: {ratios.min():.2f} to {ratios.max():.2f}, "
            f"at most 1 in {np.sum(ratios <= 1.0)} of {ratios.size}.",
        ]
    infinite = sorted({str(row["rows"]) for row in cells if row["crepes infinite 95%"] > 0.0})
    if infinite:
        lines += [
            "",
            f"crepes' upper bounds at 95% are infinite with {', '.join(infinite)} rows, of which half calibrate; ours "
            "need 19.",
        ]
    return "\n".join([*lines, ""])


def _share(row: dict, tail: str, is_low: bool) -> str:
    text = f"{100 * row[tail]:.1f} ± {100 * row[f'{tail} se']:.1f}"
    return f"**{text}**" if is_low else text


def _draw(rows: list[dict], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "distributions"
    from matplotlib import pyplot as plt

    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    numbers = sorted({row["rows"] for row in rows})
    figure, panels = plt.subplots(1, len(kinds), figsize=(10, 3.6), sharey=True, layout="constrained")
    for axes, kind in zip(panels, kinds, strict=True):
        for method, colour in (("ours", "#0072b2"), ("plain", "#d55e00")):
            for side, marker, shift in (("lower", "v", -0.1), ("upper", "^", 0.1)):
                own = [row for row in rows if row["kind"] == kind]
                x = [numbers.index(row["rows"]) + shift + (0.04 if method == "plain" else -0.04) for row in own]
                tail = f"{method} {side} 95%"
                error = [300 * row[f"{tail} se"] for row in own]
                label = f"{method}, {side} bound"
                axes.errorbar(x, [100 * row[tail] for row in own], error, fmt=marker, color=colour, label=label, ms=5)
        axes.axhline(95.0, color="black", linewidth=0.8)
        axes.set_xticks(range(len(numbers)), [str(n) for n in numbers])
        axes.set_title(NAMES[kind], fontsize=10)
        axes.set_xlabel("training rows")
    panels[0].set_ylabel("labels within the bound, percent")
    panels[-1].legend(fontsize=7, loc="lower right")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
