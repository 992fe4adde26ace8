"""Attacks of another user, and what must hold: each probe is a function that asserts it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tests.security.world import World


class Probe(msgspec.Struct, frozen=True):
    tried: str
    holds: str
    run: Callable[[World], None]

    @property
    def row(self) -> str:
        """Its line of the table in SECURITY.md."""
        return f"| {self.tried} | {self.holds} |"


PROBES: dict[str, Probe] = {}
"""By the name of the function."""


def probe(tried: str, holds: str) -> Callable[[Callable[[World], None]], Callable[[World], None]]:
    def register(run: Callable[[World], None]) -> Callable[[World], None]:
        PROBES[run.__name__] = Probe(tried, holds, run)
        return run

    return register
