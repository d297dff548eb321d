"""Coverages that pages and examples show, and what chance allows of them.

Of m labels that are predicted from n calibration rows at level 1 - delta, with k = floor((n + 1) delta), the number
inside is beta-binomial with parameters n + 1 - k and k (docs/theory.md): exactly so for scores that the test row leaves
as they are, and closely for others.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from scipy.stats import betabinom

# Probability that a coverage of one example is outside its band by chance, half on either side.
CHANCE = 0.01


def band(level: float, n_calibration: int, n_test: int, draws: int = 1) -> tuple[float, float]:
    """Least and greatest share inside that chance allows, over several draws of rows.

    >>> band(0.95, 299, 92)  # cars, cut by model year instead of shuffled, had 0.848
    (0.8695652173913043, 1.0)
    """
    k = max(int((n_calibration + 1) * (1 - level) + 1e-9), 1)
    inside = betabinom(draws * n_test, draws * (n_calibration + 1 - k), draws * k)
    low, high = inside.ppf([CHANCE / 2, 1 - CHANCE / 2]) / (draws * n_test)
    return float(low), float(high)


class Shown(NamedTuple):
    """Where a page or example prints coverages, in percent, and of how many rows."""

    pattern: str
    n_calibration: int
    n_test: int
    levels: tuple[float, ...]
    draws: int = 1
    outside: bool = False

    def check(self, printed: str) -> None:
        """Assert that all levels are there, and each coverage within what chance allows."""
        found = re.findall(self.pattern, printed, flags=re.MULTILINE)
        texts = [text for match in found for text in ([match] if isinstance(match, str) else match)]
        assert len(texts) == len(self.levels), f"{self.pattern!r} is found {texts}, not {len(self.levels)} times"
        for text, level in zip(texts, self.levels, strict=True):
            share = 1 - float(text) / 100 if self.outside else float(text) / 100
            low, high = band(level, self.n_calibration, self.n_test, self.draws)
            assert low - 0.005 <= share <= high + 0.005, f"{share:.1%} at {level:.0%}: {low:.1%} to {high:.1%}"


# Of guaranteed intervals alone: the others are shown because they miss.
SHOWN = {
    "docs/start.md": Shown(r"^\d+%: ([\d.]+)% covered", 79, 92, (0.8, 0.9, 0.95)),
    "docs/cli.md": Shown(r"^\d+% intervals covered ([\d.]+)%", 79, 352, (0.9, 0.95)),
    "docs/groups.md": Shown(r"^by group: lab (\d+)%, field (\d+)%", 59, 1200, (0.9, 0.9)),
    "examples/difficulty.py": Shown(r"^difficulty\S+ +([\d.]+)% covered", 179, 4000, (0.9, 0.9)),
    "examples/first_intervals.py": Shown(r"^level \d+%: ([\d.]+)% of", 79, 92, (0.8, 0.9, 0.95)),
    "examples/groups.py": Shown(
        r"^by group +America (\d+)%, Europe (\d+)%, Japan (\d+)%", 19, 35, 3 * (0.8,), draws=20
    ),
    "examples/standard_gps.py": Shown(r"^conformal-gp +covers ([\d.]+)%", 30, 100, (0.9,), draws=10),
    "examples/shift.py": Shown(r"^learnt from all years +([\d.]+)% covered", 59, 178, (0.9,)),
    "examples/simulator.py": Shown(r"^conformal, .*?: ([\d.]+)% covered", 30, 50, 3 * (0.9,), draws=10),
    "examples/wrong_error_bars.py": Shown(r"% +conformal +([\d.]+)% missed", 59, 209, (0.5, 0.9, 0.95), outside=True),
}
