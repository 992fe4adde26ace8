"""How long local jobs run: kept over restarts without names, read once from the scheduler's records."""

from __future__ import annotations

import asyncio
import threading

import msgspec
import pytest

from adaptor.crafting.futures.run_shares import KEPT, MOST, Ran
from adaptor.daemon.observing import keep_learned, read_history
from adaptor.journal.pilot_rows import local_runs
from adaptor.model import EndedJob
from backends.base import SchedulerError
from tests.daemon.fake_site import FakeSite


def test_what_was_learned_is_there_after_a_restart_and_names_nobody(site: FakeSite) -> None:
    site.backend.ended = [EndedJob("ann-the-user", 600.0, 150.0)] * 20
    asyncio.run(read_history(site.state))
    keep_learned(site.state)
    before = site.state.memory.jobs.of_user("ann-the-user", 600.0)
    site.restart()
    assert len(site.state.memory.jobs) == 20
    assert site.state.memory.jobs.of_user("ann-the-user", 600.0) == before
    assert b"ann-the-user" not in b"".join(path.read_bytes() for path in site.directory.glob("journal*"))


def test_only_the_newest_are_kept(site: FakeSite) -> None:
    site.journal.keep_local_runs("there", [Ran("", 60, 0.5)])
    site.journal.keep_local_runs("here", [Ran("", 60, 0.1)] * 5)
    site.journal.keep_local_runs("here", [Ran("x", 60, 0.9)] * KEPT)
    assert site.journal.read(local_runs, "here") == [Ran("x", 60, 0.9)] * KEPT
    assert site.journal.read(local_runs, "there") == [Ran("", 60, 0.5)]


def test_records_are_not_asked_where_the_site_forbids_it_or_enough_is_known(site: FakeSite) -> None:
    site.backend.ended = [EndedJob("ann", 600.0, 150.0)] * 20
    site.state.config = msgspec.structs.replace(site.state.config, read_history=False)
    asyncio.run(read_history(site.state))
    assert len(site.state.memory.jobs) == 0
    site.journal.keep_local_runs("here", [Ran("", 60, 0.5)] * MOST)
    site.restart()
    asyncio.run(read_history(site.state))
    assert len(site.state.memory.jobs) == MOST


@pytest.mark.parametrize("problem", [SchedulerError("sacct: no accounting"), ZeroDivisionError()])
def test_records_that_cannot_be_read_harm_nothing(site: FakeSite, problem: Exception) -> None:
    site.backend.ended_problem = problem
    asyncio.run(read_history(site.state))
    assert len(site.state.memory.jobs) == 0


def test_records_that_hang_hold_no_other_question_up(site: FakeSite) -> None:
    go_on = threading.Event()
    site.backend.ended_waits = go_on

    async def meanwhile() -> bool:
        reading = asyncio.create_task(read_history(site.state))
        await asyncio.sleep(0)
        answered = await site.state.ask(site.backend.queue_state) is not None
        pending = not reading.done()
        go_on.set()
        await reading
        return answered and pending

    assert asyncio.run(meanwhile())
