"""When a silent worker is lost: it is borne with while the daemon itself could not have heard it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from adaptor.config.schema import SiteConfig
from adaptor.crafting.heuristics import HEURISTICS, NARROW_FROM, Traits
from adaptor.daemon import worker_endpoint
from adaptor.daemon.sites import terms_of
from adaptor.daemon.spool import SpoolEndpoint
from adaptor.daemon.worker_endpoint import HEARTBEAT, WORKER_PATIENCE
from adaptor.journal.pilot_rows import pilots_in_system
from adaptor.model import CraftedRequest, PilotState, Request
from adaptor.protocol.maildir import LATENCY, Seal
from adaptor.protocol.messages import (
    AttemptKey,
    BagRemark,
    Ending,
    FromWorker,
    Goodbye,
    Hello,
    Leaving,
    Orders,
    Report,
    Result,
    ToWorker,
    Welcome,
    decode_to_worker,
    encode,
)
from adaptor.protocol.spool import Spool
from adaptor.scheduling.broker import NO_TIME, NO_WORK
from tests.daemon.fake_site import LIMITS, FakeSite, told
from tests.daemon.lived_bags import endpoint_of

TIMEOUT = 30.0
WORKER = "1-n1-1"


@pytest.fixture
def site(tmp_path: Path) -> FakeSite:
    """Its clock stands still."""
    made = FakeSite(tmp_path / "state")
    now = time.time()
    made.state.core.now = lambda: now
    made.submit_bag(1)
    crafted = CraftedRequest(Request(1, 600), None, 1, "because")
    made.journal.add_pilots("here", made.state.tag_prefix, [crafted], now)
    made.state.load_pilots()
    return made


def with_spool(site: FakeSite, tmp_path: Path) -> SpoolEndpoint:
    config = SiteConfig(backend="local", spool=str(tmp_path / "spools"))
    site.state.core.terms["here"] = terms_of(config, LIMITS)

    async def hear(_: object) -> None:
        """Nobody writes."""

    site.state.spool = SpoolEndpoint(
        Spool(tmp_path / "spools" / "spool"),
        Seal("key"),
        hear=hear,
        pilots=list,
        complain=lambda problem: None,
    )
    return site.state.spool


def greet(site: FakeSite) -> Welcome:
    """A worker says Hello; what it is told."""
    (welcome,) = [message for message in hear(site, 6000.0) if isinstance(message, Welcome)]
    return welcome


def hear(site: FakeSite, time_left: float, *more: FromWorker) -> list[ToWorker]:
    """What a worker is told that says Hello, and then more."""
    return say(site, hello(site.state.core.now() + time_left), *more)


def hello(deadline: float) -> Hello:
    return Hello(pilot=1, node="n1", pid=1, version="t", processors=1, memory=1, deadline=deadline)


def say(site: FakeSite, *messages: FromWorker, worker: str = WORKER) -> list[ToWorker]:
    """What a worker is told that says this."""
    told: list[ToWorker] = []

    async def send_worker(identity: bytes, data: bytes) -> None:
        told.append(decode_to_worker(data))

    site.state.core.server.send_worker = send_worker  # type: ignore[method-assign]
    asyncio.run(endpoint_of(site).hear([(worker.encode(), encode(message)) for message in messages]))
    return told


def test_a_pilot_whose_worker_has_called_is_shown_as_running(site: FakeSite) -> None:
    """While more requests are submitted, nobody asks the scheduler."""
    (before,) = site.journal.read(pilots_in_system)
    assert before.state == PilotState.SUBMITTING.value
    greet(site)
    (after,) = site.journal.read(pilots_in_system)
    assert after.state == PilotState.RUNNING.value
    assert after.started is not None


def test_a_worker_that_lacks_time_for_the_tasks_that_wait_leaves_at_once(site: FakeSite) -> None:
    idle = Report(free_processors=1, free_memory=1, queued=0)
    broker = site.state.core.broker
    (bag,) = broker.state.bags.values()
    broker.state.finished(bag, "here", 0, 50.0)
    (orders,) = [message for message in hear(site, 20.0, idle) if isinstance(message, Orders)]
    assert orders.leave == NO_TIME
    (orders,) = [message for message in hear(site, 6000.0, idle) if isinstance(message, Orders)]
    assert not orders.leave
    assert orders.leases


def test_a_narrow_pilot_ends_as_soon_as_no_task_waits(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = Report(free_processors=1, free_memory=1, queued=0)
    hear(site, 6000.0, idle)  # the only task runs
    site.submit_bag(0, replicas=0)
    other = hello(site.state.core.now() + 6000.0)

    def told() -> list[str]:
        messages = say(site, other, idle, worker="2-n2-1")
        return [message.leave for message in messages if isinstance(message, Orders) and message.leave]

    assert not told(), "a wide pilot waits for `idle_timeout`"
    monkeypatch.setitem(HEURISTICS, "adaptive", Traits(narrow=True))
    assert not told(), "as where few pilots are allowed"
    memory = site.state.memory
    memory.know_limits(msgspec.structs.replace(memory.limits, max_pilots=NARROW_FROM))
    assert told() == [NO_WORK]


def lost(site: FakeSite, silent_for: float) -> bool:
    worker = site.state.core.broker.state.workers[WORKER]
    worker.seen = site.state.core.now() - silent_for
    asyncio.run(endpoint_of(site).miss_silent(TIMEOUT))
    return WORKER not in site.state.core.broker.state.workers


def test_over_a_socket_the_timeout_counts(site: FakeSite) -> None:
    assert greet(site).heartbeat == HEARTBEAT
    assert not lost(site, TIMEOUT - 5)
    assert lost(site, TIMEOUT + 1)


def test_after_a_pause_of_the_daemon_itself_workers_get_the_time_again(site: FakeSite) -> None:
    """It was stopped, say: what they have sent meanwhile is heard after the first look."""
    greet(site)
    endpoint, core = endpoint_of(site), site.state.core
    began = core.now()

    def there_at(after: float) -> bool:
        core.now = lambda: began + after
        asyncio.run(endpoint.miss_silent(TIMEOUT))
        return WORKER in core.broker.state.workers

    assert there_at(1.0)
    assert there_at(601.0)
    assert all(there_at(601.0 + after) for after in range(1, int(TIMEOUT)))
    assert not there_at(601.0 + TIMEOUT)


@pytest.mark.parametrize("answers", [False, True])
def test_a_worker_that_hangs_is_told_from_one_behind_a_cut_network(
    site: FakeSite, answers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the one behind a cut network, the tasks go on, so that its pilot is kept longer."""
    monkeypatch.setattr(
        site.state.core.server, "machine_answers", lambda worker: answers and worker == WORKER
    )
    greet(site)
    assert lost(site, TIMEOUT + 1)
    (pilot,) = site.state.pilots.values()
    assert pilot.fell_silent is not answers
    told = [text for (text,) in site.journal.connection.execute("SELECT text FROM decision")]
    assert any("hangs or was stopped: it has said nothing for 31s" in text for text in told) is answers


def test_at_a_spool_several_heartbeats_and_what_is_on_its_way_are_waited_for(
    site: FakeSite, tmp_path: Path
) -> None:
    endpoint = with_spool(site, tmp_path)
    heartbeat = greet(site).heartbeat
    endpoint.heard_until = site.state.core.now()
    assert not lost(site, 3 * heartbeat + 2 * LATENCY)
    assert lost(site, 8 * heartbeat)


def test_while_the_spool_cannot_be_used_nobody_is_lost_for_a_while(site: FakeSite, tmp_path: Path) -> None:
    endpoint = with_spool(site, tmp_path)
    greet(site)
    endpoint.heard_until = site.state.core.now() - 250
    assert not lost(site, 250)
    endpoint.heard_until = site.state.core.now() - 5 * WORKER_PATIENCE
    assert lost(site, 2 * WORKER_PATIENCE)


def test_a_worker_does_not_think_that_the_daemon_is_silent_before_an_answer_can_be_there() -> None:
    terms = terms_of(SiteConfig(backend="local", spool="/m"), LIMITS)
    heartbeat = HEARTBEAT + 2 * terms.latency
    assert 3 * heartbeat > heartbeat + 2 * terms.latency, "three heartbeats are a silence"
    assert msgspec.structs.asdict(terms)["latency"] == LATENCY


@pytest.mark.parametrize("heuristic", ["static", "adaptive", "completion"])
def test_tasks_start_at_even_odds_by_completion_alone(
    heuristic: Literal["static", "adaptive", "completion"],
) -> None:
    terms = terms_of(SiteConfig(backend="local", heuristic=heuristic), LIMITS)
    assert terms.even_odds is (heuristic == "completion")


def suspects(site: FakeSite) -> list[int]:
    return list(site.state.core.broker.state.bags[1].suspects)


@pytest.mark.parametrize("cut_off", [False, True])
def test_the_silence_of_a_whole_site_makes_no_suspects(site: FakeSite, tmp_path: Path, cut_off: bool) -> None:
    endpoint = with_spool(site, tmp_path)
    greet(site)
    asked = Report(free_processors=1, free_memory=1)
    asyncio.run(endpoint_of(site).hear([(WORKER.encode(), encode(asked))]))
    endpoint.heard_until = site.state.core.now() - (5 * WORKER_PATIENCE if cut_off else 0)
    assert lost(site, WORKER_PATIENCE + TIMEOUT + 20 * LATENCY)
    assert suspects(site) == ([] if cut_off else [0])


GOODBYE = Goodbye(why=Leaving.TIME_UP, results=[], took=0.0)


@pytest.mark.parametrize("known", [True, False])
def test_every_goodbye_is_answered(site: FakeSite, known: bool) -> None:
    """A worker waits for the answer, and holds its processors as long."""
    if known:
        greet(site)
    assert say(site, GOODBYE) == [Orders()]


def test_a_worker_of_a_version_that_is_not_understood_leaves_and_its_tasks_go_back(site: FakeSite) -> None:
    """What it has done is lost, but none of its tasks is charged or suspected."""
    greet(site)
    (order,) = say(site, Report(free_processors=1, free_memory=1))
    assert isinstance(order, Orders)
    (lease,) = order.leases
    say(site, Report(started=[lease.key]))

    def garble(said: dict[str, object]) -> list[ToWorker]:
        """What a worker is told that says this in another version's way."""
        told: list[ToWorker] = []

        async def send_worker(_identity: bytes, data: bytes) -> None:
            told.append(decode_to_worker(data))

        site.state.core.server.send_worker = send_worker  # type: ignore[method-assign]
        asyncio.run(endpoint_of(site).hear([(WORKER.encode(), msgspec.msgpack.encode(said))]))
        return told

    (order,) = garble({"type": "Report", "results": "as a text"})
    assert isinstance(order, Orders)
    assert "cannot decode its messages" in order.leave
    assert WORKER in site.state.core.broker.state.workers, "it ends its tasks first"
    garble({"type": "Goodbye", "why": "in other words"})
    assert WORKER not in site.state.core.broker.state.workers
    assert suspects(site) == []
    row = site.journal.connection.execute("SELECT state, charged FROM task").fetchone()
    assert tuple(row) == ("waiting", 0)


def test_the_end_of_a_pilot_is_looked_for_when_its_last_worker_has_left(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_endpoint, "LOOKS_FOR_AN_END", (0.0, 0.01, 10_000.0))
    for name in ("w1", "w2"):
        say(site, hello(site.state.core.now() + 6000.0), worker=name)

    async def wakes_after(worker: str) -> tuple[bool, list[float]]:
        """Whether the site is woken by a goodbye at once, and when after it."""
        at, loop = list[float](), asyncio.get_running_loop()
        monkeypatch.setattr(loop, "call_later", lambda seconds, *_: at.append(seconds))
        site.state.wake.clear()
        await endpoint_of(site).hear([(worker.encode(), encode(GOODBYE))])
        return site.state.wake.is_set(), at

    assert asyncio.run(wakes_after("w1")) == (True, [])
    assert asyncio.run(wakes_after("w2")) == (False, [0.0, 0.01]), "polls do the rest"


@pytest.mark.parametrize(("poll", "at_once", "later"), [(15.0, False, [2.0]), (1.0, True, [])])
def test_pilots_that_start_together_are_looked_at_together(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch, poll: float, at_once: bool, later: list[float]
) -> None:
    memory = site.state.memory
    memory.settings = msgspec.structs.replace(memory.settings, poll=poll)

    async def scene() -> list[float]:
        at, loop = list[float](), asyncio.get_running_loop()
        monkeypatch.setattr(loop, "call_later", lambda seconds, *_: at.append(seconds))
        greeting = encode(hello(site.state.core.now() + 6000.0))
        await endpoint_of(site).hear([(WORKER.encode(), greeting)] * 2)
        return at

    site.state.wake.clear()
    assert asyncio.run(scene()) == later
    assert site.state.wake.is_set() == at_once


def test_an_end_that_was_seen_is_not_looked_for_again(site: FakeSite) -> None:
    """Each look is up to seven commands of the scheduler while tasks of other bags wait."""
    hear(site, 6000.0)
    (pilot,) = site.state.pilots
    site.state.wake.clear()
    worker_endpoint._look_for(site.state, pilot + 1)
    assert not site.state.wake.is_set()
    worker_endpoint._look_for(site.state, pilot)
    assert site.state.wake.is_set()


def test_the_site_is_woken_when_the_estimated_runtime_changes(site: FakeSite) -> None:
    """Its requests were made for another one; the simulation decides then too (`run_grid_job`)."""
    bag, endpoint = site.submit_bag(4), endpoint_of(site)

    def wakes_for(bag: int, task: int, wall: float) -> bool:
        key, started = AttemptKey(bag, task, 1), site.state.core.now() - wall
        result = Result(key=key, ending=Ending.EXITED, started=started, wall=wall, exit_code=0)
        report = Report(free_processors=1, free_memory=1, results=[result])
        site.state.wake.clear()
        asyncio.run(endpoint.hear([(WORKER.encode(), encode(report))]))
        return site.state.wake.is_set()

    hear(site, 6000.0, Report(free_processors=1, free_memory=1))
    assert wakes_for(1, 0, 20.0)
    assert wakes_for(bag, 0, 20.0)
    assert not wakes_for(bag, 1, 20.1), "about as long"
    assert wakes_for(bag, 2, 30.0)


def test_what_a_worker_says_of_a_bag_is_kept_once_and_within_bounds(site: FakeSite) -> None:
    def endpoint_says(remarks: list[BagRemark]) -> None:
        asyncio.run(endpoint.hear([(WORKER.encode(), encode(Report(remarks=remarks)))]))

    greet(site)
    endpoint = endpoint_of(site)
    remark = BagRemark(1, "node n1 reads the staged folders themselves")
    endpoint_says([remark, remark, BagRemark(7, "there is no such bag")])
    endpoint_says([remark])
    assert told(site.journal, "problem") == [remark.text]
    endpoint_says([BagRemark(1, f"{number} {'x' * 5000}") for number in range(100)])
    kept = told(site.journal, "problem")[1:]
    assert len(kept) == 10
    assert max(map(len, kept)) < 1000
