"""Open bags that close by themselves when no more tasks are appended to them, or their program is gone."""

from __future__ import annotations

from collections.abc import Container, Iterable

from adaptor.scheduling.bag import Bag


class IdleBags:
    """Remembers since when open bags have no unfinished task, and no program that follows them; a new daemon
    begins again."""

    def __init__(self) -> None:
        self._since: dict[tuple[int, int], float] = {}  # by bag and number of its tasks: monotonic seconds

    def due(self, bags: Iterable[Bag], now: float, followed: Container[int] = ()) -> list[int]:
        """The bags to close at `now` (monotonic seconds), by `BagSpec.close_idle`.

        `followed`: those whose events a connected program gets as they come.
        """
        idle = {
            (bag.id, bag.total): bag.spec.close_idle
            for bag in bags
            if bag.open and bag.spec.close_idle and not bag.unfinished and bag.id not in followed
        }
        self._since = {place: self._since.get(place, now) for place in idle}
        return [place[0] for place, seconds in idle.items() if now - self._since[place] >= seconds]
