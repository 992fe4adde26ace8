from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import joblib
import pytest

import adaptor
from adaptor.executor.joblib_backend import AdaptorBackend
from adaptor.executor.session import CallFuture


@pytest.fixture
def pool() -> Iterator[Executor]:
    adaptor.register_joblib()
    with ThreadPoolExecutor(3) as made:
        yield made


def test_parallel_gets_its_results_in_order(pool: Executor) -> None:
    with joblib.parallel_config("adaptor", executor=pool, n_jobs=-1):
        found = joblib.Parallel()(joblib.delayed(pow)(n, 2) for n in range(300))
    assert found == [n * n for n in range(300)]


def test_parallel_raises_what_a_call_raises(pool: Executor) -> None:
    with joblib.parallel_config("adaptor", executor=pool, n_jobs=2), pytest.raises(ZeroDivisionError):
        joblib.Parallel()(joblib.delayed(divmod)(1, n) for n in range(5))


def test_results_come_as_a_generator(pool: Executor) -> None:
    with joblib.parallel_config("adaptor", executor=pool, n_jobs=2):
        found = joblib.Parallel(return_as="generator")(joblib.delayed(abs)(-n) for n in range(20))
        assert list(found) == list(range(20))


@pytest.mark.parametrize(("n_jobs", "effective"), [(-1, 3), (-2, 2), (-9, 1), (5, 5), (None, 1)])
def test_numbers_of_jobs_are_read_as_joblib_reads_them(
    pool: Executor, n_jobs: int | None, effective: int
) -> None:
    assert AdaptorBackend(pool).effective_n_jobs(n_jobs) == effective


def test_all_jobs_are_calls_where_one_runs_at_a_time_too() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert AdaptorBackend(pool).effective_n_jobs(-1) == 2


def test_no_jobs_and_options_of_a_given_executor_are_refused(pool: Executor) -> None:
    with pytest.raises(ValueError, match="n_jobs == 0"):
        AdaptorBackend(pool).effective_n_jobs(0)
    with pytest.raises(ValueError, match="cpus"):
        AdaptorBackend(pool, cpus=2)


def test_the_size_of_batches_begins_anew_with_each_parallel(pool: Executor) -> None:
    backend = AdaptorBackend(pool)
    backend._effective_batch_size = 32
    backend.terminate()
    assert backend.compute_batch_size() == 1


def test_a_time_out_ends_the_calls_that_run() -> None:
    """A pool whose futures tell that they are ended, as those of `adaptor.Executor` do."""
    ended: list[Future[Any]] = []

    class Never(adaptor.Executor):
        def __init__(self) -> None:
            self._max_workers = 2

        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> CallFuture[Any]:
            return CallFuture(lambda _future: False)

        def abort(self, futures: Iterable[CallFuture[Any]]) -> None:
            for future in futures:
                ended.append(future)
                future.be_cancelled()

    adaptor.register_joblib()
    with (
        joblib.parallel_config("adaptor", executor=Never(), n_jobs=2),
        pytest.raises(multiprocessing.TimeoutError),
    ):
        joblib.Parallel(timeout=0.1)(joblib.delayed(abs)(-n) for n in range(5))
    assert len(ended) >= 2
    assert all(future.cancelled() for future in ended)
