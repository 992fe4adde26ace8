"""Tasks that a site cannot run: never, because no node holds one, or not now, after failures. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from adaptor.backoff import Holdoff
from adaptor.crafting.fits import why_no_node_holds
from adaptor.crafting.situation import Demand, ShapeAt, SiteRules, TaskShape
from adaptor.decisions.actions import GiveUp
from adaptor.decisions.failures.shape_backoffs import Failures
from adaptor.decisions.pilots import limited
from adaptor.decisions.snapshot import SiteFacts, Snapshot
from adaptor.units import counted, format_clock


def why_held_off(site: SiteFacts, now: float) -> str:
    """Why no request at all may be submitted yet; empty: nothing stands in the way."""
    failed = site.failures
    return site.unusable or _why_failed(
        failed.refused.of_all, failed.stuck.of_all, failed.fruitless.of_all, now
    )


def why_failed(
    rules: SiteRules, failures: Failures, limits: Mapping[str, str], shape: TaskShape, now: float
) -> str:
    """Why no request for tasks of a shape may be submitted yet in any partition, by the failures of requests
    and by what limits requests that wait. Empty: one may.

    Args:
        limits: as `pilots.limited`.
    """
    names = rules.limits.partitions
    if not names:
        return _why_avoided(failures, limits, (shape, ""), now)
    found = {name: _why_avoided(failures, limits, (shape, name), now) for name in names}
    return "; ".join(f"{name}: {why}" for name, why in found.items()) if all(found.values()) else ""


def avoided_partitions(site: SiteFacts, demands: Iterable[Demand], now: float) -> dict[ShapeAt, str]:
    """The partitions of a site in which requests for such tasks have failed lately, and how."""
    places = ((demand.shape, name) for demand in demands for name in site.rules.limits.partitions)
    limits = limited(site.requests)
    return {place: why for place in places if (why := _why_avoided(site.failures, limits, place, now))}


def _why_avoided(failures: Failures, limits: Mapping[str, str], at: ShapeAt, now: float) -> str:
    if why := limits.get(at[1]):
        return why
    return _why_failed(failures.refused.of(at), failures.stuck.of(at), failures.fruitless.of(at), now)


def _why_failed(refused: Holdoff, stuck: Holdoff, fruitless: Holdoff, now: float) -> str:
    """The first of these after which nothing is tried again yet; empty: none is."""
    in_vain = f"{counted(fruitless.failures, 'pilot')} in a row ended without running a task"
    for failure, what in (
        (refused, "the last request failed"),
        (stuck, "the last pilot was withdrawn"),
        (fruitless, in_vain),
    ):
        if failure.waiting(now):
            return f"{what} ({failure.reason}); next try at {format_clock(failure.until)}"
    return ""


def why_not_for(site: SiteFacts, demand: Demand, now: float) -> str:
    """Why a site gets no request for these tasks now; empty: nothing of theirs stands in the way."""
    return why_never(site, demand) or why_failed(
        site.rules, site.failures, limited(site.requests), demand.shape, now
    )


def why_never(site: SiteFacts, demand: Demand) -> str:
    """Why a site can never run these tasks; empty: it can, or that is not known."""
    return "" if site.queue is None else why_no_node_holds(site.queue, demand.task)


def give_up_impossible(snapshot: Snapshot) -> Iterator[GiveUp]:
    """The tasks, by bag and size, that no node of any site holds at which they may run."""
    for demand in snapshot.demands:
        if not why_never(snapshot.here, demand):
            continue
        places = {snapshot.site}
        for group in snapshot.groups:
            places |= {name for name, there in group.at.items() if there.shape == demand.shape}
        reasons = {name: why_never(snapshot.sites[name], demand) for name in places}
        if demand.payers and all(reasons.values()):
            told = "; ".join(f"{name}: {why}" for name, why in reasons.items())
            for bag in demand.payers:
                yield GiveUp(bag, f"no node can run it: {told}", demand.task)
