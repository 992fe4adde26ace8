"""Facts from earlier bags for bags of the same kinds at work, and from these for later bags."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping

from adaptor.bag_spec import BagSpec
from adaptor.journal.journal import Journal
from adaptor.journal.kind_rows import EarlierBags, earlier_bags, forget_sites, insert_records
from adaptor.kinds.earlier import earlier_text
from adaptor.model import TaskState
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.changes import Changes
from adaptor.scheduling.state import SiteTerms
from adaptor.units import counted, format_duration

_FIRST, _AGAIN = 8, 4
"""Finished tasks at which the record of a running bag is first written, and the factor between later writes.
Bags that are submitted meanwhile start from it."""
_SHORTEST = 1e-3  # seconds, of a mean
_COMPARED = 3  # finished tasks whose mean is held against that of earlier bags


class Earlier:
    def __init__(self, journal: Journal, terms: Mapping[str, SiteTerms]) -> None:
        """Forgets what was kept of sites that are no longer to remember. Raises JournalError."""
        self._journal, self._terms = journal, terms
        self._shown: dict[int, int] = {}  # by bag at work: its finished tasks when they were last kept
        self._compared: set[int] = set()  # bags at work of which it is known whether their kinds have changed
        with journal.transaction() as db:
            forget_sites(db, [name for name, each in terms.items() if not each.remember])

    @property
    def _sites(self) -> list[str]:
        return [name for name, terms in self._terms.items() if terms.remember]

    def of(self, spec: BagSpec) -> EarlierBags:
        """Facts from earlier bags of the same kinds. Raises JournalError."""
        return self._journal.read(earlier_bags, spec, self._sites)

    def recall(self, broker: Broker, news: Mapping[int, BagSpec] | None = None) -> None:
        """Tell the bags at work of earlier ones; those without a result yet. Raises JournalError.

        `news`: only those of the kinds of these bags; None: all.
        """
        kinds = None if news is None else {kind.key for spec in news.values() for kind in spec.kinds}
        for bag in broker.state.bags.values():
            mine = {kind.key for kind in bag.spec.kinds}
            if mine and (kinds is None or mine & kinds) and not bag.count(TaskState.DONE):
                broker.state.know_earlier(bag, self.of(bag.spec).tasks)

    def writer(self, changes: Changes, now: float) -> Callable[[sqlite3.Connection], None] | None:
        """A function that keeps what bags have shown, called in the changes' transaction; None: nothing."""
        due, sites = self.due(changes), self._sites
        if not due or not sites:
            return None

        def write(db: sqlite3.Connection) -> None:
            for bag in due:
                insert_records(db, bag, sites, now)

        return write

    def due(self, changes: Changes) -> list[int]:
        """The bags of which it is time to keep what they have shown."""
        return [
            bag
            for bag, tally in changes.tallies.items()
            if (tally.ended and tally.done > 0) or tally.done >= max(_FIRST, _AGAIN * self._shown.get(bag, 0))
        ]

    def written(self, broker: Broker, changes: Changes) -> None:
        """Let others learn of what was kept. Raises JournalError."""
        due = self.due(changes)
        self._shown = {bag: done for bag, done in self._shown.items() if bag in broker.state.bags}
        self._shown |= {bag: changes.tallies[bag].done for bag in due}
        if due:
            self.recall(broker, {bag: self._journal.bag_spec(bag) for bag in due})

    def changed(self, broker: Broker, changes: Changes) -> Iterator[tuple[int, str]]:
        """Bags whose first tasks took far longer, or shorter, than earlier ones: number and sentence."""
        bags = broker.state.bags
        self._compared &= bags.keys()
        for id, tally in changes.tallies.items():
            if tally.done < _COMPARED or id in self._compared or id not in bags:
                continue
            self._compared.add(id)
            mean, known = max(_SHORTEST, tally.runtime / tally.done), bags[id].earlier.values()
            if known and all(max(mean / at.mean, at.mean / mean) > at.factor**2 for at in known):
                first = f"the first {counted(tally.done, 'task')} of bag {id} took {format_duration(mean)}"
                earlier = earlier_text(next(iter(known)))
                yield id, f"{first} on average, but {earlier}: these no longer count"
