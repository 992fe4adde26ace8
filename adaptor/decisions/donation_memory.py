"""What a driver remembers of a site that donates idle nodes: what it was told of them, failures. Pure.

Times are epoch seconds, and arguments.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from adaptor.backoff import Backoff
from adaptor.decisions.pilots import Pilot
from adaptor.decisions.seen_nodes import SeenNodes
from adaptor.donation.hours import closes
from adaptor.donation.situation import DonatedUse, DonationRules, NodeUse, NodeView
from adaptor.model import PilotState
from adaptor.reports import NodeReport
from adaptor.scheduling.donation_facts import DonatedNode
from adaptor.scheduling.workers import Worker

_KEEP = 300.0
"""Seconds between two times at which what was learned is written down."""
_HANDOVER = 5.0
"""Seconds between our leaving a node and the start of the local job that wanted it, at most."""
_BLIND = 300.0
"""Seconds without an observation after which idle periods begin anew."""

Workers = Mapping[int, Sequence[Worker]]
"""By pilot."""


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
        self.row: int | None = None
        """Where that stands in the journal."""
        self.observed: float | None = None
        """When the nodes were last seen."""
        self.reports: Sequence[NodeReport] | None = ()
        """As of this step; None: the scheduler does not answer."""
        self.asked = False
        """Whether anybody has asked for the nodes in this step."""
        self._refusals: dict[str, Backoff] = defaultdict(lambda: Backoff(first=30, most=900))
        self._stuck: dict[str, Backoff] = {}
        """Of nodes whose pilots were taken by the scheduler and did not start."""
        self._given_back: dict[str, float] = {}
        """When nodes were given back to a local job that may not be seen there yet."""
        self._changed: set[str] = set()
        """Nodes that the last look found otherwise than the one before."""
        self._known: dict[int, DonatedNode] = {}
        """By pilot: what was told of its node last."""
        self._closes = math.inf
        """Until when nodes may be used by the hours of the day, as of the last look."""
        self._used: frozenset[str] = frozenset()
        """Nodes with a pilot, as of the last look."""
        self._views: dict[str, tuple[Pilot | None, int, NodeView]] = {}
        """By node that is idle or used: the pilot on it, its busy processors, and the node as a decision saw
        it last."""
        self._kept = now

    def refusals(self, node: str) -> Backoff:
        """Of the pilots for a node."""
        return self._refusals[node]

    def submitted(self, node: str) -> None:
        """A pilot for a node was taken."""
        self._refusals.pop(node, None)
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

    @property
    def idle(self) -> int | None:
        """Idle nodes that are not used, as last seen; None: never."""
        if self.observed is None:
            return None
        return sum(
            node.use is NodeUse.IDLE and node.name not in self._used for node in self.seen.by_name.values()
        )

    def closes(self, now: float, midnight: float) -> float:
        """Until when nodes may be used by the hours of the day."""
        return closes(self.rules.hours, now, midnight)

    def observe(
        self,
        reports: Sequence[NodeReport] | None,
        pilots: Collection[Pilot],
        workers: Workers,
        now: float,
        midnight: float,
    ) -> list[Pilot]:
        """Take in what the scheduler says of the nodes now; None: it does not answer.

        `pilots` are those on donated nodes. Returns those of which more is known now.
        """
        self.reports, self.asked = reports, True
        uses: Mapping[str, NodeReport] = {}
        if reports is not None:
            self.observed = now
            self._changed = {report.name for report in self.seen.looked(reports, now)}
            for name in self._changed:
                self._views.pop(name, None)
            self._given_back = {
                node: at for node, at in self._given_back.items() if abs(now - at) < _HANDOVER
            }
            self._closes = self.closes(now, midnight)
            self._used = frozenset(pilot.node for pilot in pilots)
            uses = self.seen.by_name
        found = []
        for pilot in pilots:
            report = uses.get(pilot.node)
            watched = self._watched(pilot, report and report.use, now, heard=pilot.id in workers)
            if watched is not pilot:
                found.append(watched)
        return found

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
            self.seen.begin_anew()
        if not self.seen.reports:
            for pilot in pilots:
                self.seen.begins(pilot.node, pilot.since, now)

    def nothing_changed(self, now: float) -> None:
        """Who looked until now would have seen the nodes as they were in the last step, if that looked."""
        if self.asked and self.observed is not None:
            self.observed = now

    def views(self, pilots: Collection[Pilot], workers: Workers, now: float) -> tuple[NodeView, ...] | None:
        """The nodes that are idle or used; None: the scheduler does not answer."""
        if self.reports is None:
            return None
        used = {pilot.node: pilot for pilot in pilots}
        before, self._views, shown = self._views, {}, []
        for report in self.reports:
            name = report.name
            pilot = used.get(name)
            if pilot is None and report.use is not NodeUse.IDLE:
                continue
            busy = 0 if pilot is None else _busy(workers.get(pilot.id, ()))
            known = before.get(name)
            if known is None or known[:2] != (pilot, busy) or self._has_failed(name):
                known = pilot, busy, self._view(report, pilot, busy, now)
            if not self._has_failed(name):
                self._views[name] = known
            shown.append(known[2])
        return (*shown, *(_unknown(pilot) for node, pilot in used.items() if node not in self.seen.by_name))

    def node_of(self, pilot: Pilot) -> DonatedNode:
        """What the scheduling of tasks is to know of the node of a pilot."""
        since, report = self.seen.since(pilot.node), self.seen.by_name.get(pilot.node)
        node = self._known[pilot.id] = DonatedNode(
            since=pilot.since if since is None else since,
            until=min(self._closes, math.inf if report is None else report.planned),
            closes=self._closes,
        )
        return node

    def changed_nodes(self, pilots: Iterable[Pilot]) -> dict[int, DonatedNode]:
        """By pilot: its node, where that is not as the scheduling of tasks knows it."""
        found = {}
        for pilot in pilots:
            known = self._known.get(pilot.id)
            if known is None or pilot.node in self._changed or known.closes != self._closes:
                found[pilot.id] = self.node_of(pilot)
        return found

    def forget(self, pilot: int) -> None:
        """A pilot has left."""
        self._known.pop(pilot, None)

    def _view(self, report: NodeReport, pilot: Pilot | None, busy: int, now: float) -> NodeView:
        use, avoided, since = report.use, "", self.seen.since(report.name)
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
            since=now if since is None else since,
            planned=report.planned,
            donated=DonatedUse(since=pilot.since, busy=busy) if pilot is not None else None,
            avoided=avoided,
        )

    def _may_use(self, node: str, now: float) -> bool:
        """Whether nothing that has happened at a node lately speaks against using it."""
        handed_over = abs(now - self._given_back.get(node, -math.inf)) < _HANDOVER
        return not (handed_over or self._trouble(node, now))

    def _has_failed(self, node: str) -> bool:
        """Whether what has happened at a node may speak against using it."""
        return node in self._refusals or node in self._stuck or node in self._given_back

    def _trouble(self, node: str, now: float) -> str:
        """What went wrong at a node so lately that it is not tried again; empty: nothing."""
        for failures in (self._refusals.get(node), self._stuck.get(node)):
            if failures is not None and failures.waiting(now):
                return f"{node} could not be used: {failures.reason}"
        return ""

    def _watched(self, pilot: Pilot, use: NodeUse | None, now: float, *, heard: bool) -> Pilot:
        """Take in whether a pilot runs, whether a worker of it is heard of, and since when a local job has
        wanted its node; a scheduler may change its mind."""
        watched, wanted = pilot.watched(now, heard=heard), pilot.wanted_since
        runs = pilot.state is PilotState.RUNNING
        if runs and self._stuck:
            self._stuck.pop(pilot.node, None)
        if not runs or use is NodeUse.IDLE:
            wanted = None
        elif use is NodeUse.TAKEN and wanted is None:
            wanted = now
        return watched if wanted == pilot.wanted_since else watched.but(wanted_since=wanted)


def _busy(workers: Iterable[Worker]) -> int:
    """Processors on which tasks run."""
    busy, some = 0, False
    for worker in workers:
        if worker.held:
            busy += worker.processors - worker.free.processors
        some = some or bool(worker.held) or worker.awaited
    return max(busy, 1) if some else 0


def _unknown(pilot: Pilot) -> NodeView:
    """A node that the scheduler does not name any more."""
    return NodeView(
        name=pilot.node,
        processors=pilot.request.p,
        use=NodeUse.AWAY,
        donated=DonatedUse(since=pilot.since),
    )
