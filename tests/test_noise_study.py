"""The study of noise that differs from row to row: its draws and its arithmetic."""

from itertools import product

import numpy as np
import pytest
from studies import noise

NUMBERS = {"width": "2.0", "score": "3.0", "evaluations": "10", "varies": "0"}


def _results(n_rows=199, **of_varying):
    rows = []
    for kind, seed, model in product(noise.NOISES, "12", noise.models_for(n_rows)):
        fifths = {f"fifth_{i}": "0.9" if seed == "1" else "0.8" for i in range(1, 6)}
        row = {"noise": kind, "inputs": "1", "seed": seed, "model": model, **NUMBERS, **fifths}
        rows.append(row | (of_varying if model.startswith("varying") else {}))
    return rows


@pytest.mark.parametrize("kind", noise.NOISES)
@pytest.mark.parametrize("n_inputs", noise.SIGNALS)
def test_draws_repeat_and_have_the_noise_that_they_say(kind, n_inputs):
    X, y, sd = noise.draw(kind, n_inputs, 3)
    again = noise.draw(kind, n_inputs, 3)
    for one, other in zip((X, y, sd), again, strict=True):
        np.testing.assert_array_equal(one, other)
    assert X.shape == (699, n_inputs)
    assert (sd > 0.0).all()
    assert (np.ptp(sd) == 0.0) == (kind == "constant")


def test_worst_fifths_and_widths():
    found = noise.cells(_results(width="1.0", fifth_2="0.4", varies="1"))
    line = noise.table(found)[2]
    assert line.startswith("| log-linear | 1 | 85%, 1.00 |")
    assert "| 40%, 0.50 |" in line
    assert line.endswith("| 100% |")


def test_prices_and_standard_errors():
    told = "\n".join(noise.summary(noise.cells(_results(width="2.2", evaluations="15"))))
    assert "default: coverage 85.0% with a standard error of 2.2% in all, at least -1.0 standard errors" in told
    assert "default, where noise differs: worst fifth 85% in the mean, 85% at least; interval score 1.00" in told
    assert "varying beside constant: widths under constant noise 1.100 to 1.100 times, likelihoods 1.50 times" in told


def test_with_few_rows_noise_that_varies_inside_the_bag_is_beside_the_default():
    found = noise.cells(_results(79, width="2.2", varies="1"))
    assert "| default | constant | varying | varying inside | known | varies |" in noise.table(found)[0]
    assert noise.table(found)[2].endswith("| 100% |")
    assert "varying inside beside default: widths under constant noise 1.100 to 1.100 times" in noise.summary(found)[-1]


def test_only_draws_that_all_models_have_count():
    results = _results()
    found = noise.cells(results[:-1])
    assert found["constant", 1]["default"].shape == (1, 9)
    assert found["log-linear", 1]["default"].shape == (2, 9)


def test_a_run(monkeypatch):
    monkeypatch.setattr(noise, "TEST_ROWS", 40)
    found = noise.run("log-linear", 1, 1, "varying")
    assert set(found) == set(noise.FIELDS)
    assert found["evaluations"] > 10
    assert 0.5 < np.mean([found[f"fifth_{i}"] for i in range(1, 6)]) <= 1.0
