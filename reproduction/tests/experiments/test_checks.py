"""Agreement and claims, on the paper's own numbers and on changed ones."""

import dataclasses

from printed_results import as_results

from reproduction.experiments.checks import agreement, claims
from reproduction.experiments.paper import Row


def anything(data_set: str, row: Row) -> bool:
    return True


def isotonic(data_set: str, row: Row) -> bool:
    return row.method == "GPR-RI"


def test_the_papers_own_numbers_agree_with_the_paper():
    counts = agreement(anything, as_results())
    assert counts.cells == counts.finite + counts.infinite == counts.miscoverage == 372
    assert counts.infinite_too == counts.infinite == 13
    assert set(counts.within.values()) == {counts.finite}


def test_deviations_are_counted_at_their_size():
    results = {key: dataclasses.replace(found, widths=1.05 * found.widths) for key, found in as_results().items()}
    counts = agreement(isotonic, results)
    assert counts.within == {3: 0, 8: 12, 10: 12, 20: 12}


def test_miscoverage_is_judged_by_its_standard_error():
    key = "servo", Row("GPR-RI", "SE")
    results = as_results()
    results[key].misses[0] += 1.0  # two runs that differ by 1: mean 0.5 off, standard error 0.5
    assert agreement(isotonic, results).miscoverage == 12
    results[key].misses[:] += 2.5
    assert agreement(isotonic, results).miscoverage == 9


def test_missing_methods_are_left_out():
    results = {key: found for key, found in as_results().items() if key[1].method in {"GPR", "GPR-CP"}}
    assert agreement(anything, results).cells == 300
    assert not any("RR-CP" in check.claim or "recalibration" in check.claim for check in claims(results))


def test_the_papers_claims_hold_in_its_own_numbers():
    checks = claims(as_results())
    assert len(checks) >= 15
    assert [check for check in checks if not check.passed] == []


def test_a_claim_fails_where_the_numbers_say_otherwise():
    results = as_results()
    results["boston", Row("GPR-CP", "SE", 2.0)].misses[:] = 20.0
    results["boston", Row("RR-CP", "SE")].widths[:] = 1.0
    failed = [check.claim for check in claims(results) if not check.passed]
    assert any("GPR-CP: well calibrated" in claim for claim in failed)
    assert any("narrower than RR-CP" in claim for claim in failed)
