"""The core of the daemon: late results, tasks under which workers die, bags that pause."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor import api
from adaptor.api import TaskView
from adaptor.budget.accounting.ledger import Ledger
from adaptor.journal.credits import entries
from adaptor.journal.queries import answer
from adaptor.protocol.messages import AttemptKey, Ending, Goodbye, Leaving, Report, Result
from adaptor.reports import JobState
from tests.daemon.budgeted_site import steps, submit_budgeted, told_of
from tests.daemon.fake_site import FakeSite
from tests.daemon.lived_bags import FREE, begin, hear, hello, leased
from tests.examples import examples


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
    hear(site, "w", hello(), FREE, Report(started=started))
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
    hear(
        site,
        "w",
        Goodbye(why=Leaving.TIME_UP, results=[late]) if by == "farewell" else hello(unacknowledged=[late]),
    )
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
    hear(site, "w", hello(unacknowledged=[result(1)]))
    before, written = used_and_wasted(site), len(site.journal.read(entries))
    hear(site, "w", Goodbye(why=Leaving.TOLD, results=[result(1)]))
    assert used_and_wasted(site) == before
    assert len(site.journal.read(entries)) == written


def test_how_an_attempt_was_ended_was_said_by_the_pilot(site: FakeSite) -> None:
    charged_with_two_at_work(site)
    before = used_and_wasted(site)
    hear(site, "w", Goodbye(why=Leaving.TIME_UP, results=[result(1, ending=Ending.ENDED, exit_code=None)]))
    assert states(site)[1] == "waiting"
    assert used_and_wasted(site) == before


def test_who_nobody_knows_is_not_believed(site: FakeSite) -> None:
    charged_with_two_at_work(site)
    unknown = Result(key=AttemptKey(7, 3, 2), ending=Ending.EXITED, started=1.0, wall=1.0, exit_code=0)
    hear(site, "w", Goodbye(why=Leaving.TOLD, results=[unknown]))
    assert set(states(site)) == {"waiting"}


@examples(20)
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
            hear(site, "w", Goodbye(why=Leaving.TIME_UP, results=[told]))
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


def die_in_a_pilot(site: FakeSite, number: int) -> None:
    """A pilot starts and runs what there is; then its node fails."""
    steps(site)
    tag = site.backend.orders[-1].tag
    site.backend.say(tag, JobState.RUNNING)
    steps(site)
    hear(site, "w", hello(number), FREE, Report(started=[AttemptKey(1, 0, number)]))
    site.backend.say(tag, JobState.NODE_FAILED)
    steps(site)


def shown(site: FakeSite) -> TaskView:
    return answer(site.journal.connection, api.GetTasks(1), 0.0)[0]


def test_results_and_why_say_that_and_where_workers_died(site: FakeSite) -> None:
    site.submit_bag(1)
    die_in_a_pilot(site, 1)
    assert site.told("suspects") == [
        "its worker on node n died (node_failed) while it ran task 0 of bag 1: "
        "run last from now on, and alone after a second loss"
    ]
    assert shown(site).state == "waiting"
    die_in_a_pilot(site, 2)
    die_in_a_pilot(site, 3)
    assert site.told("suspects")[2] == (
        "its worker on node n died (node_failed) while it ran task 0 of bag 1: not tried again"
    )
    assert shown(site).state == "failed"
    assert shown(site).error == (
        "its worker died under it 3 times (last: node n, pilot 3 node_failed): not tried again; "
        "adaptor retry 1 tries it again, a larger max-lost more often"
    )
    assert shown(site).retries == 0


def test_innocent_tasks_do_not_wait_for_the_processors_beside_a_suspect(site: FakeSite) -> None:
    site.submit_bag(1)
    die_in_a_pilot(site, 1)
    die_in_a_pilot(site, 2)
    steps(site)
    site.backend.say(site.backend.orders[-1].tag, JobState.RUNNING)
    steps(site)
    hear(site, "w", hello(3), FREE, Report(started=[AttemptKey(1, 0, 3)]))
    asked = len(site.backend.orders)
    site.submit_bag(2)  # one may follow the suspect
    steps(site)
    assert site.state.core.broker.state.bags[2].waiting, "nothing is put beside the suspect"
    assert len(site.backend.orders) == asked + 1


def test_a_paused_bag_has_no_queued_request_and_gets_one_when_it_goes_on(site: FakeSite) -> None:
    bag = site.submit_bag(5)
    steps(site)
    requests = len(site.states())
    assert set(site.states()) == {"queued"}
    site.state.core.broker.pause(bag)
    asyncio.run(site.state.core.commit())
    steps(site)
    assert all(pilot.leaving for pilot in site.state.pilots.values()), "they are withdrawn"
    assert site.told("paused") == [
        f"bag {bag} is paused: its user has paused it; adaptor resume {bag} goes on"
    ]
    site.restart()
    steps(site)
    assert len(site.states()) == requests, "none is made"
    site.state.core.broker.resume(bag, time.time())
    asyncio.run(site.state.core.commit())
    steps(site)
    assert len(site.states()) > requests


def test_a_bag_that_fails_from_the_start_pauses(site: FakeSite) -> None:
    bag = site.submit_bag(40)
    worker = f"w{begin(site)}"
    ended = 0
    while keys := leased(site, worker):
        for key in keys:
            result = Result(key, Ending.EXITED, started=time.time() - 1, wall=0.5, exit_code=127)
            hear(site, worker, msgspec.structs.replace(FREE, results=[result]))
            ended += 1
    assert 10 <= ended <= 12
    (told,) = site.told("paused")
    assert f"bag {bag} is paused: its first 10 attempts all failed alike" in told
