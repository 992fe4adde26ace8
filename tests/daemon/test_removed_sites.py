"""Reservations at a site that left the configuration: told of once, settled when nothing runs any more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from adaptor.budget.accounting.ledger import Ledger
from adaptor.daemon.removed_sites import removed_pilots, settle_removed, settle_site, view_of
from adaptor.errors import UsageError
from adaptor.journal.credits import entries
from adaptor.model import AttemptOutcome, CraftedRequest, Request
from adaptor.processes.identity import Identity, own_identity
from adaptor.processes.notes import JOB, START
from adaptor.protocol.messages import AttemptKey, Ending, Goodbye, Leaving, Report, Result
from adaptor.reports import JobState
from adaptor.resources import Part
from backends.local.backend_type import folder_of
from backends.local.store import Job, Start, Store
from tests.daemon.budgeted_site import credits_of, in_every_past, steps, submit_budgeted
from tests.daemon.fake_site import FakeSite
from tests.daemon.lived_bags import endpoint_of, hear, hello


@pytest.fixture
def site(tmp_path: Path) -> FakeSite:
    return FakeSite(tmp_path / "state")


def leave(site: FakeSite) -> None:
    """The configuration of the next daemon lacks the site of all pilots so far."""
    with site.journal.transaction() as db:
        db.execute("UPDATE pilot SET site = 'gone'")
    site.restart()
    settle_due(site)


def reserved(site: FakeSite, *, started: bool) -> int:
    """A bag of 1 credit with a pilot in the system of the site that is gone."""
    bag = submit_budgeted(site, 1, 1)
    steps(site)
    if started:
        site.backend.say(site.backend.orders[0].tag, JobState.RUNNING)
        steps(site)
    leave(site)
    return bag


def pass_time(site: FakeSite, seconds: float) -> None:
    now: Callable[[], float] = site.state.core.now
    site.state.core.now = lambda: now() + seconds
    site.state.core.treasury._clock = site.state.core.now


def settle_due(site: FakeSite) -> int:
    return asyncio.run(settle_removed(site.state.core))


def recounts(site: FakeSite) -> bool:
    """Whether a ledger made from the journal is the one that is kept, and no budget was ever exceeded."""
    in_every_past(site)
    made = Ledger(site.journal.read(entries))
    kept = site.state.core.treasury.ledger
    return (made.open_pilots, made.of_bag(1)) == (kept.open_pilots, kept.of_bag(1))


@pytest.mark.parametrize("started", [False, True])
def test_a_reservation_is_kept_until_its_pilot_has_certainly_ended(site: FakeSite, started: bool) -> None:
    bag = reserved(site, started=started)
    before = credits_of(site, bag)
    assert before[1] > 0
    assert settle_due(site) == 0
    assert credits_of(site, bag) == before
    (pilot,) = removed_pilots(site.state.core)
    pass_time(site, pilot.due - site.state.core.now() + 1)
    assert settle_due(site) == 1
    used, left = credits_of(site, bag)
    assert left == 0
    request = site.backend.orders[0].request
    assert used == pytest.approx(request.area / 3600 if started else 0, abs=1e-6)
    assert site.states() == ["vanished"]
    assert recounts(site)
    assert settle_due(site) == 0


def test_a_pilot_that_told_of_its_tasks_is_charged_until_the_last_of_them(site: FakeSite) -> None:
    bag = reserved(site, started=True)
    (pilot,) = removed_pilots(site.state.core)
    assert pilot.started is not None
    with site.journal.transaction() as db:
        db.execute(
            "INSERT INTO attempt"
            " (bag, task, number, worker, node, pilot, leased, started, ended, wall, outcome)"
            " VALUES (?, 0, 1, 'w', 'n', ?, ?, ?, ?, 20, 'lost')",
            (bag, pilot.id, pilot.started, pilot.started, pilot.started + 20),
        )
    pass_time(site, 7200)
    assert settle_due(site) == 1
    processors = site.backend.orders[0].request.p
    assert credits_of(site, bag)[0] == pytest.approx(20 * processors / 3600, abs=1e-6)


def test_its_user_settles_it(site: FakeSite) -> None:
    bag = reserved(site, started=True)
    (pilot,) = removed_pilots(site.state.core)
    assert pilot.started is not None
    asyncio.run(settle_site(site.state.core, "gone", pilot.started + 2))
    processors = site.backend.orders[0].request.p
    assert credits_of(site, bag) == (pytest.approx(2 * processors / 3600, abs=1e-6), 0)
    assert recounts(site)
    assert removed_pilots(site.state.core) == []


def test_only_what_can_be_settled_is(site: FakeSite) -> None:
    reserved(site, started=True)
    core = site.state.core
    with pytest.raises(UsageError, match="is configured"):
        asyncio.run(settle_site(core, "here", None))
    with pytest.raises(UsageError, match="no pilot of a site 'other'"):
        asyncio.run(settle_site(core, "other", None))
    with pytest.raises(UsageError, match="in the future"):
        asyncio.run(settle_site(core, "gone", core.now() + 60))
    assert len(removed_pilots(core)) == 1


def test_it_is_told_of_once_with_what_it_reserves(site: FakeSite) -> None:
    bag = reserved(site, started=True)
    _, amount = credits_of(site, bag)
    site.restart()
    settle_due(site)
    (told,) = site.told("removed")
    assert f"it reserves {amount:g} credits until" in told
    assert "no longer has its site gone" in told
    assert "adaptor credits --settle gone" in told
    (shown,) = map(view_of, removed_pilots(site.state.core))
    assert (shown.pilot, shown.site, shown.reserved) == (1, "gone", amount)


def local_job(site: FakeSite, *starts: Start) -> None:
    """The only pilot is job 1 of a local site that leaves the configuration."""
    folder = folder_of("gone", site.directory)
    folder.parent.mkdir(mode=0o700)
    folder.mkdir(mode=0o700)
    store = Store(folder, 10.0)
    job = Job(
        id=1,
        tag=site.backend.orders[0].tag,
        p=1,
        tr=3600,
        holds=Part(node="local", processors=1),
        memory=0,
        submitted=site.state.core.now(),
        directory=str(site.directory),
        worker=("false",),
        environment={},
        grace=5.0,
        marker=str(folder / "1"),
    )
    store.write(1, JOB, job)
    for start in starts:
        store.write(1, START, start)
    with site.journal.transaction() as db:
        db.execute("UPDATE pilot SET job = '1'")


def test_a_local_pilot_whose_process_is_gone_has_ended(site: FakeSite) -> None:
    bag = submit_budgeted(site, 1, 1)
    steps(site)
    site.backend.say(site.backend.orders[0].tag, JobState.RUNNING)
    steps(site)
    gone = Identity(host=own_identity()["host"], boot="an earlier one", pid=1, ticks=1)
    local_job(site, Start(started=site.state.core.now(), supervisor=gone))
    leave(site)
    assert site.pilots() == [
        (1, "vanished", "its site left the configuration; its job on this machine has ended")
    ]
    used, left = credits_of(site, bag)
    assert (left, used) == (0, pytest.approx(0, abs=0.01))
    assert site.told("removed") == []
    assert recounts(site)


def test_a_local_pilot_that_waits_never_starts(site: FakeSite) -> None:
    submit_budgeted(site, 1, 1)
    steps(site)
    local_job(site)
    leave(site)
    assert site.states() == ["vanished"]
    assert not list(site.directory.glob("sites/gone/*.end.json"))


def test_a_local_pilot_that_still_runs_keeps_its_reservation(site: FakeSite) -> None:
    bag = submit_budgeted(site, 1, 1)
    steps(site)
    site.backend.say(site.backend.orders[0].tag, JobState.RUNNING)
    steps(site)
    local_job(site, Start(started=site.state.core.now(), supervisor=own_identity()))
    leave(site)
    assert site.states() == ["running"]
    assert credits_of(site, bag)[1] > 0
    assert len(site.told("removed")) == 1


def test_a_site_that_comes_back_is_observed_as_before(site: FakeSite) -> None:
    bag = reserved(site, started=True)
    with site.journal.transaction() as db:
        db.execute("UPDATE pilot SET site = 'here'")
    site.restart()
    site.state.core.broker.cancel(bag)
    site.backend.say(site.backend.orders[0].tag, JobState.COMPLETED)
    steps(site)
    used, left = credits_of(site, bag)
    assert left == 0
    assert 0 < used < site.backend.orders[0].request.area / 3600
    assert site.states() == ["completed"]


def test_a_settlement_is_written_whole_or_not_at_all(site: FakeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*arguments: object) -> None:
        raise RuntimeError("the daemon dies")

    bag = reserved(site, started=True)
    before = credits_of(site, bag)
    with monkeypatch.context() as patched:
        patched.setattr("adaptor.daemon.treasury.write_entry", die)
        with pytest.raises(RuntimeError):
            asyncio.run(settle_site(site.state.core, "gone", None))
    site.restart()
    assert site.states() == ["running"]
    assert credits_of(site, bag) == before
    asyncio.run(settle_site(site.state.core, "gone", None))
    assert credits_of(site, bag)[1] == 0
    assert recounts(site)


WORKER = "1-n1-1"


@pytest.fixture
def left_site(tmp_path: Path) -> FakeSite:
    """One task runs at a site that is gone after the daemon's restart."""
    made = FakeSite(tmp_path / "state")
    made.submit_bag(2)
    crafted = CraftedRequest(Request(1, 600), None, 1, "because")
    made.journal.add_pilots("here", made.state.tag_prefix, [crafted], time.time())
    made.state.load_pilots()
    hear(made, WORKER, hello(processors=1), Report(free_processors=1, free_memory=1 << 30))
    with made.journal.transaction() as db:
        db.execute("UPDATE pilot SET site = 'gone'")
    made.restart()
    return made


@pytest.mark.parametrize(
    ("ending", "why", "state"),
    [
        (Ending.EXITED, Leaving.IDLE, "done"),
        (Ending.RETURNED, Leaving.TOLD, "waiting"),
        (Ending.ENDED, Leaving.TIME_UP, "waiting"),
        (None, Leaving.SIGNAL, "waiting"),
    ],
)
def test_the_farewell_of_a_worker(
    left_site: FakeSite, ending: Ending | None, why: Leaving, state: str
) -> None:
    key, now = AttemptKey(1, 0, 1), time.time()
    results = [Result(key, ending, started=now - 5, wall=5.0, exit_code=0)] if ending else []
    hear(left_site, WORKER, Goodbye(why=why, results=results))
    assert WORKER not in left_site.state.core.broker.state.workers
    (found,) = left_site.journal.connection.execute("SELECT state FROM task WHERE number = 0").fetchone()
    assert found == state


def test_a_worker_that_falls_silent(left_site: FakeSite) -> None:
    left_site.state.core.broker.state.workers[WORKER].seen = time.time() - 1000
    asyncio.run(endpoint_of(left_site).miss_silent(30.0))
    assert WORKER not in left_site.state.core.broker.state.workers


def test_results_that_a_worker_brings_along_count(left_site: FakeSite) -> None:
    """It calls again after the restart, with a result that nobody has acknowledged."""
    left_site.state.core.broker.lost(WORKER, AttemptOutcome.LOST, time.time(), time.time())
    result = Result(AttemptKey(1, 0, 1), Ending.EXITED, started=time.time() - 5, wall=5.0, exit_code=0)
    hear(left_site, WORKER, hello(processors=1, unacknowledged=[result]))
    (found,) = left_site.journal.connection.execute("SELECT state FROM task WHERE number = 0").fetchone()
    assert found == "done"
