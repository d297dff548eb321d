"""The paper's own numbers in the shape of our results."""

import numpy as np

from reproduction.experiments.methods import LEVELS
from reproduction.experiments.paper import PAPER_LEVELS, printed
from reproduction.experiments.results import Outcome, Results


def as_results(runs: int = 2) -> Results:
    """Outcomes whose runs all give what the paper printed; nothing at other levels."""
    results: Results = {}
    for (data_set, row, _), _ in printed().items():
        widths, misses = np.full((2, runs, len(LEVELS)), np.nan)
        for percent in PAPER_LEVELS:
            cell = printed()[data_set, row, percent]
            widths[:, LEVELS.index(percent / 100)] = cell.width
            misses[:, LEVELS.index(percent / 100)] = cell.miscoverage
        results[data_set, row] = Outcome(widths, misses, np.nan, None)
    return results
