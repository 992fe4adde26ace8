"""Several calls at a time, never more than allowed, and none after the first problem."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from adaptor.daemon.step import several
from tests.living import PATIENCE


@pytest.mark.parametrize("at_once", [1, 3])
def test_so_many_at_once_and_no_more(at_once: int) -> None:
    barrier, now, most = threading.Barrier(at_once), 0, 0

    async def work(item: int, pool: ThreadPoolExecutor) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.get_running_loop().run_in_executor(pool, lambda: barrier.wait(PATIENCE))
        now -= 1

    asyncio.run(several(work, range(4 * at_once), at_once))
    assert most == at_once


def test_nothing_begins_after_a_problem_and_what_has_begun_ends() -> None:
    begun, ended = [], []

    async def work(item: int, pool: ThreadPoolExecutor) -> None:
        begun.append(item)
        if item == 1:
            raise ValueError("no")
        await asyncio.sleep(0)
        ended.append(item)

    with pytest.raises(ValueError, match="no"):
        asyncio.run(several(work, range(10), 2))
    assert begun == [0, 1]
    assert ended == [0]
