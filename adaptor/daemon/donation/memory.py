"""What is known of a site whose idle nodes are lent: since when they are idle, and how long that lasts."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterable

from adaptor.backoff import Backoff
from adaptor.config.donation import DonationConfig
from adaptor.donation.hours import closes
from adaptor.donation.idleness import IdleLearner
from adaptor.donation.situation import NodeUse
from adaptor.journal.journal import Journal
from adaptor.reports import NodeReport

_KEEP = 300.0
"""Seconds between two times at which what was learned is written down."""
_HANDOVER = 5.0
"""Seconds that may lie between the end of a lease and the start of the local job that wanted its node."""
_TELL = 60.0
"""Seconds of an idle period that is not over after which the learner is told of it."""
_BLIND = 300.0
"""Seconds without a look at the nodes after which nobody knows whether they have been idle all the while."""


class Lender:
    """Times are epoch seconds."""

    def __init__(self, journal: Journal, site: str, config: DonationConfig) -> None:
        """Raises JournalError: what was learned before cannot be read."""
        self.config = config
        self.rules = config.rules()
        self.learner = IdleLearner(journal.idleness(site))
        self.fruitless = Backoff(first=60, most=3600, tolerated=2)
        """Leases in a row that never ran a task."""
        self.failing = Backoff(first=60, most=900, tolerated=10)
        """Leases in a row, of whatever nodes, that could not be made."""
        self.reason = ""
        """Why no more is lent for now; empty: nothing waits, or nothing stands in the way."""
        self.row: int | None = None
        """Where that stands in the journal."""
        self.idle: int | None = None
        """Idle nodes that are not lent, as last seen; None: never."""
        self.observed: float | None = None
        """When the nodes were last seen."""
        self.forlorn: dict[int, float] = {}
        """By lease: since when no worker of it is known."""
        self.yielding: dict[int, float] = {}
        """By lease: since when a local job has been seen to want its node."""
        self._journal, self._site = journal, site
        self._refusals: dict[str, Backoff] = defaultdict(lambda: Backoff(first=30, most=900))
        self._stuck: dict[str, Backoff] = {}
        """Of nodes whose leases were taken by the scheduler and did not start."""
        self._since: dict[str, float] = {}
        """Since when nodes have been idle but for us."""
        self._given_back: dict[str, float] = {}
        """When nodes were given back to a local job that may not be seen there yet."""
        self._told: dict[str, float] = {}
        """Up to which age of that the learner knows."""
        self._kept = time.time()

    def refusals(self, node: str) -> Backoff:
        """Of the leases of a node."""
        return self._refusals[node]

    def give_back(self, node: str, at: float) -> None:
        """A local job has made a lease yield."""
        self._given_back[node] = at

    def waited_in_vain(self, node: str, now: float) -> None:
        """A lease did not start; formal requests take the tasks until another is tried there."""
        self._stuck.setdefault(node, Backoff(first=60, most=3600)).failed(now, "it did not start")

    def has_started(self, node: str) -> None:
        """A lease runs."""
        self._stuck.pop(node, None)

    def may_lend(self, node: str, now: float) -> bool:
        """Whether nothing that has happened at a node lately speaks against lending it."""
        handed_over = abs(now - self._given_back.get(node, -math.inf)) < _HANDOVER
        stuck = node in self._stuck and self._stuck[node].waiting(now)
        return not (handed_over or stuck or self.refusals(node).waiting(now))

    def idle_since(self, node: str) -> float | None:
        return self._since.get(node)

    def suppose_idle(self, node: str, since: float) -> None:
        """A node that was lent before the daemon's restart has been idle for as long, at least."""
        self._since.setdefault(node, since)
        self._told.setdefault(node, time.time() - since)

    def forget_unwatched(self, now: float) -> None:
        """Where the nodes have not been looked at for long, their idle periods begin anew.

        Nobody looks while nothing waits, or while the scheduler does not answer.
        """
        if self.observed is not None and abs(now - self.observed) > _BLIND:
            self._since.clear()
            self._told.clear()

    def observe(self, reports: Iterable[NodeReport], now: float) -> None:
        """Learn from what the scheduler says of the nodes now. Raises JournalError."""
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
        if now - self._kept > _KEEP:
            self.keep(now)

    def keep(self, now: float) -> None:
        """Write down what was learned. Raises JournalError."""
        self._journal.keep_idleness(self._site, self.learner.idleness)
        self._kept = now

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

    def closes(self, now: float) -> float:
        """Until when nodes may be lent by the hours of the day."""
        return closes(self.rules.hours, now, midnight(now))


def midnight(now: float) -> float:
    """The last local midnight."""
    local = time.localtime(now)
    return time.mktime((local.tm_year, local.tm_mon, local.tm_mday, 0, 0, 0, 0, 0, -1))
