"""Results that come when their pilot has ended and was charged."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adaptor.budget.accounting.ledger import Ledger
from adaptor.daemon.worker_endpoint import WorkerEndpoint
from adaptor.journal.credits import entries
from adaptor.protocol.messages import (
    AttemptKey,
    Ending,
    FromWorker,
    Goodbye,
    Hello,
    Leaving,
    Report,
    Result,
    encode,
)
from adaptor.reports import JobState
from tests.daemon.budgeted_site import steps, submit_budgeted, told_of
from tests.daemon.fake_site import FakeSite


def hear(site: FakeSite, *messages: FromWorker) -> None:
    def stall(error: Exception) -> None:
        raise error

    endpoint = WorkerEndpoint(site.state.core, {"here": site.state}, stall)
    for message in messages:
        asyncio.run(endpoint.hear([(b"w", encode(message))]))


def hello(unacknowledged: tuple[Result, ...] = ()) -> Hello:
    return Hello(
        pilot=1, node="n", pid=1, version="test", processors=2, memory=1 << 30, deadline=time.time() + 3600,
        unacknowledged=list(unacknowledged),
    )  # fmt: skip


def result(task: int, wall: float = 2.0, ending: Ending = Ending.EXITED, exit_code: int | None = 0) -> Result:
    started = time.time() - 4
    return Result(key=AttemptKey(1, task, 1), ending=ending, started=started, wall=wall, exit_code=exit_code)


def charged_with_two_at_work(site: FakeSite) -> None:
    """Pilot 1 had started tasks 0 and 1 when the scheduler said that it was over."""
    submit_budgeted(site, 4, 1)
    steps(site)
    site.backend.say(site.backend.orders[0].tag, JobState.RUNNING)
    steps(site)
    started = [AttemptKey(1, 0, 1), AttemptKey(1, 1, 1)]
    hear(site, hello(), Report(free_processors=2, free_memory=1 << 30), Report(started=started))
    site.backend.say(site.backend.orders[0].tag, JobState.COMPLETED)
    steps(site)
    assert 1 not in site.state.core.treasury.ledger.open_pilots


def used_and_wasted(site: FakeSite) -> tuple[int, int]:
    known = site.state.core.treasury.ledger.of_bag(1)
    return known.used, known.wasted


def states(site: FakeSite) -> list[str]:
    rows = site.journal.connection.execute("SELECT state FROM task WHERE bag = 1 ORDER BY number")
    return [state for (state,) in rows]


@pytest.mark.parametrize("by", ["farewell", "greeting"])
def test_a_late_result_counts_and_is_not_wasted_any_more(site: FakeSite, by: str) -> None:
    charged_with_two_at_work(site)
    used, wasted = used_and_wasted(site)
    assert used == wasted > 0
    late = result(1)
    hear(site, Goodbye(why=Leaving.TIME_UP, results=[late]) if by == "farewell" else hello((late,)))
    assert states(site)[:2] == ["waiting", "done"]
    assert used_and_wasted(site)[0] == used
    assert used_and_wasted(site)[1] < wasted
    at_site = site.state.core.treasury.ledger.at_site("here")
    assert (at_site.used, at_site.wasted) == used_and_wasted(site)
    before = told_of(site.state.core.treasury.ledger)
    site.restart()
    assert told_of(site.state.core.treasury.ledger) == before


def test_told_twice_it_counts_once(site: FakeSite) -> None:
    charged_with_two_at_work(site)
    hear(site, hello((result(1),)))
    before, written = used_and_wasted(site), len(site.journal.read(entries))
    hear(site, Goodbye(why=Leaving.TOLD, results=[result(1)]))
    assert used_and_wasted(site) == before
    assert len(site.journal.read(entries)) == written


def test_how_an_attempt_was_ended_was_said_by_the_pilot(site: FakeSite) -> None:
    charged_with_two_at_work(site)
    before = used_and_wasted(site)
    hear(site, Goodbye(why=Leaving.TIME_UP, results=[result(1, ending=Ending.ENDED, exit_code=None)]))
    assert states(site)[1] == "waiting"
    assert used_and_wasted(site) == before


def test_who_nobody_knows_is_not_believed(site: FakeSite) -> None:
    charged_with_two_at_work(site)
    unknown = Result(key=AttemptKey(7, 3, 2), ending=Ending.EXITED, started=1.0, wall=1.0, exit_code=0)
    hear(site, Goodbye(why=Leaving.TOLD, results=[unknown]))
    assert set(states(site)) == {"waiting"}


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(st.sampled_from([0, 1]), st.floats(0.1, 30), st.sampled_from([0, 0, 1]), st.booleans()),
        max_size=5,
    )
)
def test_the_sum_stays_and_the_parts_are_right(late: list[tuple[int, float, int, bool]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        site = FakeSite(Path(folder) / "state")
        charged_with_two_at_work(site)
        used, wasted = used_and_wasted(site)
        for task, wall, code, restart in late:
            told = result(task, wall, exit_code=code)
            hear(site, Goodbye(why=Leaving.TIME_UP, results=[told]))
            assert used_and_wasted(site)[0] == used
            assert 0 <= used_and_wasted(site)[1] <= wasted
            wasted = used_and_wasted(site)[1]
            if restart:
                before = told_of(site.state.core.treasury.ledger)
                site.restart()
                assert told_of(site.state.core.treasury.ledger) == before
        useful = any(state == "done" for state in states(site))
        assert (wasted < used) is useful
        assert Ledger(site.journal.read(entries)).of_bag(1).wasted == wasted
        site.journal.close()
