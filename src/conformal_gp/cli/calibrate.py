"""``conformal-gp calibrate``: the unknown input of new rows from their signal, by a curve of standards."""

from __future__ import annotations

from argparse import Namespace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from conformal_gp.arrays import Array
from conformal_gp.cli.output import Output, bounds_of, outward, rounded, row_documents, write_table
from conformal_gp.cli.plot import check_picture, plots, save_picture
from conformal_gp.cli.rows import Training, default_levels, read_new, read_training
from conformal_gp.cli.tables import did_you_mean, listed
from conformal_gp.files import check_output
from conformal_gp.formatting import percent

DILUTED = 30.0  # standards that span so large a factor are serial dilutions
MOST_TICKS = 12
MOST_DRAWN = 20


class Curve(NamedTuple):
    """Standards, and the scale on which the curve is fitted to them."""

    training: Training
    target: str
    bounds: tuple[float, float]
    """Least and greatest value of the target."""
    log: bool
    shift: float = 0.0
    """What is added before the logarithm, where a standard is 0: the least standard that is not."""

    def scaled(self, values: Any) -> Any:
        """Values of the target as the curve has them."""
        if self.log:
            return np.log(np.asarray(values, dtype=np.float64) + self.shift)
        return values

    def unscaled(self, values: Array) -> Array:
        """The opposite; within bounds, which a logarithm rounds."""
        if not self.log:
            return values
        found = np.exp(values) - self.shift
        for bound in self.bounds:
            found = np.where(np.isclose(found, bound, rtol=1e-9, atol=0.0), bound, found)
        return np.clip(found, *self.bounds)


def calibrate(options: Namespace) -> None:
    """Find the target of rows from their signal."""
    output = Output(quiet=options.quiet)
    target = options.target
    signal = options.signal
    train, new = options.tables
    levels = sorted({*options.confidence})
    if options.picture is not None:
        check_picture(options.picture, "--picture")
    check_output(options.out, [train, new])
    curve = _curve(read_training(train, signal, options, output), output)
    columns = curve.training.columns
    table, rows = read_new(new, columns, options, output, unknown=target)
    known = columns.targets(table)["y"][rows.X.index]
    present = known.notna().to_numpy()
    if not present.any():
        raise ValueError(f"{table.name} has no row with a value of {signal}.")
    X = rows.X[present]
    signals = known[present].to_numpy()
    y_variance = rows.y_variance
    if y_variance is not None:
        y_variance = y_variance[present]
    model = curve.training.fit(output)
    levels = levels or default_levels(model, output)
    with output.working(f"finding {target} of {signals.size} rows"):
        found, sets = _found(model, curve, signals, X, y_variance, levels)
    if options.picture is not None:
        figure = _drawn(model, curve, signal, levels[-1], X, signals, sets[-1])
        save_picture(figure, options.picture, output)
    ends = [name for level in levels for name in bounds_of(level)]
    shown = rounded(found)
    shown[ends] = shown[ends].clip(*curve.bounds)  # which rounding would pass
    shown = shown.rename(columns={"mean": "estimate"})
    for level, parts in zip(levels, sets, strict=True):
        shown[f"set_{percent(level)[:-1]}"] = [_words(pieces, curve.bounds) for pieces in parts]
    said = f"If a new row is exchangeable with the standards, a set contains its {target} with at least its level."
    if options.out != "-" or not options.json:
        write_table(table, shown, f"{target}_", options.out)
        output.info(f"{target} of {len(X)} rows found from {signal}, by {curve.training.y.size} standards.", said)
    if options.json:
        output.document(
            {
                "target": target,
                "signal": signal,
                "levels": [*map(float, levels)],
                "bounds": curve.bounds,
                "training_rows": curve.training.y.size,
                "guarantee": f"{model.guarantee_} {said}",
                "rows": row_documents(shown, columns.names_of(table, shown.index)),
            }
        )


def _curve(training: Training, output: Output) -> Curve:
    """Check the column to find, and put it on its scale."""
    target = training.options.target
    log = training.options.log
    numbers = [name for name in training.X if training.columns.categories[name] is None]
    if target not in numbers:
        known = f"one of {listed(numbers)}; got '{target}'.{did_you_mean(target, numbers)}"
        raise ValueError(f"--target must be a column of numbers in TRAIN, {known}")
    known_values = training.X[target]
    least = float(known_values.min())
    most = float(known_values.max())
    if least == most:
        raise ValueError(f"{target} must differ between standards; all have {least:g}.")
    lowest = float(known_values[known_values > 0.0].min())
    if log and least < 0.0:
        raise ValueError(f"--log takes values of {target} of at least 0; TRAIN has {least:g}.")
    if not log and least >= 0.0 and most > DILUTED * lowest:
        output.notice(f"values of {target} span a factor of {most / lowest:.2g}: --log may suit them better")
    shift = 0.0
    if log and least == 0.0:
        shift = lowest
        output.notice(f"a standard is 0: the curve is fitted over the logarithm of {target} + {shift:g}")
    curve = Curve(training, target, (least, most), log, shift)
    X = training.X.assign(**{target: curve.scaled(known_values)})
    return curve._replace(training=training._replace(X=X))


def _found(
    model: Any, curve: Curve, signals: Array, X: pd.DataFrame, y_variance: Array | None, levels: list[Fraction]
) -> tuple[pd.DataFrame, list[list[Array]]]:
    """Find estimates and hulls of the unknown values, and their sets by level; empty sets have no hull."""
    found = pd.DataFrame(index=X.index)
    sets = []
    for level in levels:
        pieces, estimate = model.predict_input(
            signals, X, curve.target, curve.scaled(curve.bounds), float(level), True, y_variance
        )
        sets.append([curve.unscaled(one) for one in pieces])
        found["mean"] = curve.unscaled(estimate)
        hulls = [[one[0, 0], one[-1, 1]] if len(one) else [np.nan, np.nan] for one in sets[-1]]
        found[bounds_of(level)] = np.array(hulls).reshape(-1, 2)
    return found, sets


def _words(pieces: Array, bounds: tuple[float, float]) -> str:
    """Describe a set that is not one interval inside the range of the standards; else nothing."""
    if not len(pieces):
        return "no value agrees"
    said = []
    if len(pieces) > 1:
        ends = [outward(low, high) for low, high in pieces]
        said.append(" or ".join(f"{low:g} to {high:g}" for low, high in ends))
    if pieces[0, 0] <= bounds[0]:
        said.append("reaches the lowest standard")
    if pieces[-1, 1] >= bounds[1]:
        said.append("reaches the highest standard")
    return "; ".join(said)


def _drawn(
    model: Any, curve: Curve, signal: str, level: Fraction, X: pd.DataFrame, signals: Array, sets: list[Array]
) -> Any:
    """Draw the curve with its band, and the first unknowns: their signals, and their sets along the axis below.

    The curve is that of the first unknown's other inputs; unknowns that have others are on another curve, and fade.
    """
    known = curve.training.X
    first = X.iloc[[0]].assign(**{curve.target: known[curve.target].iloc[0]})
    display = plots().PredictionBandDisplay.from_estimator(
        model,
        pd.concat([known, first], ignore_index=True),
        np.append(curve.training.y, np.nan),
        feature=curve.target,
        row=len(known),
        confidence_level=float(level),
        target_name=signal,
    )
    ax = display.ax_
    if curve.log:
        ticks = _apart(np.unique(known[curve.target]))
        ax.set_xticks(ticks, [f"{value:.3g}" for value in curve.unscaled(ticks)])
        ax.set_xlabel(ax.get_xlabel().replace(curve.target, f"{curve.target} (logarithmic)", 1))
    bottom = ax.get_ylim()[0]
    others = X.drop(columns=curve.target)
    on_curve = (others == others.iloc[0]).all(axis=1)
    alphas = np.where(on_curve, 1.0, 0.35)
    for value, pieces, alpha in list(zip(signals, sets, alphas, strict=True))[:MOST_DRAWN]:
        style = {"color": "tab:red", "alpha": alpha}
        for ends in curve.scaled(pieces):
            ax.hlines(value, *ends, linewidth=1.5, **style)
            ax.vlines(ends, bottom, value, linewidth=0.5, linestyle=":", **style)
            ax.hlines(bottom, *ends, linewidth=4, **style | {"alpha": 0.6 * alpha})
    ax.set_ylim(bottom=bottom)
    if not on_curve[:MOST_DRAWN].all():
        ax.set_xlabel(f"{ax.get_xlabel()}\nfaded: unknowns with other values")
    return display.figure_


def _apart(ticks: Array) -> Array:
    """Leave out ticks that lie too near to the one before for their labels.

    >>> import numpy as np
    >>> _apart(np.array([0.0, 10.0, 10.1, 20.0]))
    array([ 0., 10., 20.])
    """
    kept = [ticks[0]]
    for tick in ticks[1:]:
        if tick - kept[-1] > np.ptp(ticks) / MOST_TICKS:
            kept.append(tick)
    return np.array(kept)
