"""Sites at which the tasks of bags with a budget or an aim should run, found again as things change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from adaptor.budget.accounting.entries import bag_name
from adaptor.budget.errors import BudgetError
from adaptor.budget.provisioning.task_shares import INTERVAL, CostSplit, split_tasks
from adaptor.crafting.heuristics import HEURISTICS
from adaptor.crafting.multisite.capacity import TargetShares
from adaptor.decisions.memory import AnsweredShares, Memory, ShareQuestion, donated_nodes
from adaptor.decisions.requests import most_slots, sites_of
from adaptor.decisions.snapshot import Snapshot
from adaptor.forecast.bag_facts import BagFacts


def answered(memory: Memory, questions: Sequence[ShareQuestion]) -> Memory:
    """The memory with the due answers, and without those of bags that are not asked about.

    An answer takes up to 0.3 s with ten sites. What changes it at once has it asked again at once.
    """
    asked = {question.bag for question in questions}
    shares = {bag: answer for bag, answer in memory.shares.items() if bag in asked}
    problem = memory.shares_problem
    due = [question for question in questions if _is_due(shares.get(question.bag), question)]
    if due:
        problem = ""
    for each in due:
        shares.pop(each.bag, None)
        try:
            shares[each.bag] = AnsweredShares(each, split_tasks(each.aim, each.progress, each.offers))
        except BudgetError as error:  # the other bags have their answers
            problem = f"the sites for {bag_name(each.bag)} cannot be compared by cost and time: {error}"
    return msgspec.structs.replace(memory, shares=shares, shares_problem=problem)


def shares_of(memory: Memory, bag: int) -> CostSplit | None:
    """Sites at which the tasks of a bag should run; None: wherever they finish first."""
    answer = memory.shares.get(bag)
    return None if answer is None else answer.split


def parts_money(snapshot: Snapshot, bag: BagFacts) -> bool:
    """Whether a bag's budget is parted among its sites, and not its tasks: it has no other aim, and each site
    plans with the pilots of all sites in view."""
    sites = sites_of(bag, snapshot.sites)
    return not bag.spec.aims and all(HEURISTICS[site.heuristic].replans for site in sites)


def part_of_money(snapshot: Snapshot, memory: Memory, bag: BagFacts) -> float:
    """The part of the site of a step in what is left of a bag's budget, as the division by cost says.

    Without one, what its slots cost says which part of the unspent money is the site's; its pilots in the
    system have had some of it. Where few of all slots are enough for the waiting tasks, any site may run them
    all.
    """
    if (shares := shares_of(memory, bag.id)) is not None:
        return shares.part(snapshot.site)
    sites = sites_of(bag, snapshot.sites)
    if len(sites) == 1:
        return 1.0
    ledger = snapshot.ledger
    slots = {site.name: most_slots(site, bag.spec.task) for site in sites}
    worth = {name: count * ledger.tariff(name).price("explicit") for name, count in slots.items()}
    enough = max(1.0, sum(slots.values()) / max(1, bag.waiting))
    part = min(1.0, enough * worth[snapshot.site] / max(1, sum(worth.values())))
    if (balance := ledger.budget_of(bag.id)) is None or balance.left <= 0:
        return part
    here = sum(pilot.amount for pilot in ledger.open_pilots_of(bag.id) if pilot.site == snapshot.site)
    return min(1.0, max(0.0, part * (balance.left + balance.reserved) - here) / balance.left)


def why_not_donated(memory: Memory, bag: int | None, site: str) -> str:
    """Why a bag is to have none of the donated nodes that a site offers it; empty: it may have them."""
    answer = None if bag is None else memory.shares.get(bag)
    if answer is None:
        return ""
    place = donated_nodes(site)
    left_out = place in answer.to.offers and not answer.split.tasks(place)
    return answer.split.reason if left_out else ""


def targets(memory: Memory, compared: Iterable[int]) -> dict[int, TargetShares | None]:
    """Shares of each bag that is divided by cost and time, in the form of the division; None: no answer."""
    found: dict[int, TargetShares | None] = dict.fromkeys(compared)
    for bag in found:
        if split := shares_of(memory, bag):
            tasks = {site: share.tasks for site, share in split.by_site.items()}
            found[bag] = TargetShares(shares=tasks, seconds=split.seconds, reason=split.reason)
    return found


def _is_due(answer: AnsweredShares | None, question: ShareQuestion) -> bool:
    if answer is None or answer.to.key != question.key:
        return True
    return abs(question.progress.now - answer.to.progress.now) >= INTERVAL
