"""Calls that wait for somebody else, several at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


async def several(
    work: Callable[[T, ThreadPoolExecutor], Awaitable[None]], items: Iterable[T], at_once: int
) -> None:
    """Begin `work` on each item in order, on `at_once` of them at the same time.

    Its calls wait in threads of their own, which nobody else lacks when they hang. After the first problem it
    begins no more, waits for those that it has begun, and raises the problem.
    """
    pool = ThreadPoolExecutor(at_once, "several")
    turn = asyncio.Semaphore(at_once)
    problems: list[BaseException] = []

    async def do(item: T) -> None:
        async with turn:
            if problems:
                return
            try:
                await work(item, pool)
            except BaseException as problem:
                problems.append(problem)
                raise

    try:
        await asyncio.gather(*map(do, items), return_exceptions=True)
    finally:
        pool.shutdown(wait=False)
    if problems:
        raise problems[0]
