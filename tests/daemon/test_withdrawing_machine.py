"""Requests that are withdrawn all the time while jobs start, cancels are lost and daemons killed.

What the scheduler has of ours is known to the daemon, within the limit, and no request is submitted twice.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from unittest.mock import patch

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from adaptor.daemon import step as daemon_step
from adaptor.journal.pilot_rows import pilots_in_system
from adaptor.model import QueueState
from adaptor.reports import JobState
from backends.base import PilotOrder, SchedulerError
from tests.crafting.restless import restless
from tests.daemon.fake_site import LIMITS, FakeBackend, FakeSite
from tests.examples import examples

LIVE = (JobState.QUEUED, JobState.RUNNING)


class Forgetful(FakeBackend):
    """Takes orders to cancel and loses some of them, with or without a word."""

    def __init__(self) -> None:
        super().__init__()
        self.loses: str = ""
        """How the next order to cancel goes wrong: `silently`, `loudly`, `killed`; empty: it does not."""

    def cancel(self, ids: Collection[str]) -> None:
        loses, self.loses = self.loses, ""
        if loses == "silently":
            return
        if loses == "killed":
            raise KeyboardInterrupt
        if loses == "loudly":
            raise SchedulerError("scancel: error: Socket timed out on send/recv operation")
        super().cancel(ids)

    def submit(self, order: PilotOrder) -> str:
        assert order.tag not in {each.tag for each in self.orders}, "no request is submitted twice"
        return super().submit(order)

    def queue_state(self) -> QueueState:
        self._speak()
        return QueueState(now=time.time(), processors=8)

    def live(self) -> list[str]:
        return [tag for tag, report in self.reports.items() if report.state in LIVE]


class Withdrawing(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="withdrawing-"))
        self.site = FakeSite(self.folder / "state")
        self.backend = self.site.backend = Forgetful()
        self.site.state = self.site._state()

    def teardown(self) -> None:
        self.site.journal.close()
        shutil.rmtree(self.folder)

    @initialize()
    def bag(self) -> None:
        self.site.submit_bag(1000)
        self.step(1)

    @rule(steps=st.integers(1, 3))
    def step(self, steps: int) -> None:
        with restless_planner():
            for _ in range(steps):
                asyncio.run(daemon_step.step(self.site.state))

    @rule(how=st.sampled_from(["silently", "loudly"]))
    def next_cancel_is_lost(self, how: str) -> None:
        self.backend.loses = how

    @rule()
    def killed_between_the_decision_to_withdraw_and_the_order(self) -> None:
        self.backend.loses = "killed"
        with restless_planner(), suppress(KeyboardInterrupt):
            asyncio.run(daemon_step.step(self.site.state))
        self.backend.loses = ""
        self.site.restart()

    @rule()
    def restart(self) -> None:
        self.site.restart()

    @precondition(lambda self: self.backend.live())
    @rule(choice=st.integers(0, 99), end=st.booleans())
    def a_job_starts_or_ends(self, choice: int, end: bool) -> None:
        live = self.backend.live()
        tag = live[choice % len(live)]
        running = self.backend.reports[tag].state is JobState.RUNNING
        self.backend.say(tag, JobState.COMPLETED if end and running else JobState.RUNNING)

    @rule()
    def time_passes(self) -> None:
        """An order to cancel that was lost is repeated."""
        for pilot in self.site.state.pilots.values():
            if pilot.cancel_sent is not None:
                self.site.state.memory.change(pilot, cancel_sent=pilot.cancel_sent - 1000)

    @invariant()
    def the_limit_holds(self) -> None:
        assert len(self.backend.live()) <= LIMITS.max_pending_requests

    @invariant()
    def nothing_is_lost(self) -> None:
        known = {row.tag for row in self.site.journal.read(pilots_in_system)}
        assert set(self.backend.live()) <= known

    @invariant()
    def nothing_is_called_withdrawn_that_may_still_run(self) -> None:
        rows = self.site.journal.connection.execute("SELECT tag FROM pilot WHERE state = 'withdrawn'")
        assert not set(self.backend.live()).intersection(tag for (tag,) in rows)


@contextmanager
def restless_planner() -> Iterator[None]:
    with patch("adaptor.decisions.decide.plan", partial(restless, every=1)):
        yield


TestWithdrawing = Withdrawing.TestCase
TestWithdrawing.settings = examples(8, stateful_step_count=25)
