"""Why a site submits no request for a while after failures: for all tasks, or for those of a shape."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from adaptor.backoff import Holdoff
from adaptor.crafting.situation import Demand, ShapeAt, TaskShape
from adaptor.decisions.snapshot import SiteFacts
from adaptor.units import counted, format_clock


def why_held_off(site: SiteFacts, now: float) -> str:
    """Why no request at all may be submitted yet; empty: nothing stands in the way."""
    if site.unusable:
        return site.unusable
    found = _reasons(site.refused.of_all, site.stuck.of_all, site.fruitless.of_all, now)
    return next(found, "")


def why_shape_held_off(site: SiteFacts, shape: TaskShape, now: float) -> str:
    """Why no request for tasks of a shape may be submitted yet in any partition; empty: one may."""
    names = site.rules.limits.partitions
    if not names:
        return _why_avoided(site, shape, "", now)
    found = {name: _why_avoided(site, shape, name, now) for name in names}
    return "; ".join(f"{name}: {why}" for name, why in found.items()) if all(found.values()) else ""


def avoided_partitions(site: SiteFacts, demands: Iterable[Demand], now: float) -> dict[ShapeAt, str]:
    """The partitions of a site in which requests for such tasks have failed lately, and how."""
    places = ((demand.shape, name) for demand in demands for name in site.rules.limits.partitions)
    return {place: why for place in places if (why := _why_avoided(site, *place, now))}


def _why_avoided(site: SiteFacts, shape: TaskShape, partition: str, now: float) -> str:
    at = (shape, partition)
    return next(_reasons(site.refused.of(at), site.stuck.of(at), site.fruitless.of(at), now), "")


def _reasons(refused: Holdoff, stuck: Holdoff, fruitless: Holdoff, now: float) -> Iterator[str]:
    if refused.waiting(now):
        yield f"the last request failed ({refused.reason}); {_next_try(refused)}"
    if stuck.waiting(now):
        yield f"the last pilot was withdrawn ({stuck.reason}); {_next_try(stuck)}"
    if fruitless.waiting(now):
        ended = f"{counted(fruitless.failures, 'pilot')} in a row ended without running a task"
        yield f"{ended} ({fruitless.reason}); {_next_try(fruitless)}"


def _next_try(holdoff: Holdoff) -> str:
    return f"next try at {format_clock(holdoff.until)}"
