"""The nodes of a site as last seen, since when each is idle, and what the learner makes of that. Pure.

A look costs what has changed since the last one: nodes that became idle together are learned together.
Times are epoch seconds.
"""

from __future__ import annotations

from collections.abc import KeysView, Sequence

import msgspec

from adaptor.donation.idleness import IdleLearner, Idleness
from adaptor.donation.situation import NodeUse
from adaptor.reports import NodeReport

_TELL = 60.0  # seconds after which an idle period counts in the learner before it is over


class _Period(msgspec.Struct):
    """Nodes that have been idle since the same instant."""

    told: float
    """Age in seconds up to which the learner knows of them."""
    nodes: int = 0


class SeenNodes:
    """A node is idle while it is free of local jobs; our own use of it does not count."""

    def __init__(self, known: Idleness | None = None) -> None:
        """`known`: what was learned of idle periods before; None: nothing."""
        self.learner = IdleLearner(known)
        self.reports: Sequence[NodeReport] = ()
        self.by_name: dict[str, NodeReport] = {}
        self._since: dict[str, float] = {}
        self._periods: dict[float, _Period] = {}  # by their beginning
        self._at: float | None = None  # epoch seconds of the last look; None: none since `begin_anew`

    def copy(self) -> SeenNodes:
        """A copy, which goes its own way from here on."""
        twin = SeenNodes(self.learner.idleness)
        twin.reports, twin.by_name, twin._since = self.reports, self.by_name.copy(), self._since.copy()
        twin._periods = {since: msgspec.structs.replace(period) for since, period in self._periods.items()}
        twin._at = self._at
        return twin

    @property
    def idle(self) -> KeysView[str]:
        """The nodes of which it is known since when they are idle."""
        return self._since.keys()

    def since(self, node: str) -> float | None:
        """Epoch seconds since which a node has been idle; None: it is not, or was never seen."""
        return self._since.get(node)

    def looked(self, reports: Sequence[NodeReport], now: float) -> list[NodeReport]:
        """Take in what the scheduler says of the nodes; returns the reports that are not as they were."""
        before, self.reports = self.reports, reports
        differ = [
            (old, new) for old, new in zip(before, reports, strict=False) if new is not old and new != old
        ]
        changed = [new for _, new in differ] + list(reports[len(before) :])
        self.by_name.update((report.name, report) for report in changed)
        if len(self.by_name) > len(reports) or any(old.name != new.name for old, new in differ):
            # The scheduler does not name the others any more.
            self.by_name = {report.name: report for report in reports}
            for name in self._since.keys() - self.by_name.keys():
                self._ends(name, now, taken=False)
        if self._at is not None:
            begun = sum(report.use is NodeUse.IDLE and report.name not in self._since for report in changed)
            self.learner.watched(now - self._at, begun)
        self._at = now
        for report in changed:
            if report.use is NodeUse.IDLE:
                self.begins(report.name, now, now)
            else:
                self._ends(report.name, now, taken=report.use is NodeUse.TAKEN)
        for since, period in self._periods.items():
            age = max(0.0, now - since)  # the clock may have been set back
            if age - period.told >= _TELL:
                self.learner.saw(period.told, age, taken=False, nodes=period.nodes)
                period.told = age
        return changed

    def begins(self, node: str, since: float, now: float) -> None:
        """A node has been idle since then; nothing of that was learned before `now`, if it was not known."""
        if node not in self._since:
            self._since[node] = since
            self._periods.setdefault(since, _Period(now - since)).nodes += 1

    def begin_anew(self) -> None:
        """Begin again after a long time without a look: nodes idle at the next look count from then on."""
        self.reports, self.by_name, self._at = (), {}, None
        self._since.clear()
        self._periods.clear()

    def _ends(self, node: str, now: float, *, taken: bool) -> None:
        since = self._since.pop(node, None)
        if since is None:
            return
        period = self._periods[since]
        self.learner.saw(period.told, max(period.told, now - since), taken=taken)
        period.nodes -= 1
        if not period.nodes:
            del self._periods[since]
