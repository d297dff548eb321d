"""Commands, their options and their help, as ``argparse`` parses and prints them."""

from __future__ import annotations

import argparse
import codecs
import math
import re
import shutil
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from textwrap import fill, indent
from typing import Any, NamedTuple

from conformal_gp.formatting import percent

LOWEST = Fraction(1, 2)  # a lower level is more likely a mistake: 5% where 95% is meant
IN_FULL = "--help-all"
WIDEST = 100  # columns of help
NAMED = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "space": " "}


def level(text: str) -> Fraction:
    """Read a share, or a number in percent: 95 means 95%.

    >>> level("0.95"), level("80%"), level("99.9")
    (Fraction(19, 20), Fraction(4, 5), Fraction(999, 1000))
    """
    from conformal_gp.conformal.levels import read_level

    try:
        share = float(text.removesuffix("%"))
    except ValueError:
        share = math.nan
    if text.endswith("%") or share >= 2:
        share /= 100
    if not 0 < share < 1:
        cure = "takes levels strictly between 0 and 1, such as 0.95 or 95%, and comes after tables"
        raise argparse.ArgumentTypeError(f"{cure}; got '{text[:30]}'.")
    return read_level(share)


def confidence(text: str) -> Fraction:
    """Read a level of intervals."""
    found = level(text)
    if found < LOWEST:
        raise argparse.ArgumentTypeError(
            f"{text} asks for intervals that cover {percent(found)} of rows, and levels are from {percent(LOWEST)} on; "
            f"did you mean {percent(1 - found)}?"
        )
    return found


def character(text: str) -> str:
    """Read a character, or its name."""
    found = NAMED.get(text, text)
    if len(found) != 1 or found in '"\r\n':
        raise argparse.ArgumentTypeError(f"takes one character, or {', '.join(NAMED)}; got {text!r}.")
    return found


def whole(text: str, least: int) -> int:
    """Read a whole number that is not too small."""
    if not re.fullmatch(r"[+-]?\d+", text) or int(text) < least:
        raise argparse.ArgumentTypeError(f"takes a whole number of at least {least}; got '{text}'.")
    return int(text)


def threads(text: str) -> int:
    """Read a number of threads; -1 is all cores."""
    number = whole(text, -1)
    if number == 0:
        raise argparse.ArgumentTypeError("takes a number of threads, or -1 for all cores; got '0'.")
    return number


def finite(text: str) -> float:
    """Read a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"takes a finite number; got '{text}'.")
    return value


def encoding(text: str) -> str:
    """Read the name of an encoding."""
    try:
        return codecs.lookup(text).name
    except LookupError:
        raise argparse.ArgumentTypeError(f"takes an encoding, such as utf-8 or cp1252; got '{text}'.") from None


def _value(metavar: str, said: str, **others: Any) -> dict[str, Any]:
    return {"metavar": metavar, "help": said, **others}


def _several(metavar: str, said: str, **others: Any) -> dict[str, Any]:
    return {"metavar": metavar, "help": said, "action": "append", "default": [], **others}


def _flag(said: str) -> dict[str, Any]:
    return {"action": "store_true", "help": said}


def _choice(said: str, *choices: str) -> dict[str, Any]:
    """Describe an option with choices, of which the first is the default."""
    return {"choices": choices, "default": choices[0], "help": said}


_LEVELS = "Levels, as 90%% 95%%.  [default: those of 90, 95 and 99%% that the rows support]"
COMMON = {
    "--target": _value("COL", "Column to predict."),
    "--signal": _value("COL", "Column of the measured signal."),
    "--model": _value("FILE", "A model that fit saved, instead of TRAIN."),
    "--out": _value("FILE", "File to write.  [default: - (stdout)]", default="-"),
    "--kind": _choice(
        "What to draw; bands are along an input, width over two.", "intervals", "residuals", "band", "width"
    ),
    "--input": _several("COL", "Column of a band; twice for width.  [default: the first]"),
    "--confidence": _several("LEVEL", _LEVELS, type=confidence, nargs="+", action="extend"),
    "--quantiles": _several("SHARE", "Quantiles, as 5%% 50%% 95%%.", type=level, nargs="+", action="extend"),
    "--log": _flag("Fit over the target's logarithm, as for dilutions."),
    "--picture": _value("FILE", "Picture of curve and unknowns: .png, .svg or .pdf."),
    "--by": _value("COL", "Hold out whole batches: rows that share COL."),
    "--by-time": _flag("Predict later rows from earlier ones."),
    "--ordered": _flag("Rows are in order of time: test for drift."),
    "--outliers": _flag("List the rows that are least expected."),
    "--explain": _flag("Explain the width of each interval."),
    "--drop": _several("COL,...", "Columns to leave out."),
    "--missing": _choice("Rows that lack a value.", "error", "drop", "impute"),
    "--groups": _value("COL", "Guarantee coverage within each group of COL."),
    "--batch": _value("COL", "Column of batches, to predict rows of new ones."),
    "--folder": _value("DIR", "Folder for the tables.", default="conformal-gp-demo"),
    "--details": _flag("Describe the model, or compare methods."),
    "--quiet": _flag("Print results, warnings and errors only."),
    "--json": _flag("Print the result as JSON."),
}
_FOLDS = "Number of folds.  [default: 10; above 1000 rows a third is held out, once]"
_TRANSFORMATIONS = ("auto", "none", "log", "sqrt", "box-cox", "yeo-johnson")
ADVANCED = {
    "--folds": _value("K", _FOLDS, type=partial(whole, least=2)),
    "--categories": _several("COL,...", "Columns of numbers that are codes: lots, runs."),
    "--na": _several("TEXT", "Text that marks a missing value, in addition to NA etc."),
    "--dates": _choice("Columns of dates; elapsed: days since the first.", "error", "elapsed"),
    "--noise-column": _value("COL", "Column of known noise variances."),
    "--sd-column": _value("COL", "Column of known standard deviations of the noise."),
    "--sheet": _several("NAME", "Sheet of a workbook; a second --sheet is that of NEW."),
    "--header-row": _value(
        "N", "Row of the columns' names in the file.  [default: found]", type=partial(whole, least=1)
    ),
    "--separator": _value("CHAR", f"Separator, or {', '.join(NAMED)}.  [default: found]", type=character),
    "--decimal": {"choices": (".", ","), "help": "Decimal mark.  [default: found]"},
    "--thousands": _value("CHAR", "Mark between thousands: , . ' or space.  [default: none]", type=character),
    "--percent": _flag("Read cells like 12%% as 12."),
    "--encoding": _value("NAME", "Encoding, such as utf-8.  [default: found]", type=encoding),
    "--kernel": _choice("Covariance.", "matern52", "matern32", "se", "rbf", "rq", "nn"),
    "--tuning": _choice("Tuning of hyperparameters; holdout is faster.", "auto", "integrated", "holdout"),
    "--target-transform": _choice("Transformation of the target.", *_TRANSFORMATIONS),
    "--difficulty": _choice("Adapt widths to how hard each row is.", "auto", "none"),
    "--lower-bound": _value("NUMBER", "Least possible target.  [default: as the data suggest]", type=finite),
    "--upper-bound": _value("NUMBER", "Greatest possible target.  [default: as the data suggest]", type=finite),
    "--seed": _value("N", "Random seed.", type=partial(whole, least=0), default=0),
    "--jobs": _value("N", "Threads; -1 is all cores.", type=threads, default=1),
}
SHORT = {"--target": "-t", "--signal": "-s", "--model": "-m", "--out": "-o", "--confidence": "-c", "--quiet": "-q"}
MODEL = [
    "--kernel", "--tuning", "--target-transform", "--difficulty", "--lower-bound", "--upper-bound", "--seed", "--jobs",
]  # fmt: skip
OF_FIT = ["--dates", "--drop", "--categories", "--noise-column", "--sd-column", "--groups", "--batch", *MODEL]
"""Options that a fitted model has its own values of."""
TABLES = [
    "--drop", "--missing", "--groups", "--batch", "--categories", "--na", "--dates", "--noise-column", "--sd-column",
    "--sheet", "--header-row", "--separator", "--decimal", "--thousands", "--percent", "--encoding", *MODEL, "--quiet",
]  # fmt: skip


class Command(NamedTuple):
    """A command: the module of its function, its tables, its help, and its options."""

    module: str
    tables: str
    summary: str
    examples: tuple[str, str]
    required: list[str]
    options: list[str]
    more: str = ""


COMMANDS = {
    "predict": Command(
        "conformal_gp.cli.predict",
        "[TRAIN] NEW",
        "Predict single new measurements with guaranteed intervals.",
        ("cars.csv new-cars.csv --target mpg -o predicted.csv", "new-cars.csv --model cars.model -c 80% 95%"),
        [],
        ["--target", "--model", "--out", "--confidence", "--quantiles", "--explain", *TABLES, "--details", "--json"],
        "An interval is for one new measurement, its noise included, and guaranteed. Columns are matched by name, and "
        "columns of text are categories. New columns are COL_mean, COL_lower_95, COL_upper_95 and so on, and "
        "COL_quantile_5 with --quantiles; an infinite bound is written inf. COL_beyond_training names the inputs of a "
        "row that lie outside the training range: the guarantee does not apply to such rows. With --explain, COL_why "
        "explains the width at the highest level, and names the rows of TRAIN that determine it. Targets like <0.02 or "
        ">500 are limits of detection. An interval that reaches the limit is open beyond it, and COL_limit_95 writes "
        'it as "<0.05": at most 0.05, and perhaps not detectable.',
    ),
    "fit": Command(
        "conformal_gp.cli.predict",
        "DATA",
        "Fit a model to DATA and save it, for predict --model.",
        ("cars.csv --target mpg -o cars.model", "yields.xlsx --target yield --batch lot -o yields.model"),
        ["--target", "--out"],
        TABLES,
        "The file contains the training rows, readable by anyone who has it, and no code.",
    ),
    "calibrate": Command(
        "conformal_gp.cli.calibrate",
        "TRAIN NEW",
        "Find the unknown target of NEW from its signal, by standards.",
        ("standards.csv new.csv --signal density --target conc", "known.csv new.csv -s od -t conc --log"),
        ["--signal", "--target"],
        ["--out", "--confidence", "--log", "--picture", *TABLES, "--json"],
        "TRAIN has the standards: known targets, and their signals. The curve is signal on target. Intervals contain "
        "the unknown value with the stated probability if the new row is like the standards. New columns are "
        "COL_estimate, COL_lower_95 and COL_upper_95; COL_set_95 has the parts of a set that is not one interval, and "
        "says where it is empty or reaches the lowest or highest standard.",
    ),
    "evaluate": Command(
        "conformal_gp.cli.evaluate",
        "DATA",
        "Cross-validate intervals on DATA: their coverage and width.",
        ("cars.csv --target mpg", "assay.xlsx --target conc --by plate --details"),
        ["--target"],
        ["--confidence", "--by", "--by-time", "--ordered", "--outliers", "--details", "--folds", *TABLES, "--json"],
        "The coverage of held-out rows is compared with its expected range, and the intervals with those of the same "
        "Gaussian process without conformal prediction (standard GP). Rows with equal inputs (replicates) are held "
        "out together.",
    ),
    "plot": Command(
        "conformal_gp.cli.plot",
        "[DATA] [NEW]",
        "Draw intervals of new or held-out rows, or a model.",
        ("cars.csv new-cars.csv --target mpg -o rows.png", "cars.csv -t mpg --kind band --input weight -o band.svg"),
        ["--out"],
        ["--target", "--model", "--kind", "--input", "--confidence", "--folds", *TABLES],
        "Without NEW, intervals are of held-out rows, and residuals of rows that are left out one at a time. Rows "
        "outside the training range are marked. With --model, the table has rows to predict, or the ranges of a band.",
    ),
    "report": Command(
        "conformal_gp.cli.evaluate",
        "DATA",
        "Write a page about DATA: coverage, width, and what to look at.",
        ("cars.csv --target mpg -o report.html", "runs.csv --target yield --ordered -o report.html"),
        ["--target", "--out"],
        ["--ordered", "--folds", *TABLES],
        "The page is one HTML file, which opens without a network, with a slider for the level.",
    ),
    "demo": Command(
        "conformal_gp.cli",
        "",
        "Write two tables of cars, and print commands to try on them.",
        ("", "--folder cars"),
        [],
        ["--folder"],
    ),
}


def parse(name: str, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of a command; print its help, or a mistake in the command, and exit."""
    options = _parser(name, IN_FULL in arguments).parse_intermixed_args(arguments)
    given = {argument.partition("=")[0] for argument in arguments}
    options.of_fit = [option for option in OF_FIT if option in given]
    return options


def _parser(name: str, in_full: bool) -> argparse.ArgumentParser:
    command = COMMANDS[name]
    examples = "\n".join(f"  conformal-gp {name} {example}".rstrip() for example in command.examples)
    required = " ".join(f"{option} {COMMON[option]['metavar']}" for option in command.required)
    parser = argparse.ArgumentParser(
        prog=f"conformal-gp {name}",
        usage=" ".join(f"conformal-gp {name} {command.tables} {required} [OPTIONS]".split()),
        description=f"{command.summary}\n\nExamples:\n{examples}",
        formatter_class=partial(argparse.RawDescriptionHelpFormatter, width=_width(), max_help_position=28),
        add_help=False,
        allow_abbrev=False,
    )
    if command.tables:
        number: Any = {"[TRAIN] NEW": "+", "[DATA] [NEW]": "*"}.get(command.tables, len(command.tables.split()))
        parser.add_argument("tables", nargs=number, metavar=command.tables, help=argparse.SUPPRESS)
    common = parser.add_argument_group("Options")
    advanced = parser.add_argument_group("Advanced")
    for option in [*command.required, *command.options]:
        flags = [*filter(None, [SHORT.get(option)]), option]
        described = COMMON.get(option) or ADVANCED[option]
        if option in command.required:
            described = described | {"required": True, "help": described["help"].partition("  [default")[0]}
        elif "[default" not in described["help"] and described.get("default") not in (None, []):
            described = described | {"help": f"{described['help']}  [default: %(default)s]"}
        if option in COMMON:
            common.add_argument(*flags, **described)
        elif in_full:
            advanced.add_argument(*flags, **described)
        else:
            advanced.add_argument(*flags, **described | {"help": argparse.SUPPRESS})
    common.add_argument("-h", "--help", IN_FULL, action="help", help="Print this, or all options, and exit.")
    hidden = ", ".join(option for option in command.options if option in ADVANCED)
    if in_full:
        parser.epilog = fill(command.more, _width())
    elif hidden:
        names = fill(hidden, _width() - 2, break_on_hyphens=False)
        parser.epilog = f"Advanced (described by {IN_FULL}):\n{indent(names, '  ')}"
    return parser


def overview() -> str:
    """Return the help of the program."""
    commands = "\n".join(f"  {name:9}  {command.summary}" for name, command in COMMANDS.items())
    paragraphs = (
        "Prediction intervals with guaranteed coverage, for a table in a file; try it by conformal-gp demo.",
        "Gaussian process regression with full conformal prediction: if new rows are exchangeable with the training "
        "rows, a 95% interval contains the true value with probability at least 95%, even if the model is wrong.",
        "Tables are CSV, TSV, Parquet or Excel; - is standard input. Exit codes: 0 success; 1 a fault in the program; "
        "2 a mistake in the command, a file or the data.",
    )
    about = "\n\n".join(fill(paragraph, _width()) for paragraph in paragraphs)
    return f"usage: conformal-gp COMMAND ...\n\n{about}\n\nCommands (COMMAND --help describes one):\n{commands}"


def _width() -> int:
    return min(shutil.get_terminal_size().columns, WIDEST) - 2
