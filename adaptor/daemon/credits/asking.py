"""Which bags are to be done for a cost or by a time at several sites, and the questions that this raises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from adaptor.crafting.coverage import joint_coverage
from adaptor.crafting.multisite.site_status import NO_ANSWER, Standing
from adaptor.crafting.situation import Group
from adaptor.daemon.credits.offering import Question, question
from adaptor.daemon.site_state import SiteState
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.state import Books


def questions_of(
    sites: Mapping[str, SiteState], standings: Mapping[str, Standing], groups: Sequence[Group], now: float
) -> list[Question]:
    """For each bag that runs in pilots of its own, may run at several sites, and has uncovered tasks."""
    books = next(iter(sites.values())).core.broker.books
    bags = [_own_bag(books, group) for group in groups]
    if not any(bags):
        return []
    covered = joint_coverage({name: each.reckoned for name, each in standings.items()}, groups)
    found = [
        question(sites, standings, bag, group, uncovered, now)
        for bag, group, uncovered in zip(bags, groups, covered.uncovered, strict=True)
        if bag is not None and uncovered
    ]
    return [each for each in found if each is not None]


def as_if_it_answered(standing: Standing) -> Standing:
    """A scheduler that is silent for a moment is soon back: no other site is paid in its place."""
    if standing.closed == NO_ANSWER and not standing.lost:
        return msgspec.structs.replace(standing, closed="")
    return standing


def _own_bag(books: Books, group: Group) -> Bag | None:
    if len(group.at) < 2:
        return None
    bag = next(iter(group.at.values())).bag
    return None if bag is None else books.bags.get(bag)
