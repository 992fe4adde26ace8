"""How the workers of a remote site reach the daemon: the addresses for their access file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol


class Route(Protocol):
    async def open(self, folder: Path, /) -> tuple[str, ...]:
        """The addresses for the workers, the likeliest first.

        Args:
            folder: the site's folder there, absolute.

        Raises:
            AdaptorError: the route cannot be opened now.
        """

    @property
    def alive(self) -> bool:
        """Whether the addresses are still valid."""

    def keep_alive(self) -> None:
        """Show the other end that the daemon lives. Raises OSError: the other end is gone."""

    async def close(self) -> None: ...

    @property
    def caveat(self) -> str:
        """What may still keep workers from the daemon; empty: nothing known."""


class DirectRoute:
    """A route that needs nothing from the daemon: straight to this machine, or through a spool."""

    alive = True
    caveat = ""

    def __init__(self, addresses: Callable[[], Awaitable[tuple[str, ...]]]) -> None:
        self._addresses = addresses

    async def open(self, _folder: Path) -> tuple[str, ...]:
        return await self._addresses()

    def keep_alive(self) -> None:
        """There is no other end."""

    async def close(self) -> None:
        """Nothing is open."""
