"""The comparison on real tables: its encoding, its splits, its measures and its arithmetic, on one table."""

import numpy as np
import pandas as pd
import pytest
from benchmarks.real import encoding, measure, page, seeds, summary
from benchmarks.real.__main__ import tasks
from benchmarks.real.ours import DEFAULT
from benchmarks.real.peers import PEERS, Method, _conformalised, _quantiles
from benchmarks.real.tables import ALL, MORE, TABLES, Table

DIABETES = TABLES[0]
PEER, OTHER = "CQR, LightGBM", "CV+, forest"


def _constant(X, y, X_new, levels, seed):
    half = np.outer(np.ones(len(X_new)), np.array(levels) * y.std() * 2)
    return np.stack([y.mean() - half, y.mean() + half], axis=1)


def _failing(X, y, X_new, levels, seed):
    raise ValueError("too few rows")


def _run(method, split, score):
    parts = {"fifths": [[[4, 4, 4], 4]] * 5, "categories": [[[30, 24, 12], 30], [[40, 40, 40], 40]]}
    return {"table": "diabetes", "split": split, "method": method, "rows": 332, "seconds": 1.0, **parts} | {
        name: [value] * 3 for name, value in (("covered", 1.0), ("width", score), ("score", score))
    }


def test_names_are_unique_and_no_label_is_an_input():
    assert len({table.key for table in ALL}) == len(ALL) == len(TABLES) + len(MORE) == 70
    assert all(table.label not in table.left_out for table in ALL)


def test_encoding_follows_its_rule(monkeypatch):
    frame = pd.DataFrame(
        {
            "label": [1.0, 2.0, 3.0, None] * 10,
            "number": np.arange(40),
            "two": ["b", "a"] * 20,
            "three": (["x", "y", "z"] * 14)[:40],
            "name": [f"row {i}" for i in range(40)],
            "same": 7,
            "holes": [None] * 10 + [1.0] * 30,
            "few holes": [None] + [2.0, 3.0, 4.0] * 13,
            "id": np.arange(40),
        }
    )
    monkeypatch.setattr(encoding, "read", lambda table: frame)
    inputs, labels = encoding.encode(Table("here", "made up", "label", ("id",)))
    assert list(inputs) == ["number", "two=b", "three=x", "three=y", "three=z", "few holes"]
    assert len(labels) == 29  # ten rows lack the label, one a value of a column that is kept
    assert inputs.notna().all(axis=None)


def test_four_splits_in_a_row_share_no_test_row():
    splits = [encoding.split(DIABETES, number) for number in range(5)]
    tested = np.concatenate([np.column_stack([rows.X_test, rows.y_test]) for rows in splits[:4]])
    assert len(np.unique(tested, axis=0)) == len(tested) == 440
    assert all(len(rows.y) + len(rows.y_test) == 442 for rows in splits)
    assert not np.array_equal(splits[0].y_test, splits[4].y_test)


def test_a_run_counts_in_fifths_and_keeps_errors(monkeypatch):
    monkeypatch.setattr(measure, "METHODS", {"constant": Method(_constant), "failing": Method(_failing)})
    done = measure.run(DIABETES, 0, "constant")
    assert sum(part[1] for part in done["fifths"]) == 110
    for level in range(3):
        assert sum(part[0][level] for part in done["fifths"]) == round(110 * done["covered"][level])
    assert measure.run(DIABETES, 0, "failing")["error"] == "ValueError: too few rows"


def test_a_run_counts_in_categories(monkeypatch):
    monkeypatch.setattr(measure, "METHODS", {"constant": Method(_constant)})
    rows = encoding.split(DIABETES, 0)
    found = measure.run(DIABETES, 0, "constant")["categories"]
    inside = np.abs(rows.y_test - rows.y.mean()) <= 0.9 * rows.y.std() * 2
    sex = rows.X_test[:, list(encoding.encode(DIABETES)[0]).index("sex")]
    assert [size for _, size in found] == [(sex == value).sum() for value in (1.0, 2.0)]
    assert [counts[1] for counts, _ in found] == [inside[sex == value].sum() for value in (1.0, 2.0)]


def test_the_worst_category_has_fifty_rows_of_all_splits():
    runs = [_run(DEFAULT, split, 1.0) for split in range(2)]
    assert summary.cells(runs).loc[0, "worst category 90%"] == 48 / 60
    assert np.isnan(summary.cells(runs[:1]).loc[0, "worst category 90%"])


def test_quantiles_are_moved_by_the_score_of_the_conformal_rank():
    rng = np.random.default_rng(0)
    levels = (0.8, 0.95)
    y, held_out, new = rng.normal(size=19), np.sort(rng.normal(size=(19, 4))), np.sort(rng.normal(size=(5, 4)))
    assert np.allclose(_quantiles(levels), [0.1, 0.9, 0.025, 0.975])
    ends = _conformalised(held_out, y, new, levels)
    for i, rank in enumerate((16, 19)):  # of 20 ranks, 0.8 and 0.95
        errors = [max(row[2 * i] - value, value - row[2 * i + 1]) for row, value in zip(held_out, y, strict=True)]
        assert np.allclose(ends[:, 0, i], new[:, 2 * i] - sorted(errors)[rank - 1])
        assert np.allclose(ends[:, 1, i], new[:, 2 * i + 1] + sorted(errors)[rank - 1])
    assert np.isinf(_conformalised(held_out[:18], y[:18], new, levels)[:, :, 1]).all()


def test_slow_methods_are_not_due_on_large_tables():
    names = [name for name, _ in tasks((DIABETES,), [DEFAULT, "gpyconform"], 2)]
    assert names == ["diabetes/0/conformal-gp", "diabetes/1/conformal-gp"]


def test_only_splits_that_all_have_finished_count():
    runs = [_run(DEFAULT, 0, 2.0), _run(DEFAULT, 1, 100.0), _run(PEER, 0, 3.0), _run(OTHER, 0, 4.0)]
    table = summary.cells(runs).set_index("method")
    assert table.loc[DEFAULT, "score 90%"] == 2.0
    best = summary.best_peer(summary.scores(table.reset_index()))
    assert best.loc["diabetes"].tolist() == [PEER, 3.0]
    over = summary.over_tables(table.reset_index()).set_index("method")
    assert over.loc[OTHER, "score 90%"] == pytest.approx(2.0)
    assert over.loc[OTHER, "default ahead"] == 1


def test_a_table_counts_when_all_who_are_due_have_finished():
    due = [DEFAULT, *(name for name, peer in PEERS.items() if peer.most_rows >= 332)]
    runs = [_run(method, 0, 1.0) for method in due]
    assert summary.whole(runs) == runs
    assert summary.whole(runs[:-1]) == []


def test_a_method_that_fails_on_one_split_has_lost_the_table(tmp_path):
    failed = {"table": "diabetes", "split": 1, "method": PEER, "rows": 332, "error": "ValueError: too few rows"}
    runs = [_run(DEFAULT, 0, 2.0), _run(DEFAULT, 1, 2.0), _run(PEER, 0, 1.0), failed, _run(OTHER, 0, 3.0)]
    runs.append(_run(OTHER, 1, 3.0))
    assert np.isinf(summary.cells(runs).set_index("method").loc[PEER, "score 90%"])
    page.write(runs, tmp_path)
    text = (tmp_path / "results.md").read_text()
    assert "| conformal-gp | 90% | 0.667 | 1 of 1 | 0.667 | 1 of 1 |" in text
    assert "CQR, LightGBM on diabetes, split 1: ValueError: too few rows" in text


def test_labels_are_compared_on_the_seeds_that_all_have():
    usual = {"table": DIABETES.key, "rows": 332, "covered": 0.9, "error": 1.0, "seconds": 2.0}
    scores = {"LightGBM": [2.0, 4.0], "before": [1.0, 9.0], "after": [1.5]}
    runs = [
        usual | {"label": label, "seed": seed, "score": score}
        for label, each in scores.items()
        for seed, score in enumerate(each)
    ]
    before, after = (seeds.summary(runs, (DIABETES,), label).iloc[0] for label in ("before", "after"))
    assert (before["score"], after["score"]) == (0.5, 0.75)
    assert (before["score by seeds"], after["score by seeds"]) == (9.0, 1.0)
    assert before["seeds"] == "1 of 2"
    assert len(seeds.summary(runs, TABLES[:3], "before")) == 1  # tables that were not run are left out


def test_tables_that_choose_and_tables_that_count_are_different():
    assert not {table.key for table in seeds.CHOOSING} & {table.key for table in (*ALL, *seeds.COUNTING)}
    assert not {table.key for table in MORE} & {table.key for table in seeds.COUNTING}
