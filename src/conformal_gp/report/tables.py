"""The page's tables and sentences, with every value from the data escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformal_gp import __version__
from conformal_gp.metrics import mean_width
from conformal_gp.report.held_out import PERCENTS, HeldOut
from conformal_gp.report.numbers import Rounding, general, percent

Array = NDArray[np.float64]

TABLE_PERCENTS = (50, 80, 90, 95, 99)
COLUMNS_SHOWN = 200


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str, kind: str = "numbers") -> str:
    """An HTML table of plain text, of the kind "numbers" or "words"; the first cell of each row is its heading."""
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in rest) + "</tr>"
        for first, *rest in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table class="{kind}">'
        f"<caption>{escape(caption)}</caption><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def data_table(X: Array, y: Array, names: Sequence[str], target_name: str) -> str:
    """Least, middle and greatest value of the label and of each input."""
    columns = [(f"{target_name} (label)", y), *zip(names, X.T, strict=True)]
    rows = [
        (name, general(values.min()), general(np.median(values)), general(values.max()), str(np.unique(values).size))
        for name, values in columns[: COLUMNS_SHOWN + 1]
    ]
    left = len(columns) - len(rows)
    caption = f"{y.size} rows, {len(names)} inputs" + (f"; {left} more inputs not listed" if left else "")
    return table(("column", "least", "median", "greatest", "different values"), rows, caption=caption)


def model_table(model: Any) -> str:
    """The fitted model's settings and what it learnt."""
    facts = [
        ("method", type(model).__name__),
        ("kernel", getattr(model, "kernel_", None)),
        ("noise variance", _maybe(general, getattr(model, "noise_variance_", None))),
        ("mean function", getattr(model, "mean", None)),
        ("gamma", _maybe(general, getattr(model, "gamma_", None))),
        ("tuning", getattr(model, "tuning_", None)),
        ("inputs standardised", _maybe({True: "yes", False: "no"}.get, getattr(model, "scale_inputs", None))),
        ("log marginal likelihood", _maybe(general, getattr(model, "log_marginal_likelihood_", None))),
        ("made by", f"conformal-gp {__version__}"),
    ]
    rows = [(name, str(value)) for name, value in facts if value is not None]
    return table(("setting", "value"), rows, caption="The model, fitted to all rows", kind="words")


def coverage_table(held_out: HeldOut) -> str:
    """Labels inside at some levels, beside what chance allows."""
    conformal, plain, chance = held_out.coverage(), held_out.plain_coverage(), held_out.chance()
    rows = [
        (f"{PERCENTS[k]}%", percent(conformal[k]), percent(plain[k]), " to ".join(percent(end) for end in chance[k]))
        for k in _columns()
    ]
    return table(
        ("level", "conformal", "Gaussian process", "chance allows"), rows, caption="Labels inside their intervals"
    )


def width_table(held_out: HeldOut) -> str:
    """Mean and median widths at some levels."""
    rounding = Rounding.of(held_out.y)
    summaries = []
    for ends in (held_out.intervals, held_out.plain):
        widths = ends[:, 1] - ends[:, 0]
        # the lower of two middle values: infinity has no half-way
        summaries += [mean_width(ends), np.quantile(widths, 0.5, axis=0, method="lower")]
    rows = [(f"{PERCENTS[k]}%", *(rounding.text(values[k]) for values in summaries)) for k in _columns()]
    head = ("level", "conformal, mean", "median", "Gaussian process, mean", "median")
    return table(head, rows, caption="Widths of intervals")


def verdict(held_out: HeldOut) -> str:
    """In plain words: which intervals held what they say."""
    conformal = _judged("The conformal intervals", held_out.coverage(), held_out.chance())
    plain = _judged("The Gaussian process's own error bars", held_out.plain_coverage(), held_out.chance())
    return f"<p>{conformal}</p><p>{plain}</p>" + _infinite(held_out)


def guarantee(model: Any) -> str:
    """What the model's coverage rests on, in plain words and in its own."""
    text = str(model.guarantee_)
    if text.startswith("Exact"):
        opening = "These intervals are guaranteed."
        meaning = (
            "Ask for 95%, and of new rows like these at least 95 in 100 have their label inside, on average over data "
            "sets and rows. It does not matter whether the model is right: a poor model gives wide intervals, not "
            "false ones."
        )
    else:
        opening = "These intervals are not exactly guaranteed."
        meaning = (
            "Ask for 95%, and of new rows like these about 95 in 100 should have their label inside, but it can be "
            "fewer. Other ways of tuning give the full guarantee: the default is one of them."
        )
    words = f"<p><strong>{opening}</strong> {meaning}</p>"
    return f"{words}<p>In the words of the fitted model: <q>{escape(text)}</q></p>"


def _judged(name: str, shares: Array, chance: Array) -> str:
    """What a method held at 90%, 95% and 99%, and whether chance explains it."""
    high = [k for k in _columns() if PERCENTS[k] >= 90]
    held = _listed([f"{percent(shares[k])} of labels at {PERCENTS[k]}%" for k in high])
    too_few = [f"{PERCENTS[k]}%" for k in high if shares[k] < chance[k, 0]]
    too_many = [f"{PERCENTS[k]}%" for k in high if shares[k] > chance[k, 1]]
    findings = []
    if too_few:
        findings.append(f"That is fewer than chance allows at {_listed(too_few)}: these promise more than they hold.")
    if too_many:
        findings.append(f"That is more than chance allows at {_listed(too_many)}: these are wider than they need be.")
    return " ".join([f"{name} held {held}.", *(findings or ["That is within what chance allows."])])


def _infinite(held_out: HeldOut) -> str:
    """Where intervals have no finite ends, and why."""
    endless = np.isinf(held_out.intervals).any(axis=1)
    sentences = []
    all_rows, some_rows = endless.all(axis=0), endless.any(axis=0)
    if some_rows.any() and not np.array_equal(all_rows, some_rows):
        sentences.append(
            f"From {PERCENTS[int(np.argmax(some_rows))]}% on, the intervals of some rows have no finite ends: "
            "there are too few rows, or gamma is not 2."
        )
    if all_rows.any():
        sentences.append(
            f"From {PERCENTS[int(np.argmax(all_rows))]}% on, no interval has finite ends: there are too few rows to "
            "rule any label out at these levels. More rows make them finite."
        )
    return f"<p>{' '.join(sentences)}</p>" if sentences else ""


def _listed(words: Sequence[str]) -> str:
    """Words as people list them.

    >>> _listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _columns() -> list[int]:
    return [PERCENTS.index(level) for level in TABLE_PERCENTS]


def _maybe(write: Any, value: Any) -> Any:
    return None if value is None else write(value)
