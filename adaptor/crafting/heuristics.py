"""The heuristics by name, and what others have to know of each; `planner.PLANNERS` has their functions."""

from __future__ import annotations

from typing import Literal

import msgspec

HeuristicName = Literal["static", "adaptive", "completion", "elastic"]
NARROW_FROM = 50  # pilots that a site allows: with fewer, `completion` ends bags sooner
DEFAULT: HeuristicName = "elastic"


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    """Traits of a heuristic: its treatment of tasks and requests."""

    assumed_runtime: float = 3600.0
    """Seconds that a task is taken to run before anything is known of it (De Rose et al. 2008, §4.4)."""
    fixed_shape: bool = False
    """Whether its requests are the same whatever the queue looks like: they last max_tr."""
    replans: bool = False
    """Whether it looks again at the tasks that pilots cover, as the queue moves, and withdraws or ends pilots
    in order to make better requests."""
    narrow: bool = False
    """Whether it makes as many narrow requests as `Limits.max_pilots` allows, not a few wide ones."""
    even_odds: bool = False
    """Whether tasks start that are as likely as not to be cut (`RuntimeLearner.even`); by the paper those
    start only that can finish by the estimate (§4.3.1)."""


HEURISTICS: dict[str, Traits] = {
    "static": Traits(fixed_shape=True),
    "adaptive": Traits(),
    "completion": Traits(assumed_runtime=60.0, replans=True, even_odds=True),
    "elastic": Traits(assumed_runtime=60.0, replans=True, narrow=True, even_odds=True),
}


def is_narrow(heuristic: str, pilots: int) -> bool:
    """Whether requests are narrow.

    Args:
        heuristic: a key of HEURISTICS.
        pilots: that may be in the system.
    """
    return HEURISTICS[heuristic].narrow and pilots >= NARROW_FROM
