"""Memory from one decision to the next one, of any site. Frozen; the journal does not keep it.

A restarted daemon begins without it and comes to the same conclusions within seconds.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any

import msgspec

from adaptor.budget.provisioning.pacing import Pace
from adaptor.budget.provisioning.site_offers import SiteOffer
from adaptor.budget.provisioning.steering import Aim, Progress
from adaptor.budget.provisioning.task_shares import CostSplit
from adaptor.crafting.places import Place
from adaptor.forecast.forecast import Forecast


def donated_nodes(site: str) -> str:
    """Names the donated nodes of a site among the places where tasks can run; its own name is for formal
    requests."""
    return f"{site} (donated)"


class ShareQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """The question to the allocation (Ricciardi & Hwang): where should the uncovered tasks of a bag run?"""

    bag: int
    aim: Aim
    progress: Progress
    offers: dict[str, tuple[SiteOffer, ...]]
    """Offers by place, a site or its `donated_nodes`; at least one each."""

    @property
    def key(self) -> tuple[object, ...]:
        """Parts whose change asks the question again at once; all else changes little by little."""
        return self.aim, self.progress.waiting, frozenset(self.offers)


class AnsweredShares(msgspec.Struct, frozen=True):
    """Sites at which the tasks of a bag are to run, and the question that this answers."""

    to: ShareQuestion
    split: CostSplit


class MadeForecast(msgspec.Struct, frozen=True):
    """The last forecast of a bag."""

    at: float
    """Epoch seconds at which it was made."""
    forecast: Forecast
    finished: int = 0
    """Tasks with a result by then."""


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Memory by bag or by site; times are epoch seconds."""

    shares: dict[int, AnsweredShares] = {}
    """Bags with a budget or a deadline: where their tasks are to run."""
    shares_problem: str = ""
    """Reason why there are no shares; empty: there are."""
    forecasts: dict[int, MadeForecast] = {}
    """Forecasts of all bags, those that share pilots among them; `take_snapshot` drops those of ended
    bags."""
    places: dict[str, Sequence[Place]] = {}
    """The places of each site as the last division has planned them, so that none is planned again."""
    missed: dict[str, float] = {}
    """Epoch seconds since which other sites have wanted to know the queue of a site."""
    paces: dict[int, Pace] = {}
    """Bags whose hosts A²HA counts: how many they may still ask for."""
    paused: dict[str, dict[int, str]] = {}
    """Reason why the budgets hold no request for a bag, by site or its `donated_nodes`, then by bag."""

    def only_of(self, bags: Container[int]) -> Memory:
        """The memory without ended bags."""
        if all(bag in bags for bag in self.paces):
            return self
        paces = {bag: pace for bag, pace in self.paces.items() if bag in bags}
        return msgspec.structs.replace(self, paces=paces)

    def without_pause(self, bag: int) -> Memory:
        """The memory without the pauses of a bag, after a change of its budget."""
        paused = {
            place: {each: why for each, why in there.items() if each != bag}
            for place, there in self.paused.items()
        }
        return msgspec.structs.replace(self, paused=paused)


class MemoryDraft:
    """The memory as a step leaves it so far. The step owns it; the rules in it read it and keep in it."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def keep(self, **fields: Any) -> None:
        """Replace these fields of the memory."""
        self.memory = msgspec.structs.replace(self.memory, **fields)

    def keep_pace(self, bag: int, pace: Pace) -> None:
        self.keep(paces={**self.memory.paces, bag: pace})

    def pause(self, place: str, paused: dict[int, str]) -> None:
        """Keep why bags get no request at a site or its donated nodes; other bags get one."""
        if paused != self.memory.paused.get(place, {}):
            self.keep(paused={**self.memory.paused, place: paused})

    def pause_bags(self, place: str, bags: Iterable[int], why: str) -> None:
        """Keep why these bags, too, get no request there."""
        self.pause(place, {**self.memory.paused.get(place, {}), **dict.fromkeys(bags, why)})
