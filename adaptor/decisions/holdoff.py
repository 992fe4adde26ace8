"""Why a site submits no request for a while after failures: for all tasks, or for those of a shape."""

from __future__ import annotations

from collections.abc import Iterator

from adaptor.backoff import Holdoff
from adaptor.crafting.situation import TaskShape
from adaptor.decisions.snapshot import SiteFacts
from adaptor.units import counted, format_clock


def why_held_off(site: SiteFacts, now: float) -> str:
    """Why no request at all may be submitted yet; empty: nothing stands in the way."""
    if site.unusable:
        return site.unusable
    found = _reasons(site.refused.of_all, site.stuck.of_all, site.fruitless.of_all, now)
    return next(found, "")


def why_shape_held_off(site: SiteFacts, shape: TaskShape, now: float) -> str:
    """Why no request for tasks of a shape may be submitted yet; empty: nothing hinders them."""
    found = _reasons(site.refused.of(shape), site.stuck.of(shape), site.fruitless.of(shape), now)
    return next(found, "")


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
