"""How displays look: axes, and colours that a hatch, line style or marker doubles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The palette of Okabe and Ito (2008), told apart in the common kinds of colour blindness.
BLUE, ORANGE, VERMILION, GREEN, PURPLE, SKY = "#0072B2", "#E69F00", "#D55E00", "#009E73", "#CC79A7", "#56B4E9"

# Methods side by side: each differs from the others in every one of these, so greyscale loses nothing.
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION)
HATCHES = ("", "///", "...", "xxx", "---", "\\\\\\")
MARKERS = ("o", "s", "^", "D", "v", "P")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))


def pyplot() -> Any:
    """``matplotlib.pyplot``, or an error that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Pictures need Matplotlib, which is not installed: pip install 'conformal-gp[plot]'"
        ) from error
    return plt


def axes_or_new(ax: Axes | None, size: tuple[float, float] | None = None) -> Axes:
    """``ax``, or the axes of a new figure, of a size in inches."""
    plt = pyplot()
    if ax is not None:
        return ax
    return plt.subplots(figsize=size, layout="constrained")[1]


def finish(ax: Axes, legend_at: Literal["best", "upper left"] = "best") -> None:
    """Remove the upper and right frame; add a legend if anything has a label."""
    ax.spines[["top", "right"]].set_visible(False)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc=legend_at, fontsize="small", framealpha=0.85, edgecolor="none")


def _face() -> tuple[float, float, float]:
    """Colour of axes in the style in use."""
    from matplotlib.colors import to_rgb

    return to_rgb(pyplot().rcParams["axes.facecolor"])


def is_dark() -> bool:
    """Whether axes are dark in the style in use."""
    return sum(_face()) < 1.5


def ink() -> str:
    """Colour of lines and dots, which stand out from the axes."""
    return "#DDDDDD" if is_dark() else "#222222"


def grey(strength: float) -> tuple[float, float, float]:
    """A grey that stands out from the axes by so much, at most 1."""
    return tint("white" if is_dark() else "black", strength)


def tint(colour: str, strength: float) -> tuple[float, float, float]:
    """``colour`` mixed with that of the axes: 0 is theirs, 1 the colour itself."""
    from matplotlib.colors import to_rgb

    red, green, blue = (face + strength * (part - face) for face, part in zip(_face(), to_rgb(colour), strict=True))
    return red, green, blue


def tints(colour: str, count: int) -> list[tuple[float, float, float]]:
    """``count`` tints from light to strong, for nested bands."""
    return [tint(colour, 0.18 + 0.45 * step / max(count - 1, 1)) for step in range(count)]


def nth(styles: Sequence[Any], number: int) -> Any:
    """Item ``number`` of ``styles``, which repeat."""
    return styles[number % len(styles)]


def titled(*parts: str | None) -> str:
    """The parts that are not empty, separated by spaces."""
    return " ".join(part for part in parts if part)
