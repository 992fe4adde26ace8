"""What the sites offer for a bag at an instant, in the words of the allocation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from adaptor.budget.accounting.credits import in_credits
from adaptor.budget.estimation.learned_times import Learned
from adaptor.budget.estimation.task_time import TaskTime
from adaptor.budget.provisioning.site_offers import SiteOffer
from adaptor.budget.provisioning.steering import Aim, Preference, Progress
from adaptor.crafting.multisite.site_status import Standing
from adaptor.crafting.situation import Demand, Group
from adaptor.daemon.core import Core
from adaptor.daemon.credits.affording import shape_of, smallest
from adaptor.daemon.credits.foresight import slots_there
from adaptor.daemon.credits.treasury import EXPLICIT
from adaptor.daemon.site_state import SiteState
from adaptor.scheduling.bag import Bag

_OPENINGS = 3
"""Instants at which processors of a site become free, that are told apart."""
_SPREAD = 0.5
"""Deviation of runtimes in parts of their mean, before enough have finished to tell."""
_SHORTEST = 1e-3
"""Seconds that a task takes at least in the mean, whatever a clock that was set back has shown."""
_RUNNING = 200
"""Running tasks of a site that are looked at, at most; they lie evenly among all."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Where are the uncovered tasks of a bag to run?"""

    bag: int
    aim: Aim
    progress: Progress
    offers: dict[str, tuple[SiteOffer, ...]]
    """By site; each at least one."""

    @property
    def key(self) -> tuple[object, ...]:
        """What changes the answer at once; all else changes little by little."""
        return self.aim, self.progress.waiting, frozenset(self.offers)


def question(
    sites: Mapping[str, SiteState],
    standings: Mapping[str, Standing],
    bag: Bag,
    group: Group,
    uncovered: int,
    now: float,
) -> Question | None:
    """None: no site can take a task of it."""
    core = next(iter(sites.values())).core
    elapsed = running_for(core, bag.id, now)
    offers = {
        name: found
        for name, demand in group.at.items()
        if name in sites and (found := _offers(sites[name], standings[name], bag, demand, elapsed, now))
    }
    if not offers:
        return None
    return Question(
        bag=bag.id, aim=aim_of(core, bag), progress=_progress(core, bag, uncovered, now), offers=offers
    )


def aim_of(core: Core, bag: Bag) -> Aim:
    """What its user wants. A budget alone is there to be used; a deadline alone is to be cheap."""
    balance = core.treasury.ledger.budget_of(bag.id)
    return Aim(
        deadline=bag.spec.deadline,
        budget=None if balance is None else in_credits(balance.budget.amount),
        prefer=_preference(bag),
    )


def _preference(bag: Bag) -> Preference:
    match bag.spec.prefer:
        case "cheap" | "balanced" | "fast" as preferred:
            return preferred
        case _:
            return "fast" if bag.spec.deadline is None or bag.spec.slots else "cheap"


def task_time(core: Core, bag: Bag, site: str, elapsed: Sequence[float]) -> TaskTime:
    """By the tasks that finished at a site and those that have run there for so long, in seconds.

    Before any: as sampled for a quote, else as at the other sites, else as the site's initial_tr says.
    """
    learner = core.broker.books.learner(bag.id, site)
    known = learner.learned
    guess = learner.mean or bag.spec.runtimes.get(site) or _elsewhere(core, bag) or learner.estimate
    found = Learned(TaskTime(guess, _SPREAD * guess), weight=0)
    total = max(known.total, _SHORTEST * known.finished)
    found.add_together(known.finished, total, max(known.squares, _SHORTEST * total))
    return found.estimate(elapsed[:: max(1, -(-len(elapsed) // _RUNNING))])


def _elsewhere(core: Core, bag: Bag) -> float | None:
    """The mean runtime of the tasks that have finished, wherever they ran."""
    known = [core.broker.books.learner(bag.id, site).learned for site in core.terms if bag.spec.allows(site)]
    finished = sum(each.finished for each in known)
    return sum(each.total for each in known) / finished if finished else None


def running_for(core: Core, bag: int, now: float) -> dict[str, list[float]]:
    """By site: for how many seconds each task of a bag has run there, replicas too."""
    found: dict[str, list[float]] = {}
    for worker in core.broker.books.workers.values():
        for key, held in worker.held.items():
            if key.bag == bag and held.started is not None:
                found.setdefault(worker.site, []).append(max(0.0, now - held.started))
    return found


def _offers(
    site: SiteState,
    standing: Standing,
    bag: Bag,
    demand: Demand,
    elapsed: Mapping[str, Sequence[float]],
    now: float,
) -> tuple[SiteOffer, ...]:
    """What could be bought at a site by new requests, whose limits and queue the openings know of."""
    if not _holds_a_request(site, bag, demand, now):
        return ()
    name = site.name
    openings = _within(standing.capacity(demand, standing.allowed, now).openings, _most(site, bag))
    tariff = site.core.treasury.ledger.tariff(name)
    whole = SiteOffer(
        name=name,
        price=in_credits(tariff.price(EXPLICIT)) * bag.spec.cpus,
        processors=0,
        task=task_time(site.core, bag, name, elapsed.get(name, ())),
        charging_unit=float(tariff.charging_unit),
        startup=site.pad,
    )
    return tuple(
        msgspec.structs.replace(whole, name=f"{name} {number}", processors=slots, wait=max(0.0, start - now))
        for number, (start, slots) in enumerate(_merged(openings), 1)
    )


def _holds_a_request(site: SiteState, bag: Bag, demand: Demand, now: float) -> bool:
    """Whether the budgets of the site hold one, and the bag's, where none of its pilots may give any back."""
    ledger = site.core.treasury.ledger
    rooms = [each.left for each in ledger.budgets_at(site.name, now)]
    balance = ledger.budget_of(bag.id)
    if balance is not None and not balance.reserved:
        rooms.append(balance.left)
    least = smallest(site, shape_of(site, demand), demand)
    needed = ledger.tariff(site.name).reservation(EXPLICIT, least.p, least.tr)
    return all(needed <= room for room in rooms)


def _most(site: SiteState, bag: Bag) -> int | None:
    """Slots that may still be bought there by the bag's quote; None: it has none."""
    if not bag.spec.slots:
        return None
    return max(0, site.core.chosen.of(bag).get(site.name, 0) - slots_there(site, bag))


def _within(openings: Sequence[tuple[float, int]], most: int | None) -> list[tuple[float, int]]:
    """The first so many slots."""
    if most is None:
        return list(openings)
    found = []
    for start, slots in openings:
        found.append((start, min(slots, most)))
        most -= found[-1][1]
    return [(start, slots) for start, slots in found if slots]


def _merged(openings: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    """Those of the same instant together, and the late ones as if all were at the last."""
    slots: dict[float, int] = {}
    for start, more in openings:
        slots[start] = slots.get(start, 0) + more
    starts = sorted(slots)
    first, late = starts[: _OPENINGS - 1], starts[_OPENINGS - 1 :]
    found = [(start, slots[start]) for start in first]
    return [*found, (late[-1], sum(slots[start] for start in late))] if late else found


def _progress(core: Core, bag: Bag, uncovered: int, now: float) -> Progress:
    """The pilots that are there or asked for are expected to run for their whole time."""
    ledger = core.treasury.ledger
    committed = sum(
        each.tariff.charge(each.kind, each.p, each.tr)
        for each in ledger.open_pilots.values()
        if any(part.bag == bag.id for part in each.parts)
    )
    return Progress(
        now=now,
        waiting=uncovered,
        spent=in_credits(ledger.of_bag(bag.id).used),
        committed=in_credits(committed),
    )
