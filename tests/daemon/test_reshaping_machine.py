"""Requests that are changed while jobs start, answers are lost, hands interfere and daemons are killed.

After each look at the scheduler, memory, journal and ledger say what the scheduler has, and no budget was
ever exceeded, but by what somebody else has asked for.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from adaptor.crafting.situation import Demand, Reshape
from adaptor.daemon.step import drive, step_of
from adaptor.model import CraftedRequest, PilotState, Request
from adaptor.reports import JobState
from backends.base import ChangeRefused, SchedulerError
from tests.daemon.budgeted_site import in_every_past, steps, submit_budgeted
from tests.daemon.fake_site import FakeSite
from tests.examples import examples

requests = st.builds(Request, st.integers(1, 2), st.sampled_from([60, 300, 1200, 3000, 3600]))
FATES = {
    "taken": None,
    "refused": ChangeRefused("no"),
    "lost": SchedulerError("Socket timed out"),
    "killed": KeyboardInterrupt(),
}


class Reshaping(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="reshaping-"))
        self.site = FakeSite(self.folder / "state")
        self.by_hand = False

    def teardown(self) -> None:
        if not self.by_hand:
            in_every_past(self.site)
        self.site.journal.close()
        shutil.rmtree(self.folder)

    @initialize(credits=st.sampled_from([1.5, 3.0, 100.0]))
    def bag(self, credits: float) -> None:
        submit_budgeted(self.site, tasks=1000, credits=credits)
        self.look()
        for tag, order in {order.tag: order for order in self.site.backend.orders}.items():
            self.site.backend.asks_for(tag, order.request)

    def queued(self) -> list[int]:
        return [id for id, pilot in self.site.state.pilots.items() if pilot.state is PilotState.QUEUED]

    @precondition(lambda self: self.queued())
    @rule(
        choice=st.integers(0, 9), request=requests, fate=st.sampled_from(sorted(FATES)), applied=st.booleans()
    )
    def change(self, choice: int, request: Request, fate: str, applied: bool) -> None:
        ids, backend = self.queued(), self.site.backend
        pilot = self.site.state.pilots[ids[choice % len(ids)]]
        backend.on_reshape, backend.takes_it_all_the_same = FATES[fate], applied
        crafted = CraftedRequest(request, None, 1, "asks")
        action = Reshape(pilot.id, crafted, Demand(waiting=1, runtime=60.0, bag=pilot.bag))
        with suppress(KeyboardInterrupt):
            asyncio.run(drive(self.site.state, step_of(self.site.state).act([action])))
        if fate == "killed":
            self.site.restart()

    @precondition(lambda self: self.queued())
    @rule(choice=st.integers(0, 9))
    def a_job_starts(self, choice: int) -> None:
        ids, backend = self.queued(), self.site.backend
        tag = self.site.state.pilots[ids[choice % len(ids)]].tag
        asked = backend.reports[tag]
        backend.say(tag, JobState.RUNNING)
        backend.reports[tag] = msgspec.structs.replace(
            backend.reports[tag], processors=asked.processors, limit=asked.limit, granted=asked.limit
        )

    @precondition(lambda self: self.queued())
    @rule(choice=st.integers(0, 9), request=requests)
    def a_hand_changes_it(self, choice: int, request: Request) -> None:
        ids = self.queued()
        tag = self.site.state.pilots[ids[choice % len(ids)]].tag
        if self.site.backend.reports[tag].state is JobState.QUEUED:
            self.by_hand = True
            self.site.backend.asks_for(tag, request)
            self.look()

    @rule()
    def restart(self) -> None:
        self.site.restart()

    @rule()
    def look(self) -> None:
        backend = self.site.backend
        backend.on_reshape, backend.takes_it_all_the_same = None, False
        known = {order.tag for order in backend.orders}
        steps(self.site)
        for order in backend.orders:
            if order.tag not in known:
                backend.asks_for(order.tag, order.request)
        ledger = self.site.state.core.treasury.ledger.open_pilots
        for id, pilot in self.site.state.pilots.items():
            report, held = backend.reports[pilot.tag], ledger[id]
            p, tr = self.site.journal.connection.execute(
                "SELECT p, tr FROM pilot WHERE id = ?", (id,)
            ).fetchone()
            assert (p, tr) == (pilot.request.p, pilot.request.tr) == (held.p, held.tr)
            if report.processors is not None:
                assert p == report.processors
            if report.limit is not None:
                assert tr == report.limit
            if report.granted is not None:
                assert pilot.granted == report.granted


TestReshaping = Reshaping.TestCase
TestReshaping.settings = examples(60, stateful_step_count=25)
