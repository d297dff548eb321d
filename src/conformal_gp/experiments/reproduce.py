"""Run the experiments behind selected tables and figures, and write these."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from conformal_gp.experiments import report
from conformal_gp.experiments.protocol import TABLES, one_fold, tasks
from conformal_gp.experiments.runner import run

SELECTIONS = (*TABLES, "figures", "all")
QUICK_FOLDS = 2


def reproduce(
    selection: Sequence[str],
    *,
    runs: int,
    jobs: int,
    out: Path,
    raw: Path | None = None,
    seed: int = 0,
    cluster: str | None = None,
    quick: bool = False,
    command: str = "",
) -> str:
    """Run the paper's evaluation again, and return the page that summarises it.

    Parameters
    ----------
    selection : sequence of str
        Some of "table1" to "table4", "figures" and "all".
    runs : int
        Runs of ten-fold cross-validation.
    jobs : int
        Number of processes; -1 is one per core. Results do not depend on it.
    out : Path
        Folder for tables, figures and the page.
    raw : Path or None, default=None
        File of the folds' results, from which an interrupted run resumes. None is ``folds.jsonl`` in ``out``.
    seed : int, default=0
        Seed of all splits, starts and draws.
    cluster : str or None, default=None
        Address of a Dask scheduler that runs the folds.
    quick : bool, default=False
        Take only two folds of one run, as a sample.
    command : str, default=""
        The command, as the page shows it.
    """
    unknown = set(selection) - set(SELECTIONS)
    if unknown or not selection:
        raise ValueError(f"selection must be some of {', '.join(SELECTIONS)}; got {', '.join(selection) or 'nothing'}.")
    if jobs == 0:
        raise ValueError("jobs must be a number of processes, or -1 for one per core; got 0.")
    chosen = [table for table in TABLES if table in selection or "all" in selection]
    draw = bool({"figures", "all"} & set(selection))
    # The figures show all methods on the benchmark data sets.
    needed = [table for table in TABLES if table in chosen or (draw and table in ("table3", "table4"))]
    folds = run(
        raw or out / "folds.jsonl",
        tasks(
            [data_set for table in needed for data_set in TABLES[table]],
            runs=1 if quick else runs,
            seed=seed,
            most_folds=QUICK_FOLDS if quick else None,
        ),
        one_fold,
        jobs,
        cluster,
    )
    return report.write(folds, out, selection=chosen, draw=draw, command=command, sample=quick)
