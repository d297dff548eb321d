"""Coverages that pages and examples show, and what chance allows of them.

Of m labels that are predicted from n exchangeable rows at level 1 - delta, with k = floor((n + 1) delta), the number
inside is beta-binomial with parameters n + 1 - k and k: the n rows decide the probability of being inside, which is a
Beta variable, and the m labels then fall by it. (Exactly so for scores that n rows leave as they are, and closely for
others.)
"""

from __future__ import annotations

import re
from typing import NamedTuple

from scipy.stats import betabinom

# Probability that a coverage of one example is outside its band by chance, half on either side.
CHANCE = 0.01


def band(level: float, n_train: int, n_test: int, draws: int = 1) -> tuple[float, float]:
    """Least and greatest share inside that chance allows, over several draws of rows.

    >>> band(0.95, 300, 92)  # README's cars, cut by model year instead of shuffled, have 0.848
    (0.8695652173913043, 1.0)
    """
    k = max(int((n_train + 1) * (1 - level) + 1e-9), 1)
    inside = betabinom(draws * n_test, draws * (n_train + 1 - k), draws * k)
    low, high = inside.ppf([CHANCE / 2, 1 - CHANCE / 2]) / (draws * n_test)
    return float(low), float(high)


class Shown(NamedTuple):
    """Where a page or example prints coverages, and of how many rows."""

    pattern: str
    """Each of its groups is a share, in percent unless it is below 1."""
    n_train: int
    n_test: int
    levels: tuple[float, ...]
    draws: int = 1
    outside: bool = False
    at_least: bool = False
    """Whether more may be inside than chance allows: intervals span the gaps of regions, and may be infinite."""

    def check(self, printed: str) -> None:
        """Assert that all levels are there, and each coverage within what chance allows."""
        found = re.findall(self.pattern, printed, flags=re.MULTILINE)
        texts = [text for match in found for text in ([match] if isinstance(match, str) else match)]
        assert len(texts) == len(self.levels), f"{self.pattern!r} is found {texts}, not {len(self.levels)} times"
        for text, level in zip(texts, self.levels, strict=True):
            share = float(text) if text.startswith("0.") and not self.outside else float(text) / 100
            share = 1 - share if self.outside else share
            low, high = band(level, self.n_train, self.n_test, self.draws)
            high = 1.0 if self.at_least else high
            assert low - 0.005 <= share <= high + 0.005, (
                f"{share:.1%} at {level:.0%}: chance is {low:.1%} to {high:.1%}"
            )


FIVE_MINUTES = Shown(r"^\d+%: ([\d.]+)% inside", 300, 92, (0.8, 0.9, 0.95))
# Of guaranteed intervals alone: the others are shown because they miss.
SHOWN = {
    "README.md": Shown(
        r"^\| GPR-CP \|(?: [\d.]+ \|){3} ([\d.]+)% \| ([\d.]+)% \| ([\d.]+)%", 352, 392, (0.9, 0.95, 0.99), outside=True
    ),
    "docs/start.md": FIVE_MINUTES,
    "examples/quickstart.ipynb": FIVE_MINUTES,
    "docs/cli.md": Shown(r"GPR-CP +[\d.]+% +[\d.]+% +([\d.]+)%", 281, 352, (0.95, 0.99), outside=True),
    "docs/exchangeability.md": Shown(r"^shuffled: (\d+)% inside", 100, 50, (0.9,), draws=20),
    "docs/guides/mapie.md": Shown(r"^\[(0\.\d+) (0\.\d+)\]", 292, 100, (0.9, 0.95) * 2),
    "docs/labels_and_noise.md": Shown(r"^(0\.9\d*) 1\.\d+$", 63, 160, (0.9,)),
    "examples/auto_mpg.py": Shown(
        r"^GPR-CP(?: +[\d.]+){3} +([\d.]+) +([\d.]+) +([\d.]+)", 352, 392, (0.9, 0.95, 0.99), outside=True
    ),
    "examples/categories.py": Shown(r": ([\d.]+)% inside", 150, 167, (0.9, 0.95) * 3),
    "examples/few_rows.py": Shown(r'tuning="auto" +([\d.]+)%', 30, 60, (0.9,), draws=30),
    "examples/first_intervals.py": Shown(r"^level \d+%: ([\d.]+)% of", 300, 92, (0.8, 0.9, 0.95)),
    "examples/gamma.py": Shown(
        r"^gamma \w+ inside: +([\d.]+)% +([\d.]+)% +([\d.]+)%", 188, 209, (0.9, 0.95, 0.99) * 4, at_least=True
    ),
    "examples/length_scales.py": Shown(r"^(?!learnt on all).* ([\d.]+)% inside at 90%", 133, 167, (0.9,) * 4),
    "examples/sequential_design.py": Shown(r"intervals hold ([\d.]+)% of", 29, 1000, (0.9,)),
    "examples/shift.py": Shown(r"^learnt from all years +([\d.]+)% inside", 214, 178, (0.9,)),
    "examples/simulator.py": Shown(
        r"^conformal 80%: ([\d.]+)%.*? 90%: ([\d.]+)%.*? 95%: ([\d.]+)%", 60, 50, (0.8, 0.9, 0.95), draws=40
    ),
    "examples/wrong_error_bars.py": Shown(r"GPR-CP +([\d.]+)% outside", 188, 209, (0.5, 0.9, 0.99), outside=True),
}
