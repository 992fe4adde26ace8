"""How the workers of a distant site reach the daemon: what their access file is to hold, and until when."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol


class Way(Protocol):
    async def open(self, folder: Path, /) -> tuple[str, ...]:
        """The addresses for the workers, the likeliest first.

        Args:
            folder: the site's folder there, absolute.

        Raises:
            AdaptorError: there is no way at the moment.
        """

    @property
    def alive(self) -> bool:
        """Whether the addresses still hold."""

    def beat(self) -> None:
        """A sign of life, now and then, for the other end. Raises OSError: it is gone."""

    async def close(self) -> None: ...

    @property
    def doubt(self) -> str:
        """What may be in the way of workers all the same; empty: nothing is known."""


class Standing:
    """A way that needs nothing from us: straight to this machine, or through a mailbox."""

    alive = True
    doubt = ""

    def __init__(self, addresses: Callable[[], Awaitable[tuple[str, ...]]]) -> None:
        self._addresses = addresses

    async def open(self, _folder: Path) -> tuple[str, ...]:
        return await self._addresses()

    def beat(self) -> None:
        """Nobody waits for it."""

    async def close(self) -> None:
        """Nothing is open."""
