"""The pilots of a site that are in the system, sorted as its rules ask for them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from adaptor.decisions.pilots import Pilot


class PilotTable(Mapping[int, Pilot]):
    """By id. A step costs what has changed: most pilots on donated nodes run, and no rule concerns them.

    A pilot is set, or deleted: no other change keeps it sorted.
    """

    def __init__(self) -> None:
        self._pilots: dict[int, Pilot] = {}
        self.requests: dict[int, Pilot] = {}  # formal ones
        self.donated: dict[int, Pilot] = {}  # on donated nodes
        self.unsettled: dict[int, Pilot] = {}  # of those: without the ones that are `settled`
        self.by_node: dict[str, Pilot] = {}  # by donated node: the last pilot for it
        self.touched: set[str] = set()  # donated nodes whose pilots have changed; the reader clears it

    @property
    def concerned(self) -> tuple[Pilot, ...]:
        """Those that a rule on single pilots may concern: all but the settled ones."""
        return (*self.requests.values(), *self.unsettled.values())

    def __getitem__(self, id: int) -> Pilot:
        return self._pilots[id]

    def __contains__(self, id: object) -> bool:
        return id in self._pilots

    def __iter__(self) -> Iterator[int]:
        return iter(self._pilots)

    def __len__(self) -> int:
        return len(self._pilots)

    def __setitem__(self, id: int, pilot: Pilot) -> None:
        self._pilots[id] = pilot
        if not pilot.node:
            self.requests[id] = pilot
            return
        self.donated[id] = pilot
        self.touched.add(pilot.node)
        if pilot.settled:
            self.unsettled.pop(id, None)
        else:
            self.unsettled[id] = pilot
        known = self.by_node.get(pilot.node)
        if known is None or known.id <= id:
            self.by_node[pilot.node] = pilot

    def __delitem__(self, id: int) -> None:
        pilot = self._pilots.pop(id)
        if not pilot.node:
            del self.requests[id]
            return
        del self.donated[id]
        self.touched.add(pilot.node)
        self.unsettled.pop(id, None)
        if self.by_node[pilot.node].id == id:
            del self.by_node[pilot.node]
