"""What a driver remembers of a site that donates idle nodes: idle periods, failures. Pure.

Times are epoch seconds, and arguments.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from adaptor.backoff import Backoff
from adaptor.decisions.pilots import Pilot
from adaptor.donation.hours import closes
from adaptor.donation.idleness import IdleLearner, Idleness
from adaptor.donation.situation import DonatedUse, DonationRules, NodeUse, NodeView
from adaptor.model import PilotState
from adaptor.reports import NodeReport
from adaptor.scheduling.donation_facts import DonatedNode
from adaptor.scheduling.workers import Worker

_KEEP = 300.0
"""Seconds between two times at which what was learned is written down."""
_HANDOVER = 5.0
"""Seconds between our leaving a node and the start of the local job that wanted it, at most."""
_TELL = 60.0
"""Seconds of an idle period that is not over after which the learner is told of it."""
_BLIND = 300.0
"""Seconds without an observation after which idle periods begin anew."""

Workers = Mapping[int, Sequence[Worker]]
"""By pilot."""


class DonationMemory:
    """Failures, idle periods, and what the learner of the site makes of them."""

    def __init__(self, rules: DonationRules, known: Idleness | None, now: float) -> None:
        """`known`: what was learned before, None: nothing."""
        self.rules = rules
        self.learner = IdleLearner(known)
        self.fruitless = Backoff(first=60, most=3600, tolerated=2)
        """Donated nodes in a row on which no task ran."""
        self.failing = Backoff(first=60, most=900, tolerated=10)
        """Submissions for any donated node in a row that failed."""
        self.reason = ""
        """Why no more nodes are used for now; empty: nothing waits, or nothing stands in the way."""
        self.row: int | None = None
        """Where that stands in the journal."""
        self.idle: int | None = None
        """Idle nodes that are not used, as last seen; None: never."""
        self.observed: float | None = None
        """When the nodes were last seen."""
        self.reports: Sequence[NodeReport] | None = ()
        """As of this step; None: the scheduler does not answer."""
        self.asked = False
        """Whether anybody has asked for the nodes in this step."""
        self._refusals: dict[str, Backoff] = defaultdict(lambda: Backoff(first=30, most=900))
        self._stuck: dict[str, Backoff] = {}
        """Of nodes whose pilots were taken by the scheduler and did not start."""
        self._since: dict[str, float] = {}
        """Since when nodes have been idle but for us."""
        self._given_back: dict[str, float] = {}
        """When nodes were given back to a local job that may not be seen there yet."""
        self._told: dict[str, float] = {}
        """Up to which age of that the learner knows."""
        self._kept = now

    def refusals(self, node: str) -> Backoff:
        """Of the pilots for a node."""
        return self._refusals[node]

    def submitted(self, node: str) -> None:
        """A pilot for a node was taken."""
        self.refusals(node).succeeded()
        self.failing.succeeded()

    def not_submitted(self, node: str, reason: str, now: float) -> None:
        """A pilot for a node was not taken, or nobody knows whether it was."""
        self.refusals(node).failed(now, reason)
        self.failing.failed(now, reason)

    def give_back(self, node: str, at: float) -> None:
        """A local job has made one of our pilots leave."""
        self._given_back[node] = at

    def waited_in_vain(self, node: str, now: float) -> None:
        """A pilot did not start; formal requests take the tasks until another is tried there."""
        self._stuck.setdefault(node, Backoff(first=60, most=3600)).failed(now, "it did not start")

    def idle_since(self, node: str) -> float | None:
        return self._since.get(node)

    def closes(self, now: float, midnight: float) -> float:
        """Until when nodes may be used by the hours of the day."""
        return closes(self.rules.hours, now, midnight)

    def observe(
        self,
        reports: Sequence[NodeReport] | None,
        pilots: Collection[Pilot],
        workers: Workers,
        now: float,
    ) -> list[Pilot]:
        """Take in what the scheduler says of the nodes now; None: it does not answer.

        `pilots` are those on donated nodes. Returns them by what is known of them now.
        """
        self.reports, self.asked = reports, True
        watched = [self._watched(pilot, workers, now) for pilot in pilots]
        if reports is None:
            return watched
        self.observed = now
        gone = set(self._since)
        for report in reports:
            gone.discard(report.name)
            if report.use is NodeUse.IDLE:
                self._is_idle(report.name, now)
            else:
                self._is_not(report.name, now, taken=report.use is NodeUse.TAKEN)
        for node in gone:
            self._is_not(node, now, taken=False)
        ours = {pilot.node for pilot in pilots}
        self.idle = sum(report.use is NodeUse.IDLE and report.name not in ours for report in reports)
        uses = {report.name: report.use for report in reports}
        return [_wished(pilot, uses.get(pilot.node), now) for pilot in watched]

    def look_away(self) -> None:
        """Nobody asks for the nodes in this step."""
        self.reports, self.asked = (), False

    def is_to_be_kept(self, now: float) -> bool:
        """Whether it is time to write down what was learned, which is taken to be done then."""
        if now - self._kept <= _KEEP:
            return False
        self._kept = now
        return True

    def before_looking(self, pilots: Iterable[Pilot], now: float) -> None:
        """Where the nodes have not been looked at for long, their idle periods begin anew.

        Nobody looks while nothing waits, or while the scheduler does not answer. A node that was used
        before the daemon's restart has been idle for as long, at least.
        """
        if self.observed is not None and abs(now - self.observed) > _BLIND:
            self._since.clear()
            self._told.clear()
        for pilot in pilots:
            self._since.setdefault(pilot.node, pilot.since)
            self._told.setdefault(pilot.node, now - pilot.since)

    def views(self, pilots: Collection[Pilot], workers: Workers, now: float) -> tuple[NodeView, ...] | None:
        """The nodes as the donation decides on them; None: the scheduler does not answer."""
        if self.reports is None:
            return None
        used = {pilot.node: pilot for pilot in pilots}
        shown = [self._view(report, used.get(report.name), workers, now) for report in self.reports]
        named = {report.name for report in self.reports}
        return (*shown, *(_unknown(pilot) for node, pilot in used.items() if node not in named))

    def taken(self) -> frozenset[str]:
        """Nodes that a local job has, or waits for."""
        return frozenset(each.name for each in self.reports or () if each.use is NodeUse.TAKEN)

    def donated_nodes(self, pilots: Collection[Pilot], now: float, midnight: float) -> dict[int, DonatedNode]:
        """By pilot: what the scheduling of tasks is to know of its node."""
        planned = {report.name: report.planned for report in self.reports or ()}
        end = self.closes(now, midnight)
        return {
            pilot.id: DonatedNode(
                since=self._since.get(pilot.node, pilot.since),
                until=min(planned.get(pilot.node, math.inf), end),
                closes=end,
            )
            for pilot in pilots
        }

    def _view(self, report: NodeReport, pilot: Pilot | None, workers: Workers, now: float) -> NodeView:
        use, avoided = report.use, ""
        if pilot is not None and pilot.leaving:  # on its way out: neither used nor to be used
            use, pilot = NodeUse.TAKEN, None
        elif pilot is not None and pilot.state is PilotState.SUBMITTING and use is NodeUse.TAKEN:
            use = NodeUse.IDLE  # by a job whose id is not known yet, most likely our own
        elif pilot is None and not self._may_use(report.name, now):
            avoided = self._trouble(report.name, now) if use is NodeUse.IDLE else ""
            use = NodeUse.TAKEN
        return NodeView(
            name=report.name,
            processors=report.processors,
            use=use,
            memory=report.memory,
            gpus=report.gpus,
            since=self._since.get(report.name, now),
            planned=report.planned,
            donated=_used(pilot, workers.get(pilot.id, ())) if pilot is not None else None,
            avoided=avoided,
        )

    def _may_use(self, node: str, now: float) -> bool:
        """Whether nothing that has happened at a node lately speaks against using it."""
        handed_over = abs(now - self._given_back.get(node, -math.inf)) < _HANDOVER
        return not (handed_over or self._trouble(node, now))

    def _trouble(self, node: str, now: float) -> str:
        """What went wrong at a node so lately that it is not tried again; empty: nothing."""
        for failures in (self.refusals(node), self._stuck.get(node)):
            if failures is not None and failures.waiting(now):
                return f"{node} could not be used: {failures.reason}"
        return ""

    def _watched(self, pilot: Pilot, workers: Workers, now: float) -> Pilot:
        """Take in whether a pilot runs, and whether a worker of it is heard of."""
        watched = pilot.watched(now, heard=pilot.id in workers)
        if pilot.state is not PilotState.RUNNING:
            return watched.but(wanted_since=None)
        self._stuck.pop(pilot.node, None)
        return watched

    def _is_idle(self, node: str, now: float) -> None:
        since = self._since.setdefault(node, now)
        told = self._told.setdefault(node, 0.0)
        age = max(0.0, now - since)  # the clock may have been set back
        if age - told >= _TELL:
            self.learner.saw(told, age, taken=False)
            self._told[node] = age

    def _is_not(self, node: str, now: float, *, taken: bool) -> None:
        since = self._since.pop(node, None)
        if since is not None:
            told = self._told.pop(node, 0.0)
            self.learner.saw(told, max(told, now - since), taken=taken)


def _wished(pilot: Pilot, use: NodeUse | None, now: float) -> Pilot:
    """With the time since when a local job has wanted the node; a scheduler may change its mind."""
    if use is NodeUse.IDLE:
        return pilot.but(wanted_since=None)
    wanted = use is NodeUse.TAKEN and pilot.state is PilotState.RUNNING and pilot.wanted_since is None
    return pilot.but(wanted_since=now) if wanted else pilot


def _used(pilot: Pilot, workers: Sequence[Worker]) -> DonatedUse:
    busy = sum(worker.processors - worker.free.processors if worker.held else 0 for worker in workers)
    awaited = any(worker.awaited for worker in workers)
    return DonatedUse(
        since=pilot.since,
        busy=max(busy, 1) if awaited or any(worker.held for worker in workers) else 0,
    )


def _unknown(pilot: Pilot) -> NodeView:
    """A node that the scheduler does not name any more."""
    return NodeView(
        name=pilot.node,
        processors=pilot.request.p,
        use=NodeUse.AWAY,
        donated=DonatedUse(since=pilot.since),
    )
