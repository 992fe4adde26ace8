"""Until when bags need the pilots of a site, by their last forecasts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from adaptor.decisions.memory import MadeForecast
from adaptor.decisions.pilots import Pilot
from adaptor.model import Estimate, PendingJob, QueueState, RunningJob
from adaptor.scheduling.state import SchedulingState


class BagAtWork(msgspec.Struct, frozen=True):
    """A bag of which a task runs, or may start."""

    alone: bool
    """Whether it has pilots of its own."""
    sites: frozenset[str]
    """Sites at which it may run."""
    end: Estimate | None
    """Its end by its last forecast, epoch seconds; None: not known."""


def bags_at_work(state: SchedulingState, made: Mapping[int, MadeForecast]) -> dict[int, BagAtWork]:
    """The bags of which a task runs, or may start, by number. `made`: their last forecasts."""
    return {
        bag.id: BagAtWork(
            bag.id in state.alone,
            frozenset(filter(bag.spec.allows, state.sites)),
            made[bag.id].forecast.end if bag.id in made else None,
        )
        for bag in state.bags.values()
        if bag.at_work
    }


def ends_of_pilots(
    queue: QueueState,
    site: str,
    pilots: Mapping[str, Iterable[Pilot]],
    bags: Mapping[int, BagAtWork],
    now: float,
    *,
    but: int | None = None,
) -> Iterator[tuple[str, str, Estimate]]:
    """Our pilots in a site's queue for which `needed_until` is known: site, job, and that time. `pilots`: see
    `pilots_in`."""
    known: dict[tuple[str, int | None, bool], Estimate | None] = {}  # hundreds serve the same bags
    for name, pilot in pilots_in(queue, site, pilots):
        key = name, pilot.bag, bool(pilot.leaving)
        if key not in known:
            known[key] = needed_until(pilot, name, bags, now, but=but)
        end = known[key]
        if pilot.job is not None and end is not None:
            yield name, pilot.job, end


def pilots_in(
    queue: QueueState, site: str, pilots: Mapping[str, Iterable[Pilot]]
) -> Iterator[tuple[str, Pilot]]:
    """Our pilots that are jobs of a site's queue, each with its site.

    `pilots`: by site. Those of another site are in the queue if both are partitions of one cluster: most of
    them then show there with their processors, while ids of another scheduler agree by chance alone.
    """
    jobs: list[RunningJob | PendingJob] = [*queue.running, *queue.pending]
    shown = {job.id: job.processors for job in jobs}
    for name, theirs in pilots.items():
        known = [pilot for pilot in theirs if pilot.job is not None]
        found = [pilot for pilot in known if shown.get(pilot.job or "") == pilot.holds]
        if name == site or 2 * len(found) > len(known):
            yield from ((name, pilot) for pilot in (known if name == site else found))


def needed_until(
    pilot: Pilot, site: str, bags: Mapping[int, BagAtWork], now: float, *, but: int | None = None
) -> Estimate | None:
    """Epoch seconds from which on no bag has tasks for a pilot of a site; None: not known.

    `but`: a bag that does not count.
    """
    ends = [
        bag.end
        for number, bag in bags.items()
        if number != but and site in bag.sites and (number if bag.alone else None) == pilot.bag
    ]
    known = [end for end in ends if end is not None]
    if pilot.leaving or not ends:
        return Estimate(now, now, now)
    if len(known) < len(ends):
        return None
    return Estimate(
        max(end.low for end in known), max(end.value for end in known), max(end.high for end in known)
    )
