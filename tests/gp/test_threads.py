"""Work in threads: in order, with errors passed on, and BLAS given back as it was."""

import pytest

from conformal_gp.gp.threads import ROWS_FOR_BLAS_THREADS, blas_threads, map_threads, one_blas_thread


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 7, -1])
def test_results_come_in_order(n_jobs):
    assert list(map_threads(lambda i: i * i, range(20), n_jobs)) == [i * i for i in range(20)]
    assert list(map_threads(lambda i: i, [], n_jobs)) == []


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_each_piece_of_work_has_one_blas_thread(n_jobs):
    before = blas_threads()
    assert set(map_threads(lambda _: blas_threads(), range(6), n_jobs)) == {1}
    assert blas_threads() == before


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_errors_are_passed_on_and_limits_lifted(n_jobs):
    before = blas_threads()

    def fail(i):
        raise KeyError(i)

    with pytest.raises(KeyError):
        list(map_threads(fail, range(3), n_jobs))
    assert blas_threads() == before


def test_only_small_matrices_are_held_to_one_blas_thread():
    before = blas_threads()
    with one_blas_thread(ROWS_FOR_BLAS_THREADS):
        assert blas_threads() == before
    with one_blas_thread(ROWS_FOR_BLAS_THREADS - 1):
        assert blas_threads() == 1
    assert blas_threads() == before
