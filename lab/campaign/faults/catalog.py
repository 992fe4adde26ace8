"""The form of a fault: a context manager that does harm, names its victim, and mends it on leaving."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TypeVar

from lab.campaign.plan import KindOfFault
from lab.campaign.world import World

_T = TypeVar("_T")

Act = Callable[[World, float], AbstractContextManager[str]]
"""From the world and a draw in [0, 1) that chooses the victim; gives the victim's name.

It raises NoVictimError where nothing can be hit now; then it is tried again later.
"""
ON_SLURM = (
    "plain", "spool", "ssh", "two-sites", "donation-scheduler", "donation-agents", "budget", "quota",
    "failing-disk", "accounting", "limits", "few-requests",
)  # fmt: skip
ON_OPENPBS = ("openpbs", "openpbs-spool")
EVERYWHERE = (*ON_SLURM, *ON_OPENPBS)


class NoVictimError(Exception):
    """There is nothing to hit at present."""


@dataclass(frozen=True)
class Fault:
    kind: KindOfFault
    scenes: tuple[str, ...]
    act: Act


CATALOG: dict[str, Fault] = {}


def fault(
    name: str,
    *,
    weight: float = 1.0,
    lasts: tuple[float, float] = (0.0, 0.0),
    scenes: tuple[str, ...] = EVERYWHERE,
) -> Callable[[Callable[[World, float], Iterator[str]]], Act]:
    """Enter a kind of fault into the catalog. `lasts`: seconds, at least and at most."""

    def enter(function: Callable[[World, float], Iterator[str]]) -> Act:
        act = contextmanager(function)
        CATALOG[name] = Fault(KindOfFault(name, weight, *lasts), scenes, act)
        return act

    return enter


def kinds_of(scene: str) -> list[KindOfFault]:
    return [each.kind for each in CATALOG.values() if scene in each.scenes]


def choose(victims: Sequence[_T], draw: float) -> _T:
    """Raises NoVictimError: there is none."""
    if not victims:
        raise NoVictimError
    return victims[int(draw * len(victims))]


def present(part: _T | None) -> _T:
    """Raises NoVictimError: the scene lacks it, or it is gone at present."""
    if part is None:
        raise NoVictimError
    return part


@contextmanager
def claim(world: World, *names: str) -> Iterator[None]:
    """Claim victims, so that no other fault hits them before they are mended. Raises NoVictimError."""
    if world.claimed.intersection(names):
        raise NoVictimError
    world.claimed.update(names)
    try:
        yield
    finally:
        world.claimed.difference_update(names)
