"""What is known of a bag and of the places where it may run, when its end is forecast. Frozen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from adaptor.crafting.situation import SiteRules
from adaptor.model import QueueState
from adaptor.resources import TaskSize
from adaptor.runtimes.possible import RuntimeKnowledge


class KnownPilot(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot in the system in which tasks of the bag may run. Epoch seconds."""

    job: str
    """The scheduler's id; empty: not known."""
    p: int
    tr: float
    slots: int
    started: float | None
    predicted: float | None
    """The predicted start of a queued one when it was made; None: nobody has predicted it."""
    elapsed: tuple[float, ...] = ()
    """Seconds for which tasks have run in it."""
    bounds: tuple[float, ...] = ()
    """Seconds for which each of these ran before, when it was cut; 0: it was not."""


class KnownSite(msgspec.Struct, frozen=True, kw_only=True):
    """A site at which the bag may run."""

    name: str
    rules: SiteRules
    heuristic: str
    poll: float = 0.0
    """Seconds between two looks at its queue."""
    queue: QueueState | None
    """As last read; None: never."""
    task: TaskSize
    needed: float
    """Seconds that a task is taken to need there."""
    pilots: tuple[KnownPilot, ...] = ()
    open: bool = True
    """Whether requests may be made there."""
    late: float = 0.0
    """Seconds by which requests were late lately."""
    wait_shares: tuple[float, ...] = ()
    """Of the newest requests: the real wait as a share of the predicted one."""
    run_shares: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    """Shares of their time limits that local jobs run, in order; equally likely."""
    run_shares_by_job: Mapping[str, tuple[float, ...]] = {}
    """The same by job of the queue whose user has a history."""
    seen_since: Mapping[str, float] = {}
    """By running job: when it was first seen."""


class KnownBag(msgspec.Struct, frozen=True, kw_only=True):
    """All that a forecast of the end is made from."""

    now: float
    waiting: int
    running: int
    runtimes: RuntimeKnowledge
    longest: float
    """Of the finished tasks, seconds; 0: none has finished."""
    sites: Sequence[KnownSite]
    beside: Sequence[int] = ()
    """Waiting tasks of each other bag that takes turns with this one."""
    at_once: int | None = None
    """Tasks that may run at the same time; None: all."""
    again: Sequence[float] = ()
    """Seconds for which waiting tasks ran before they were cut."""
