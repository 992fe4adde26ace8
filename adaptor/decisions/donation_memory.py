"""Memory of a site that donates idle nodes: the states of its nodes, and failures. Pure.

Times are epoch seconds, and arguments.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import KeysView, Mapping, Sequence

import msgspec

from adaptor.backoff import Backoff
from adaptor.decisions.pilots import Pilot, PilotTable
from adaptor.decisions.seen_nodes import SeenNodes
from adaptor.donation.fitting import closes
from adaptor.donation.situation import DonatedUse, DonationRules, NodeUse, NodeView
from adaptor.model import PilotState
from adaptor.reports import NodeReport
from adaptor.scheduling.donation_facts import DonatedNode
from adaptor.scheduling.workers import Worker

_KEEP = 300.0  # seconds between two times at which what was learned is written down
_HANDOVER = 5.0  # seconds between our leaving a node and the start of the local job that wanted it, at most
_BLIND = 300.0  # seconds without an observation after which idle periods begin again

Workers = Mapping[int, Mapping[str, Worker]]  # by pilot and by id


class DonationMemory:
    """The nodes as last seen, and what went wrong there."""

    def __init__(self, rules: DonationRules, seen: SeenNodes, now: float) -> None:
        """`seen`: the nodes, and what was learned of them before."""
        self.rules = rules
        self.seen = seen
        self.fruitless = Backoff(first=60, most=3600, tolerated=2)
        """Donated nodes in a row on which no task ran."""
        self.failing = Backoff(first=60, most=900, tolerated=10)
        """Submissions for any donated node in a row that failed."""
        self.reason = ""
        """Why no more nodes are used for now; empty: nothing waits, or nothing stands in the way."""
        self.observed: float | None = None  # epoch seconds of the last look at the nodes
        self.reports: Sequence[NodeReport] | None = ()  # reports of this step; None: no answer
        self.asked = False  # whether anybody has asked for the nodes in this step
        self._refusals: dict[str, Backoff] = defaultdict(lambda: Backoff(first=30, most=900))
        self._stuck: dict[str, Backoff] = {}
        """Failures of nodes whose pilots were taken by the scheduler and did not start."""
        self._given_back: dict[str, float] = {}
        """Epoch seconds at which nodes were given back to a local job that may not be seen there yet, by
        node."""
        self._changed: set[str] = set()  # nodes that the last look found otherwise than the one before
        self._known: dict[int, DonatedNode] = {}  # by pilot: the last report on its node
        self._closes = math.inf  # until when nodes may be used by the hours of the day, as of the last look
        self._used: KeysView[str] = dict[str, Pilot]().keys()  # nodes with a pilot
        self._views: dict[str, NodeView] = {}  # by node that is idle or used: as a decision saw it last
        self._busy: dict[int, int] = {}  # by pilot: processors on which tasks ran then
        self._touched = set(seen.by_name)  # nodes of which more was seen since then
        self._kept = now

    def refusals(self, node: str) -> Backoff:
        """Refusals of the pilots for a node."""
        return self._refusals[node]

    def submitted(self, node: str) -> None:
        """A pilot for a node was taken."""
        self._refusals.pop(node, None)
        self.failing.succeeded()

    def not_submitted(self, node: str, reason: str, now: float) -> None:
        """The scheduler refused a pilot for a node, or gave no clear answer."""
        self.refusals(node).failed(now, reason)
        self.failing.failed(now, reason)

    def give_back(self, node: str, at: float) -> None:
        """A local job has made one of our pilots leave."""
        self._given_back[node] = at

    def waited_in_vain(self, node: str, now: float) -> None:
        """A pilot did not start; formal requests take the tasks until another is tried there."""
        self._stuck.setdefault(node, Backoff(first=60, most=3600)).failed(now, "it did not start")

    @property
    def idle(self) -> int | None:
        """Idle nodes that are not used, as last seen; None: never."""
        if self.observed is None:
            return None
        return sum(
            node.use is NodeUse.IDLE and node.name not in self._used for node in self.seen.by_name.values()
        )

    def closes(self, now: float, midnight: float) -> float:
        """Epoch seconds until which nodes may be used by the hours of the day."""
        return closes(self.rules.hours, now, midnight)

    def observe(
        self,
        reports: Sequence[NodeReport] | None,
        pilots: PilotTable,
        workers: Workers,
        now: float,
        midnight: float,
    ) -> list[Pilot]:
        """Take in what the scheduler says of the nodes now; None: it does not answer.

        Returns the pilots of which more is known now.
        """
        self.reports, self.asked = reports, True
        uses: Mapping[str, NodeReport] = {}
        concerned = {*pilots.unsettled, *(pilots.donated.keys() - workers.keys())}
        if reports is not None:
            self.observed = now
            self._changed = {report.name for report in self.seen.looked(reports, now)}
            self._touched |= self._changed
            self._given_back = {
                node: at for node, at in self._given_back.items() if abs(now - at) < _HANDOVER
            }
            before, self._closes = self._closes, self.closes(now, midnight)
            if self._closes != before:
                self._known.clear()
            self._used = pilots.by_node.keys()
            uses = self.seen.by_name
            concerned |= {pilots.by_node[name].id for name in self._changed & self._used}
        if self._stuck:
            concerned |= pilots.donated.keys()
        found = []
        for pilot in [pilots[id] for id in sorted(concerned)]:
            report = uses.get(pilot.node)
            use = None if report is None else report.use
            watched = self._watched(pilot, use, now, heard=pilot.id in workers)
            if watched is not pilot:
                found.append(watched)
        return found

    def look_away(self) -> None:
        """Take no look at the nodes in this step."""
        self.reports, self.asked = (), False

    def is_to_be_kept(self, now: float) -> bool:
        """Whether it is time to write down what was learned, which is taken to be done then."""
        if now - self._kept <= _KEEP:
            return False
        self._kept = now
        return True

    def before_looking(self, pilots: PilotTable, now: float) -> None:
        """Begin the idle periods of nodes again if the last look at them is long ago.

        There is no look while nothing waits, or while the scheduler does not answer. A node that was used
        before the daemon's restart has been idle for as long, at least.
        """
        if self.observed is not None and abs(now - self.observed) > _BLIND:
            self.seen.begin_anew()
        if not self.seen.reports:
            for pilot in pilots.donated.values():
                self.seen.begins(pilot.node, pilot.since, now)

    def nothing_changed(self, now: float) -> None:
        """Count the nodes as seen until now, in the states of the last step, if that step looked at them."""
        if self.asked and self.observed is not None:
            self.observed = now

    def views(self, pilots: PilotTable, workers: Workers, now: float) -> tuple[NodeView, ...] | None:
        """The nodes that are idle or used; None: the scheduler does not answer."""
        if self.reports is None:
            return None
        if not self.reports:
            return tuple(map(_unknown, pilots.by_node.values()))
        known, self._busy = self._busy, _busy_by_pilot(pilots, workers)
        used, nodes, views = pilots.by_node, self.seen.by_name, self._views
        touched = {*self._touched, *pilots.touched, *self._failed()}
        touched.update(pilots[id].node for id, busy in self._busy.items() if known.get(id) != busy)
        for name in touched:
            report, pilot = nodes.get(name), used.get(name)
            if report is None or (pilot is None and report.use is not NodeUse.IDLE):
                views.pop(name, None)
            else:
                busy = 0 if pilot is None else self._busy[pilot.id]
                views[name] = self._view(report, pilot, busy, now)
        # Those change with time alone: what is ruled out for a while, and what was never idle.
        self._touched = self._failed() | (used.keys() - self.seen.idle)
        pilots.touched.clear()
        shown = [views[name] for name in nodes if name in views]
        return (*shown, *(_unknown(used[name]) for name in used.keys() - nodes.keys()))

    def node_of(self, pilot: Pilot) -> DonatedNode:
        """Facts about the node of a pilot for the scheduling of tasks."""
        since, report = self.seen.since(pilot.node), self.seen.by_name.get(pilot.node)
        node = self._known[pilot.id] = DonatedNode(
            since=pilot.since if since is None else since,
            until=min(self._closes, math.inf if report is None else report.planned),
            closes=self._closes,
        )
        return node

    def changed_nodes(self, pilots: PilotTable) -> dict[int, DonatedNode]:
        """Node of each pilot whose facts differ from those that the scheduling of tasks knows."""
        unknown = pilots.donated.keys() - self._known.keys()
        # Of a node that was never seen idle, the start of its pilot is all that is known.
        nodes = (self._changed & self._used) | (self._used - self.seen.idle)
        unknown |= {pilots.by_node[name].id for name in nodes}
        return {id: self.node_of(pilots[id]) for id in sorted(unknown)}

    def forget(self, pilot: int) -> None:
        """Forget a pilot that has left."""
        self._known.pop(pilot, None)

    def _view(self, report: NodeReport, pilot: Pilot | None, busy: int, now: float) -> NodeView:
        use, avoided, since = report.use, "", self.seen.since(report.name)
        if pilot is not None and pilot.leaving:  # on its way out: neither used nor to be used
            use, pilot = NodeUse.TAKEN, None
        elif pilot is not None and pilot.state is PilotState.SUBMITTING and use is NodeUse.TAKEN:
            use = NodeUse.IDLE  # by a job whose id is not known yet, most likely our own
        elif pilot is None:
            trouble = self._trouble(report.name, now)
            if trouble or abs(now - self._given_back.get(report.name, -math.inf)) < _HANDOVER:
                avoided, use = trouble if use is NodeUse.IDLE else "", NodeUse.TAKEN
        return NodeView(
            **{**msgspec.structs.asdict(report), "use": use},
            since=now if since is None else since,
            donated=DonatedUse(since=pilot.since, busy=busy) if pilot is not None else None,
            avoided=avoided,
        )

    def _failed(self) -> set[str]:
        """Nodes whose use may be ruled out by what has happened there, for a time."""
        return {*self._refusals, *self._stuck, *self._given_back}

    def _trouble(self, node: str, now: float) -> str:
        """A recent failure for which a node is not tried again; empty: none."""
        for failures in (self._refusals.get(node), self._stuck.get(node)):
            if failures is not None and failures.waiting(now):
                return f"{node} could not be used: {failures.reason}"
        return ""

    def _watched(self, pilot: Pilot, use: NodeUse | None, now: float, *, heard: bool) -> Pilot:
        """Note whether a pilot runs, whether a worker of it reports, and since when a local job has wanted
        its node; the scheduler may withdraw that."""
        watched, wanted = pilot.watched(now, heard=heard), pilot.wanted_since
        runs = pilot.state is PilotState.RUNNING
        if runs and self._stuck:
            self._stuck.pop(pilot.node, None)
        if not runs or use is NodeUse.IDLE:
            wanted = None
        elif use is NodeUse.TAKEN and wanted is None:
            wanted = now
        return watched if wanted == pilot.wanted_since else watched.but(wanted_since=wanted)


def _busy_by_pilot(pilots: PilotTable, workers: Workers) -> dict[int, int]:
    """Processors on which tasks run, by pilot on a donated node."""
    found = dict.fromkeys(pilots.donated, 0)
    for id in found.keys() & workers.keys():
        for worker in workers[id].values():
            if worker.held:
                found[id] += worker.whole.processors - worker.free.processors
            if worker.held or worker.awaited:
                found[id] = found[id] or 1
    return found


def _unknown(pilot: Pilot) -> NodeView:
    """A node that the scheduler does not name any more."""
    return NodeView(
        name=pilot.node, processors=pilot.request.p, use=NodeUse.AWAY, donated=DonatedUse(since=pilot.since)
    )
