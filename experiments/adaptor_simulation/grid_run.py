"""One bag at one simulated site, by the steps that the daemon takes (De Rose §4.4)."""

from __future__ import annotations

import math

import msgspec

from adaptor.budget.accounting.tariffs import Tariff
from adaptor.crafting.situation import Reshape, SubmitRequest, Withdraw, Withhold
from adaptor.decisions.actions import Action
from adaptor.decisions.decide import Decision, decide
from adaptor.decisions.pilots import Pilot
from adaptor.decisions.seen_nodes import SeenNodes
from adaptor.decisions.site_settings import DonationSettings, SiteSettings
from adaptor.decisions.snapshot import Snapshot
from adaptor.donation.fitting import DAY
from adaptor.model import Request
from adaptor.reports import JobState
from adaptor_simulation.cluster import Cluster
from adaptor_simulation.driver import Decider, SimulatedDriver
from adaptor_simulation.files import ReplayError
from adaptor_simulation.grid_job import (
    INSTANT_WORKERS,
    DonatedTime,
    GridRequest,
    GridResult,
    GridTerms,
    check_grid_job,
)
from adaptor_simulation.kernels import NEVER, Array
from adaptor_simulation.pilot_requests import check_place, queue_for
from adaptor_simulation.places import Places
from adaptor_simulation.scene.site import Change, ScenePlace, SimulatedSite
from adaptor_simulation.tasks.kernel_tasks import tasks_of
from adaptor_simulation.tasks.protocol import SITE, MakeTasks, Served

INTERVAL = 600
"""Seconds after which a site that donates nodes steps again where nothing has happened: those that are idle
have become older."""
_NO_HOPE = 40 * DAY
"""Seconds without any event on an idle cluster after which no node will be used any more: it is older then
than the learned ages (`adaptor.donation.idleness.EDGES`), and each hour of the day has been."""
_CREDIT = Tariff(price_explicit=1.0, price_donated=1.0)  # read only if there is a budget


class Watched(msgspec.Struct, frozen=True):
    """The processors of a cluster that were watched until now, and what was seen of them."""

    places: Places
    seen: SeenNodes

    def fork(self, cluster: Cluster) -> Watched:
        """The same under a fork of the cluster."""
        return Watched(self.places.fork(cluster), self.seen.copy())


def run_grid_job(
    cluster: Cluster,
    runtimes: Array,
    terms: GridTerms,
    make: MakeTasks = tasks_of,
    decider: Decider = decide,
    watched: Watched | None = None,
) -> GridResult:
    """Run a bag of tasks that is submitted now, to its last task; the cluster's clock moves on.

    The site decides at the submission, whenever a pilot starts or ends and whenever the estimated
    runtime changes, which is when the daemon wakes ("every time the grid broker asks for processors
    or when a space-shared request finishes", §4.3.1); with a `poll_interval`, at its next multiple. One that
    donates nodes also decides when a local job starts or ends, and every ten minutes; the hours of the day
    are counted from second 0 of the trace.

    Args:
        cluster: usually a fork; its queue is the one that the job finds.
        runtimes: int64, whole seconds of each task, in the order in which they are handed out.
        make: who runs the tasks.
        decider: who decides.
        watched: the processors, if nodes are donated and have been watched before.

    Raises:
        ReplayError: a task fits into no request or on no node, no request is possible, or nothing more
            would ever happen; nodes are donated, and the workers are not instant.
    """
    check_place(cluster, terms)
    check_grid_job(runtimes, terms, cluster.processors)
    if terms.donation is not None and terms.workers != INSTANT_WORKERS:
        raise ReplayError("donated processors are simulated with instant workers only")
    return _GridJob(cluster, runtimes, terms, make, decider, watched).run()


class _GridJob:
    """One bag at one site: when the site steps, and what becomes of the pilots in between."""

    def __init__(
        self,
        cluster: Cluster,
        runtimes: Array,
        terms: GridTerms,
        make: MakeTasks,
        decider: Decider,
        watched: Watched | None,
    ) -> None:
        self._cluster, self._terms, self._runtimes, self._decider = cluster, terms, runtimes, decider
        self._submitted = self._looked = self._happened = cluster.now
        self._tasks = make(runtimes, terms, cluster)
        rules = terms.donation
        settings = SiteSettings(
            name=SITE,
            rules=terms.rules,
            heuristic=terms.heuristic,
            donation=None if rules is None else DonationSettings(rules=rules, preemptible=False),
        )
        place = ScenePlace(settings=settings, jobs=cluster.jobs, processors=cluster.processors)
        self._site = SimulatedSite(
            place, cluster, lambda: queue_for(cluster, terms), watched.places if watched is not None else None
        )
        self._driver = SimulatedDriver(
            {SITE: self._site},
            self._tasks.board,
            {SITE: _CREDIT},
            seen={SITE: watched.seen} if watched is not None else {},
            decider=self._decide,
        )
        self._memory = self._driver.sites[SITE]
        self._width = min(terms.rules.limits.max_proc, cluster.processors)
        self._asks_for_all = terms.static_maximum and terms.traits.fixed_shape
        self._served: dict[int, Served] = {}  # by pilot that has run
        self._reclaims = 0
        self._withheld = ""
        self._due = cluster.now  # when the site may step next
        self._wanted = True  # whether it is to step then
        self._again = False
        """Whether the last decision changed or withdrew a request: the site then steps again."""

    def run(self) -> GridResult:
        self._act()
        while not self._tasks.ended:
            self._wanted |= self._advance()
            self._act()
        failed = self._tasks.failed
        # One that starts with the end of the last task is of no use, and not counted.
        ended = [pilot for _, pilot in sorted(self._driver.ended.items())]
        donated = [self._served.get(pilot.id, Served()) for pilot in ended if pilot.node]
        return GridResult(
            submitted=self._submitted,
            turnaround=self._tasks.last_end - self._submitted,
            requests=tuple(self._request(pilot) for pilot in ended if not pilot.node),
            work=int(self._runtimes.sum() - self._runtimes[failed].sum()) * self._terms.task.processors,
            failed=len(failed),
            donated=DonatedTime(
                work=sum(served.work for served in donated),
                lost=sum(served.lost for served in donated),
                reclaims=self._reclaims,
            ),
        )

    def _request(self, pilot: Pilot) -> GridRequest:
        served, crafted = self._served.get(pilot.id, Served()), self._driver.crafted[pilot.id]
        assert pilot.job is not None
        assert pilot.ended is not None
        return GridRequest(
            job=int(pilot.job),
            p=pilot.request.p,
            tr=pilot.request.tr,
            submitted=int(pilot.submitted),
            predicted_start=crafted.predicted_start,
            started=None if pilot.started is None else int(pilot.started),
            ended=int(pilot.ended),
            tasks=served.tasks,
            work=served.work,
            reason=crafted.reason,
            reshaped=self._driver.reshaped[pilot.id],
        )

    # --- when the site steps -----------------------------------------------------------------------

    def _advance(self) -> bool:
        """Go on to the next second in which something happens to a pilot or is learned.

        Returns whether the estimated runtime has changed, or the site is to look again.
        """
        again = NEVER if not self._wanted else self._due
        look = min(max(self._due, min(again, self._next_try(), self._next_look())), NEVER - 1)
        if self._watches_nodes():
            look = min(look, self._next_change())
        elif not self._site.in_system and look == NEVER - 1:
            raise ReplayError(f"no request is made for the waiting tasks: {self._withheld}")
        self._cluster.advance_to_change(self._tasks.ahead(int(min(look, self._site.next_cut()))))
        return self._tasks.settle(self._cluster.now) or self._cluster.now >= look

    def _next_try(self) -> int:
        """Time of the next try of requests, after failures or when those of an hour are used up; NEVER:
        now."""
        now, allowance = self._cluster.now, self._memory.submissions.left_at(self._cluster.now)
        tries = [self._memory.next_try(now), allowance.again if allowance.left == 0 else math.inf]
        return NEVER if math.isinf(min(tries)) else math.ceil(min(tries))

    def _next_look(self) -> int:
        """Time of the next look at the queue if nothing happens to a pilot."""
        if not self._terms.traits.replans:
            return NEVER
        return self._looked + max(60, (self._looked - self._submitted) // 32)

    def _watches_nodes(self) -> bool:
        """Whether a node is used, or a task may run on one."""
        if self._memory.donation is None:
            return False
        return bool(self._memory.donated or self._tasks.board.donation_demands(SITE))

    def _next_change(self) -> int:
        """Time at which a local job starts or ends, or idle nodes are older.

        Raises:
            ReplayError: an idle cluster has not been used for long.
        """
        coming, now = self._cluster.next_event(), self._cluster.now
        if coming is not None or self._site.in_system:
            self._happened = now
        elif now - self._happened > _NO_HOPE:
            raise ReplayError("the rules of the donation leave no node on which the waiting tasks fit")
        looks = [NEVER if coming is None else coming]
        if self._tasks.waiting and self._site.some_unused:
            looks += [max(now + 1, self._looked + INTERVAL), *self._openings()]
        return min(looks)

    def _openings(self) -> list[int]:
        """Begins of the next hours in which nodes may be used."""
        now, rules = self._cluster.now, self._terms.donation
        return [now + math.ceil(DAY - (now - part.begin) % DAY) for part in rules.hours] if rules else []

    def _act(self) -> None:
        """Step if that is wanted and due, and again until nothing more happens in this second."""
        while self._observe() or self._wanted:
            every = self._terms.poll_interval
            if every and (late := self._cluster.now - self._due) > 0:
                self._due += math.ceil(late / every) * every
            if self._cluster.now < self._due and not self._tasks.ended:
                self._wanted = True
                return
            self._wanted = self._step()

    def _step(self) -> bool:
        """Returns whether a request was changed or withdrawn."""
        self._looked, self._again = self._cluster.now, False
        self._due = self._looked + self._terms.poll_interval
        if self._can_act():
            if self._memory.donation is not None:
                self._memory.donation.nothing_changed(float(self._cluster.now))
            self._driver.step(SITE, float(self._cluster.now))
        return self._again

    def _can_act(self) -> bool:
        """Whether there is a request to take back or one more allowed: the planner has no other means."""
        may_end = self._terms.traits.replans and self._terms.rules.may_withdraw
        most = self._terms.rules.limits.in_system
        donates = self._memory.donation is not None
        return may_end or donates or self._site.in_system < most or self._site.some_queued

    # --- what becomes of the pilots ----------------------------------------------------------------

    def _observe(self) -> bool:
        """Take in what happens to the pilots in this second; whether the site has to know of it."""
        happened = False
        while self._leave() or self._look():
            happened = True
        return happened

    def _look(self) -> bool:
        """Returns whether a formal request has started, or a donated node was taken."""
        happened = False
        for change in self._site.changes():
            if change.pilot in self._served:
                continue  # its worker left in this second, of its own
            if change.end is None:
                self._start(change)
                happened |= not change.node
            elif change.end is JobState.PREEMPTED:
                self._reclaims += 1
                self._stop(change.pilot)
                happened = True
            elif change.end is JobState.CANCELLED and self._memory.pilots[change.pilot].started is not None:
                self._stop(change.pilot)
        return happened

    def _start(self, change: Change) -> None:
        request = change.request
        self._driver.called(SITE, change.pilot, float(change.at))
        self._tasks.add_pilot(change.pilot, request.p, change.at, change.at + request.tr)

    def _stop(self, pilot: int) -> None:
        self._note(pilot, self._tasks.end_pilot(pilot, self._cluster.now))

    def _leave(self) -> bool:
        """Pilots whose workers have left end; whether there were any."""
        left = self._tasks.leave(self._cluster.now)
        for pilot in sorted(left):
            self._note(pilot, left[pilot])
            self._site.leave(pilot)
        return bool(left)

    def _note(self, pilot: int, served: Served) -> None:
        self._served[pilot] = served
        self._memory.change(self._memory.pilots[pilot], worked=served.tasks + served.cut > 0)

    # --- what the driver asks ------------------------------------------------------------------------

    def _decide(self, snapshot: Snapshot) -> Decision:
        decision = self._decider(snapshot)
        for action in decision.actions:
            self._again |= isinstance(action, Withdraw | Reshape)
            if isinstance(action, Withhold):
                self._withheld = action.reason
        if not self._asks_for_all:
            return decision
        return msgspec.structs.replace(decision, actions=tuple(map(self._for_all, decision.actions)))

    def _for_all(self, action: Action) -> Action:
        """A request asks for all processors that it may."""
        if not isinstance(action, SubmitRequest | Reshape):
            return action
        request = Request(self._width, action.crafted.request.tr)
        crafted = msgspec.structs.replace(action.crafted, request=request)
        return msgspec.structs.replace(action, crafted=crafted)
