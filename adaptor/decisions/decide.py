"""One step of one site: a frozen snapshot goes in, actions with their reasons come out. Pure.

The driver of a site, the daemon or the simulation, observes it, calls `decide`, carries the actions out in
their order, and passes `Decision.memory` to the next step of any site.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.errors import BudgetError
from adaptor.crafting.multisite.division import SitePart
from adaptor.crafting.places import Place
from adaptor.crafting.planner import plan
from adaptor.crafting.reshaping import same_request
from adaptor.crafting.situation import Demand, Reshape, SubmitRequest, TaskShape, Withdraw, Withhold
from adaptor.decisions.actions import Action, Explain
from adaptor.decisions.aims import aimed, within_together
from adaptor.decisions.caps import TooDear, left_for, within_budgets
from adaptor.decisions.donation import beside_donated, beside_held_nodes, use_and_leave
from adaptor.decisions.forecasting.told import make_forecasts
from adaptor.decisions.held_off import avoided_partitions, give_up_impossible, why_held_off, why_not_for
from adaptor.decisions.memory import Memory, MemoryDraft
from adaptor.decisions.offers import compared, questions_of
from adaptor.decisions.other_sites import answers_missed, awaited, part_of, places_of_sites
from adaptor.decisions.pilot_rules import on_pilots
from adaptor.decisions.prolonging import due_soon, prolonged
from adaptor.decisions.requests import billed, one_trial_at_a_time, shape_of
from adaptor.decisions.shares import answered
from adaptor.decisions.snapshot import Snapshot
from adaptor.forecast.bag_facts import BagFacts

_PLANNED = -1  # first number of pilots that have no number yet, in the ledger of a step; they count down
_LAST = -1_000_000  # priority below all that users give


class Decision(msgspec.Struct, frozen=True):
    """The result of one step."""

    actions: tuple[Action, ...]
    """Actions in the order in which to carry them out."""
    memory: Memory
    """Input of the next step of any site."""

    @property
    def submits(self) -> tuple[SubmitRequest, ...]:
        """The requests among the actions."""
        return tuple(action for action in self.actions if isinstance(action, SubmitRequest))


def decide(snapshot: Snapshot) -> Decision:
    """Decide what a site does now, and why.

    In this order: forecasts, pilots that are of no use, donated nodes, then the formal requests. These pause
    after failures or until another site has answered, are divided among the sites by time, or by cost for
    bags with a budget or an aim, limited by deadline and preference, planned by the heuristic, and cut to
    what the budgets leave.

    Raises:
        KeyError: a site names a heuristic that does not exist.
    """
    return _Step(snapshot).decision()


class _Step:
    """One step: collects actions, and reserves their cost in a copy of the ledger."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._draft = MemoryDraft(snapshot.memory.only_of(snapshot.bags))
        self._ledger = snapshot.ledger
        self._next = _PLANNED
        self._actions: list[Action] = []
        self._places: Mapping[str, Sequence[Place]] = {}
        """Places of all sites as the division sees them; empty: not looked at yet."""
        self._compared: list[BagFacts | None] = []
        """The bag of each group whose tasks are divided by cost and time."""
        for name, site in snapshot.sites.items():
            for submit in site.submitting:
                with contextlib.suppress(BudgetError):
                    self._reserve(name, submit)

    def decision(self) -> Decision:
        self._actions += make_forecasts(self._snapshot, self._draft)
        self._actions += on_pilots(self._snapshot)
        self._prolong()
        self._actions += give_up_impossible(self._snapshot)
        self._use_donated()
        if any(demand.wants_pilots for demand in self._snapshot.demands):
            self._actions += answers_missed(self._snapshot, self._draft)
            if why := self._why_not_yet():
                if any(demand.waiting for demand in self._snapshot.demands):
                    self._actions.append(Withhold(why))
                return Decision(tuple(self._actions), self._memory)
        self._request()
        return Decision(tuple(self._actions), self._memory)

    def _prolong(self) -> None:
        """Pay for more time of running pilots, before other requests take what is left."""
        if due := due_soon(self._snapshot):
            self._actions += prolonged(self._snapshot, self._own_ledger(), due)

    def _use_donated(self) -> None:
        """Use and leave donated nodes; they reserve their cost before the formal requests do."""
        if self._snapshot.here.donation is None:
            return
        if self._snapshot.bags:
            self._compare_places()
        for action in use_and_leave(self._snapshot, self._draft, self._own_ledger()):
            self._actions.append(action)
            if isinstance(action, SubmitRequest):
                self._reserve(self._snapshot.site, action)

    def _why_not_yet(self) -> str:
        """Why the site plans no formal request now; empty: it does."""
        snapshot = self._snapshot
        if held_off := why_held_off(snapshot.here, snapshot.now):
            return held_off
        names, woken = awaited(snapshot, self._draft)
        self._actions += woken
        return f"waits until the queue of {' and '.join(sorted(names))} is read" if names else ""

    def _request(self) -> None:
        """The formal requests of this step, or why there are none."""
        snapshot = self._snapshot
        demands = snapshot.demands
        if not (demands or snapshot.here.requests or len(snapshot.sites) > 1):
            self._draft.pause(snapshot.site, {})
            return
        part = self._part(demands)
        coming = [action for action in self._actions if isinstance(action, SubmitRequest) and action.node]
        self._draft.pause(snapshot.site, {})
        limited = tuple(self._limited(beside_donated(snapshot, demand, coming)) for demand in demands)
        queue = snapshot.queue and beside_held_nodes(snapshot.here, snapshot.queue, coming)
        avoided = avoided_partitions(snapshot.here, limited, snapshot.now)
        view = msgspec.structs.replace(snapshot.here, queue=queue, demands=limited, avoided=avoided)
        divided = part.reason if part is not None else ""
        decisions = plan(view, part)
        asked = Counter[TaskShape]()  # processors of the requests that share what is left
        before: dict[TaskShape, int | None] = {}  # what that is
        served = Counter[TaskShape]()  # tasks for which the requests of bags with few wide ones have time
        for wanted in decisions:
            if isinstance(wanted, SubmitRequest):
                request, demand = wanted.crafted.request, wanted.demand
                asked[demand.shape] += request.p
                if demand.bag is not None and demand.funds.endless:
                    shape = shape_of(snapshot.here, demand, wanted.crafted.partition)
                    served[demand.shape] += shape.holds(request.p, request.tr)
                    if demand.shape not in before:
                        before[demand.shape] = left_for(snapshot, self._ledger, demand).amount
        for wanted in decisions:
            match wanted:
                case SubmitRequest(crafted, demand):
                    share, left = crafted.request.p / asked[demand.shape], before.get(demand.shape)
                    last = math.isinf(demand.most) and served[demand.shape] >= demand.waiting
                    divided = self._issue(wanted, divided, share, left, last=last)
                case Reshape():
                    self._reshape(wanted)
                case _:
                    self._actions.append(wanted)

    def _part(self, demands: Sequence[Demand]) -> SitePart | None:
        """The part of the waiting tasks for formal requests here; by cost and time for bags with a budget or
        an aim. None: all of them, because there is no other site."""
        if len(self._snapshot.sites) > 1:
            self._compare_places()
        elif not (self._places and self._memory.shares):
            return None
        return part_of(self._snapshot, self._memory, self._places, self._compared, demands)

    def _compare_places(self) -> None:
        """Find where the tasks of bags with a budget or an aim should run, once in a step."""
        if self._places:
            return
        self._places = places_of_sites(self._snapshot, self._draft)
        self._compared = compared(self._snapshot)
        before = self._memory.shares_problem
        questions = questions_of(self._snapshot, self._places, self._compared)
        self._draft.memory = answered(self._memory, questions)
        if self._memory.shares_problem not in ("", before):
            self._actions.append(Explain("problem", self._memory.shares_problem))

    def _limited(self, demand: Demand) -> Demand:
        """The demand within what its bag aims at and may run at a time; without a request for it while such
        requests fail, so that the others go on."""
        demand = within_together(self._snapshot, aimed(self._snapshot, self._draft, demand))
        why = why_not_for(self._snapshot.here, demand, self._snapshot.now)
        if why:
            return demand.withhold(why)
        if demand.bag in self._snapshot.memory.paused.get(self._snapshot.site, {}):
            # Its budget holds none of its requests, as in the last step: they take no other bag's place.
            demand = msgspec.structs.replace(demand, priority=_LAST)
        return one_trial_at_a_time(self._snapshot.here, demand)

    def _issue(
        self, wanted: SubmitRequest, divided: str, share: float, before: int | None, *, last: bool
    ) -> str:
        """Submit what the budgets hold. Returns the reason of the division, as long as it was not told.

        `share`, `before`, `last`: see `within_budgets`.
        """
        if not wanted.demand.payers:
            return divided
        found = within_budgets(self._snapshot, self._memory, self._ledger, wanted, share, before, last=last)
        if isinstance(found, TooDear):
            self._draft.pause_bags(self._snapshot.site, wanted.demand.payers, found.reason)
            self._actions.append(Withhold(found.reason, wanted.demand))
            return divided
        if divided:
            self._actions.append(Explain("divided", divided))
        self._reserve(self._snapshot.site, found)
        self._actions.append(found)
        # The request is made: the bag may ask for the rest of what A²HA allows.
        bag = found.demand.bag
        pace = None if bag is None else self._memory.paces.get(bag)
        if bag is not None and pace is not None:
            shape = shape_of(self._snapshot.here, found.demand, found.crafted.partition)
            hosts = shape.slots(found.crafted.request.p)
            self._draft.keep_pace(bag, pace.without(hosts))
        return ""

    def _reshape(self, wanted: Reshape) -> None:
        """Change a queued request into what the budgets hold without its own reservation."""
        id, now, rules = wanted.pilot, self._snapshot.now, self._snapshot.here.rules
        pilot = next(each for each in self._snapshot.here.pilots if each.id == id)
        without, known = self._ledger.without(id), self._ledger.open_pilots[id]
        demand = msgspec.structs.replace(wanted.demand, payers=known.shares)
        submit = SubmitRequest(msgspec.structs.replace(wanted.crafted, paid=known.paid), demand)
        found = within_budgets(self._snapshot, self._memory, without, submit)
        if isinstance(found, TooDear):
            self._draft.pause_bags(self._snapshot.site, wanted.demand.payers, found.reason)
            self._actions.append(Withhold(found.reason, wanted.demand))
            if pilot.request.tr < wanted.demand.shortest:
                self._actions.append(Withdraw(id, wanted.crafted.reason))
        elif same_request(rules, pilot.request, found.crafted.request):
            self._actions.append(Withhold(found.crafted.reason, wanted.demand))
        else:
            self._own_ledger().change(id, billed(rules, found.crafted.request), now)
            self._actions.append(Reshape(id, found.crafted, wanted.demand))

    def _reserve(self, site: str, submit: SubmitRequest) -> None:
        """Reserve what a request can cost, so that the next request of this step sees the rest."""
        request, paid = billed(self._snapshot.sites[site].rules, submit.crafted.request), submit.crafted.paid
        payers, now = submit.demand.payers, self._snapshot.now
        self._own_ledger().reserve(self._next, site, request, submit.kind, payers, now, submit.per, paid)
        self._next -= 1

    def _own_ledger(self) -> Ledger:
        """The ledger to reserve in: a copy of the snapshot's from the first time on."""
        if self._ledger is self._snapshot.ledger:
            self._ledger = self._ledger.fork()
        return self._ledger

    @property
    def _memory(self) -> Memory:
        return self._draft.memory
