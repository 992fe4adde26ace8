"""What type checkers know of calls: mypy tells of a line below whose error is gone."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future

import adaptor
from adaptor import Executor


def half(number: int, *, exact: bool = False) -> float:
    return number / 2 if exact else number // 2


def typed(executor: Executor) -> None:
    """Never called."""
    future: Future[float] = executor.submit(half, 3, exact=True)
    found: Iterator[float] = executor.map(half, [1, 2])
    other: Future[str] = executor.submit(half, 3)  # type: ignore[call-overload]
    words: Iterator[str] = executor.map(half, [1, 2])  # type: ignore[arg-type]
    executor.submit(half)  # type: ignore[call-overload]
    executor.submit(half, "3")  # type: ignore[call-overload]
    needs: adaptor.Resources = {"cpus": 2, "mem": "4G", "env": {"A": "b"}}
    future = executor.submit(half, 3, adaptor_resources=needs)
    future = executor.with_resources(gpus="a100:1", time=60).submit(half, 3)
    found = executor.with_resources(cpus=2).map(half, [1, 2])
    other = executor.submit(half, 3, adaptor_resources=needs)  # type: ignore[arg-type]
    executor.submit(half, 3, adaptor_resources={"cpu": 2})  # type: ignore[call-arg]
    executor.with_resources(cpus="2")  # type: ignore[arg-type]
    executor.with_resources(cpu=2)  # type: ignore[call-arg]
    adaptor.register_joblib()
    del future, found, other, words


def test_what_programs_use_is_listed() -> None:
    assert dir(adaptor) == adaptor.__all__ == ["Executor", "Resources", "__version__", "register_joblib"]
    assert all(hasattr(adaptor, name) for name in adaptor.__all__)
