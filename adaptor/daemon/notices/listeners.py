"""Clients that wait until something happens in a bag."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping

_WITHOUT_ROOM = 1.0
"""Seconds."""


class Listeners:
    """Those who wait, by bag. Belongs to one event loop."""

    def __init__(self) -> None:
        self._waiting: dict[int, dict[asyncio.Future[None], int]] = {}
        """By bag: the last event that each knows."""
        self.room: float = math.inf
        """How many may wait for long, so that connections are left for those who ask something else."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    async def wait(self, since: Mapping[int, int], seconds: float) -> bool:
        """Wait until a bag has an event after this one; False: none had in that time.

        Those who find no room wait a second at most.
        """
        heard: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for bag, known in since.items():
            self._waiting.setdefault(bag, {})[heard] = known
        longest = seconds if self._count < self.room else min(seconds, _WITHOUT_ROOM)
        self._count += 1
        try:
            done, _ = await asyncio.wait([heard], timeout=longest)
            return bool(done)
        finally:
            self._count -= 1
            for bag in since:
                self._drop(bag, heard)

    def _drop(self, bag: int, heard: asyncio.Future[None]) -> None:
        those = self._waiting.get(bag)
        if those is not None:
            those.pop(heard, None)
            if not those:
                del self._waiting[bag]

    def tell(self, last: Mapping[int, int]) -> None:
        """Wake those who wait for these bags; `last`: by bag, the number of its last event."""
        if not self._waiting:
            return
        for bag, number in last.items():
            for heard, known in self._waiting.get(bag, {}).items():
                if number > known and not heard.done():
                    heard.set_result(None)

    def tell_all(self) -> None:
        """Wake all, after which they look for themselves."""
        for those in self._waiting.values():
            for heard in those:
                if not heard.done():
                    heard.set_result(None)
