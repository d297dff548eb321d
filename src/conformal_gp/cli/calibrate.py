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
ROUNDING = 1e-12  # of a logarithm
MOST_DRAWN = 20


class Scale(NamedTuple):
    """The scale of the target on which the curve is fitted."""

    bounds: tuple[float, float]
    """Least and greatest standard."""
    shift: float | None = None
    """What is added before the logarithm: the least standard that is not 0 if one is; None without logarithm."""

    def scaled(self, values: Any) -> Array:
        """Values of the target as the curve has them."""
        if self.shift is None:
            return np.asarray(values, dtype=np.float64)
        return np.log(np.asarray(values, dtype=np.float64) + self.shift)

    def unscaled(self, values: Array) -> Array:
        """The opposite; bounds, which a logarithm would round, are exact."""
        if self.shift is None:
            return values
        lowest, highest = self.scaled(self.bounds)
        inside = np.clip(np.exp(values) - self.shift, *self.bounds)
        # The last digit of NumPy's logarithm depends on where a value is in its array.
        return np.select([values <= lowest + ROUNDING, values >= highest - ROUNDING], self.bounds, inside)


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
    training, scale = _scaled(read_training(train, signal, options, output), output)
    columns = training.columns
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
    model = training.fit(output)
    levels = levels or default_levels(model, output)
    found = pd.DataFrame(index=X.index)
    words = {}
    with output.working(f"finding {target} of {signals.size} rows"):
        for level in levels:
            sets, estimates = model.predict_input(
                signals, X, target, scale.scaled(scale.bounds), float(level), True, y_variance
            )
            found["mean"] = scale.unscaled(estimates)
            hulls = [[one[0, 0], one[-1, 1]] if len(one) else [np.nan, np.nan] for one in sets]
            found[bounds_of(level)] = scale.unscaled(np.array(hulls))
            words[f"set_{percent(level)[:-1]}"] = [_words(pieces, scale) for pieces in sets]
    if options.picture is not None:
        save_picture(_drawn(model, training, scale, levels[-1], X, signals, sets), options.picture, output)
    ends = [name for level in levels for name in bounds_of(level)]
    shown = rounded(found)
    shown[ends] = shown[ends].clip(*scale.bounds)  # which rounding would pass
    shown = shown.rename(columns={"mean": "estimate"}).assign(**words)
    said = f"If a new row is exchangeable with the standards, a set contains its {target} with at least its level."
    if options.out != "-" or not options.json:
        write_table(table, shown, f"{target}_", options.out)
        output.info(f"{target} of {len(X)} rows found from {signal}, by {training.y.size} standards.", said)
    if options.json:
        output.document(
            {
                "target": target,
                "signal": signal,
                "levels": [*map(float, levels)],
                "bounds": scale.bounds,
                "training_rows": training.y.size,
                "guarantee": f"{model.guarantee_} {said}",
                "rows": row_documents(shown, columns.names_of(table, shown.index)),
            }
        )


def _scaled(training: Training, output: Output) -> tuple[Training, Scale]:
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
    scale = Scale((least, most))
    if log:
        scale = scale._replace(shift=0.0)
    if log and least == 0.0:
        scale = scale._replace(shift=lowest)
        output.notice(f"a standard is 0: the curve is fitted over the logarithm of {target} + {lowest:g}")
    return training._replace(X=training.X.assign(**{target: scale.scaled(known_values)})), scale


def _words(pieces: Array, scale: Scale) -> str:
    """Describe a set that is not one interval inside the range of the standards; else nothing."""
    if not len(pieces):
        return "no value agrees"
    said = []
    if len(pieces) > 1:
        ends = [outward(*scale.unscaled(piece)) for piece in pieces]
        said.append(" or ".join(f"{low:g} to {high:g}" for low, high in ends))
    lowest, highest = scale.scaled(scale.bounds)
    if pieces[0, 0] <= lowest:
        said.append("reaches the lowest standard")
    if pieces[-1, 1] >= highest:
        said.append("reaches the highest standard")
    return "; ".join(said)


def _drawn(
    model: Any, training: Training, scale: Scale, level: Fraction, X: pd.DataFrame, signals: Array, sets: list[Array]
) -> Any:
    """Draw the curve with its band, and the first unknowns: their signals, and their sets along the axis below.

    The curve is that of the first unknown's other inputs; unknowns that have others are on another curve, and fade.
    """
    target = training.options.target
    known = training.X
    first = X.iloc[[0]].assign(**{target: known[target].iloc[0]})
    display = plots().PredictionBandDisplay.from_estimator(
        model,
        pd.concat([known, first], ignore_index=True),
        np.append(training.y, np.nan),
        feature=target,
        row=len(known),
        confidence_level=float(level),
        target_name=training.options.signal,
    )
    ax = display.ax_
    if scale.shift is not None:
        ticks = np.unique(known[target])
        ticks = ticks[:: 1 + len(ticks) // MOST_TICKS]
        ax.set_xticks(ticks, [f"{value:.3g}" for value in scale.unscaled(ticks)])
        ax.set_xlabel(ax.get_xlabel().replace(target, f"{target} (logarithmic)", 1))
    bottom = ax.get_ylim()[0]
    others = X.drop(columns=target)
    on_curve = (others == others.iloc[0]).all(axis=1)[:MOST_DRAWN]
    for value, pieces, alpha in zip(signals, sets, np.where(on_curve, 1.0, 0.35), strict=False):
        style = {"color": "tab:red", "alpha": alpha}
        for ends in pieces:
            ax.hlines(value, *ends, linewidth=1.5, **style)
            ax.vlines(ends, bottom, value, linewidth=0.5, linestyle=":", **style)
            ax.hlines(bottom, *ends, linewidth=4, **style | {"alpha": 0.6 * alpha})
    ax.set_ylim(bottom=bottom)
    if not on_curve.all():
        ax.set_xlabel(f"{ax.get_xlabel()}\nfaded: unknowns with other values")
    return display.figure_
