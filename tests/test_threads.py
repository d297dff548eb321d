"""Work in threads: in order, with errors passed on, and BLAS given back as it was."""

import threading

import pytest
from threadpoolctl import threadpool_limits

from conformal_gp.threads import ROWS_FOR_BLAS_THREADS, _pool_size, blas_threads, map_threads, one_blas_thread


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 7, -1])
def test_results_come_in_order(n_jobs):
    assert list(map_threads(lambda i: i * i, range(20), n_jobs)) == [i * i for i in range(20)]
    assert list(map_threads(lambda i: i, [], n_jobs)) == []


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_each_piece_of_work_has_one_blas_thread(n_jobs):
    before = blas_threads()
    assert set(map_threads(lambda _: _pool_size(), range(6), n_jobs)) == {1}
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
        assert _pool_size() == 1
        assert blas_threads() == before  # what others may use, once they ask
    assert blas_threads() == before


def test_callers_in_several_threads_share_the_limit_and_give_it_back():
    before = blas_threads()
    first_in, second_in, first_out = threading.Event(), threading.Event(), threading.Event()
    inside = []

    def first():
        with one_blas_thread():
            first_in.set()
            second_in.wait(10)
        first_out.set()

    def second():
        first_in.wait(10)
        with one_blas_thread():
            second_in.set()
            first_out.wait(10)
            inside.append(_pool_size())

    workers = [threading.Thread(target=function) for function in (first, second)]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert inside == [1]  # the first to leave does not lift the limit of the second
        assert blas_threads() == before
    finally:
        threadpool_limits(before, user_api="blas")  # whatever happened, leave no trace for other tests


def test_limits_are_lifted_whoever_stops():
    """Results are complete before a consumer sees one: a consumer that fails, or stops, holds no limit."""
    before = blas_threads()

    def consume():
        for result in map_threads(lambda i: i, range(6), 2):
            if result == 2:
                raise KeyError(result)

    with pytest.raises(KeyError) as caught:
        consume()
    assert caught.value is not None  # its traceback still refers to the frame
    assert _pool_size() == before
    iterator = iter(map_threads(lambda i: i, range(6), 2))
    next(iterator)
    assert _pool_size() == before
    del iterator


def test_nested_calls():
    before = _pool_size()

    def outer(i):
        return sum(map_threads(lambda j: i * j, range(4), 2)) + 0 * _pool_size()

    assert list(map_threads(outer, range(4), 2)) == [0, 6, 12, 18]
    assert _pool_size() == before


def test_overlapping_calls_from_many_threads_leave_the_number_as_it_was():
    before = _pool_size()
    sizes = []

    def work(_):
        for _ in range(20):
            with one_blas_thread():
                sizes.append(_pool_size())

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert set(sizes) == {1}
    assert _pool_size() == before


def test_only_what_threadpoolctl_documents_is_used():
    import inspect

    from conformal_gp import threads

    assert "OpenBLASController" not in inspect.getsource(threads)
