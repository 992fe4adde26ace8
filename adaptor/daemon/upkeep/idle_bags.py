"""Open bags that close by themselves when no more tasks are appended to them."""

from __future__ import annotations

from collections.abc import Iterable

from adaptor.scheduling.bag import Bag


class IdleBags:
    """Remembers since when open bags have no unfinished task; a new daemon begins again."""

    def __init__(self) -> None:
        self._since: dict[tuple[int, int], float] = {}  # by bag and number of its tasks: monotonic seconds

    def due(self, bags: Iterable[Bag], now: float) -> list[int]:
        """The bags to close at `now` (monotonic seconds), by `BagSpec.close_idle`."""
        idle = {
            (bag.id, bag.total): bag.spec.close_idle
            for bag in bags
            if bag.open and bag.spec.close_idle and not bag.unfinished
        }
        self._since = {place: self._since.get(place, now) for place in idle}
        return [place[0] for place, seconds in idle.items() if now - self._since[place] >= seconds]
