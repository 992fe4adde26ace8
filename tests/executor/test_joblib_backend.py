from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor

import joblib
import pytest

import adaptor
from adaptor.executor.joblib_backend import AdaptorBackend


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


def test_no_jobs_and_options_of_a_given_executor_are_refused(pool: Executor) -> None:
    with pytest.raises(ValueError, match="n_jobs == 0"):
        AdaptorBackend(pool).effective_n_jobs(0)
    with pytest.raises(ValueError, match="cpus"):
        AdaptorBackend(pool, cpus=2)
