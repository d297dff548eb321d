"""Model files with something wrong in them, a hundred thousand times."""

import faulthandler

import pytest

from model_fuzz import mutant, outcome

BLOCKS, MUTANTS = 50, 2000


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS))
def test_mutants_are_refused_or_predict(block):
    """Each gives a model that predicts, or a ModelFileError; never another error, and never no end."""
    first = 1_000_000 + block * MUTANTS
    for seed in range(first, first + MUTANTS):
        faulthandler.dump_traceback_later(60, exit=True)
        try:
            outcome(mutant(seed))
        except Exception as error:
            raise AssertionError(f"mutant({seed}) is neither refused nor a model that predicts") from error
        finally:
            faulthandler.cancel_dump_traceback_later()
