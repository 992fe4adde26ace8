"""Never above a budget: requests and leases of idle nodes, crashes, new prices, a clock that is set back."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from unittest import mock

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adaptor.donation.situation import NodeUse
from adaptor.model import Limits
from adaptor.reports import JobState
from adaptor.units import Duration
from backends.base import SubmitRefused
from tests.daemon import donating_site
from tests.daemon.budgeted_site import in_every_past, set_budget, told_of
from tests.daemon.donating_site import DonatingSite
from tests.examples import examples

Event = st.sampled_from(["step", "start", "end", "take", "idle", "kill", "price", "back", "refuse", "raise"])


class Machine:
    """A site that lends its idle nodes and takes requests, with bags that have budgets."""

    def __init__(self, folder: Path, budgets: list[float]) -> None:
        self.set_back = 0.0
        self.site = DonatingSite(folder / "state")
        self._price(2)
        self.site.restart()
        allocations = ("mixed", "transparent", "explicit")
        self.bags = [
            self.site.submit(40, allocations[number % 3], deadline=1e12 if number % 2 else None)
            for number in range(len(budgets))
        ]
        for bag, credits in zip(self.bags, budgets, strict=True):
            set_budget(self.site, bag, credits)

    def happen(self, event: str, number: int) -> None:
        backend = self.site.backend
        match event:
            case "start" | "end":
                self._say(JobState.RUNNING if event == "start" else JobState.COMPLETED, number)
            case "take" | "idle":
                backend.set(f"n{number % 4 + 1}", NodeUse.TAKEN if event == "take" else NodeUse.IDLE)
            case "kill":
                self.site.restart()
            case "price":
                self._price(number + 1)
                self.site.restart()
            case "back":
                self.set_back += 600.0 * number
            case "raise":
                bag = self.bags[number % len(self.bags)]
                balance = self.site.state.core.treasury.ledger.budget_of(bag)
                assert balance is not None
                set_budget(self.site, bag, (balance.used + balance.reserved) / 1e6 + 0.1)
        backend.on_submit = SubmitRefused("no") if event == "refuse" else None
        self.site.state.memory.refusals.keep(())
        self.site.step()

    def _price(self, explicit: int) -> None:
        price = msgspec.structs.replace(
            self.site.config.price, explicit=float(explicit), donated=explicit / 4
        )
        self.site.config = msgspec.structs.replace(
            self.site.config, price=price, charging_unit=Duration(600 if explicit % 2 else 1)
        )

    def _say(self, state: JobState, number: int) -> None:
        """A job starts, or ends after some part of its time."""
        backend = self.site.backend
        orders = [
            order
            for order in backend.orders
            if order.tag in backend.reports and backend.reports[order.tag].state.ended is None
        ]
        if orders:
            order = orders[number % len(orders)]
            backend.say(order.tag, state)
            start = time.time() - order.request.tr * number / 10
            backend.reports[order.tag] = msgspec.structs.replace(backend.reports[order.tag], start=start)


@examples(40)
@given(
    budgets=st.lists(st.floats(0.05, 6), min_size=1, max_size=3),
    events=st.lists(st.tuples(Event, st.integers(0, 9)), max_size=30),
)
def test_never_above_budget_with_pilots_crashes_new_prices_and_a_clock_set_back(
    budgets: list[float], events: list[tuple[str, int]]
) -> None:
    now = time.time
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(donating_site, "LIMITS", Limits(max_pending_requests=2, max_proc=4, max_tr=7200)),
    ):
        machine = Machine(Path(folder), budgets)

        def clock() -> float:
            return now() - machine.set_back

        with mock.patch("time.time", clock):
            for event, number in events:
                machine.happen(event, number)
                for balance in machine.site.state.core.treasury.ledger.balances(time.time()):
                    assert balance.left >= 0, (event, number, balance)
            in_every_past(machine.site)
            before = told_of(machine.site.state.core.treasury.ledger)
            machine.site.restart()
            assert told_of(machine.site.state.core.treasury.ledger) == before
        machine.site.journal.close()
