"""Which bags are run with which estimators, and what is written down of each run."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Literal

import msgspec

from adaptor.budget.provisioning.hosts import HostTerms
from adaptor.budget.provisioning.presets import AGGRESSIVE, CONSERVATIVE, FRUGAL, PREFERENCES, Preset
from adaptor_experiments.a2ha.bags import (
    DEMO,
    IMAGE,
    IMAGE_LISTS,
    LONG,
    NORMAL,
    TESTING,
    TESTING_LISTS,
    WHOLE_HOUR,
    Kind,
)
from adaptor_experiments.a2ha.paper_presets import (
    AGGRESSIVE_2008,
    AS_THE_TABLE,
    CONSERVATIVE_2008,
    HALF_FILLED,
    PaperPreset,
    by_2008,
)

Bought = Literal["as published", "daemon"]
"""How a preset is asked: step by step as the papers print it, or as the daemon asks it."""

CREATION = (0.0, 0.25, 0.5, 0.75, 1.0)
INCREASE = (0.25, 0.5, 0.75)
ORDERS = 200  # of each bag (2008, §5; 2011, §4)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    seed: int = 1
    orders: int = ORDERS
    demo: Path | None = None
    """Measured runtimes; None: those of the package."""


class Scheme(msgspec.Struct, frozen=True, kw_only=True):
    """One bag with one estimator."""

    experiment: str
    """`grid-2011` (Figs 9 to 11), `grid-2008` (its Figs 5 and 6), `presets`, `lists` or `long` (Table 2)."""
    bag: str
    preset: Preset
    terms: HostTerms
    initial: int | None = None
    """Hosts to begin with; None: as the preset does it."""
    bought: Bought = "as published"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One run; times in seconds."""

    experiment: str
    bag: str
    preset: str
    bought: str
    creation: float
    increase: float
    initial: int
    order: int
    hosts: int
    units: int
    optimal: int
    wall: float
    work: float
    cut: int
    wasted: float
    continued: int

    @property
    def speedup(self) -> float:
        return self.work / self.wall

    @property
    def excess(self) -> float:
        """Hosts over the optimal number."""
        return self.hosts / self.optimal


def schemes() -> list[Scheme]:
    kinds = tuple(msgspec.structs.replace(kind, terms=WHOLE_HOUR) for kind in (IMAGE, NORMAL))
    grids = _grid("grid-2011", (IMAGE, NORMAL, TESTING, DEMO), 2011) + _grid("grid-2008", kinds, 2008)
    return [*grids, *presets(), *_lists(), *_long()]


def presets() -> list[Scheme]:
    """Every preset on every bag of short tasks: Tables 1 and 3, Fig. 12 and Fig. 7 of 2008.

    Those that users prefer are asked as the daemon asks, and those of the paper both ways.
    """
    asked: dict[Bought, tuple[Preset, ...]] = {
        "as published": (CONSERVATIVE, AGGRESSIVE, CONSERVATIVE_2008, AGGRESSIVE_2008, FRUGAL),
        "daemon": (CONSERVATIVE, AGGRESSIVE, *PREFERENCES.values()),
    }
    found = []
    for kind in (IMAGE, NORMAL, TESTING, DEMO):
        for bought, each in ((bought, each) for bought, some in asked.items() for each in some):
            terms = WHOLE_HOUR if by_2008(each) and kind is not DEMO else kind.terms
            found.append(Scheme(experiment="presets", bag=kind.key, preset=each, terms=terms, bought=bought))
    return found


def _lists() -> list[Scheme]:
    """Lists that the published statistics allow as well."""
    kinds = (*IMAGE_LISTS, *TESTING_LISTS)
    return [
        Scheme(experiment="lists", bag=kind.key, preset=preset, terms=kind.terms)
        for kind, preset in itertools.product(kinds, (CONSERVATIVE, AGGRESSIVE, FRUGAL))
    ]


def _grid(experiment: str, kinds: tuple[Kind, ...], published: Literal[2008, 2011]) -> list[Scheme]:
    return [
        Scheme(
            experiment=experiment,
            bag=kind.key,
            preset=PaperPreset(
                name="grid", creation_ratio=creation, increase_ratio=increase, published=published
            ),
            terms=kind.terms,
        )
        for kind, creation, increase in itertools.product(kinds, CREATION, INCREASE)
    ]


def _long() -> list[Scheme]:
    """Table 2: as the text has it (no new hosts beyond half of all tasks), with hosts that fill the half, and
    as the table has it (half of what is left after the first hosts)."""
    presets = (CONSERVATIVE, HALF_FILLED, AS_THE_TABLE, FRUGAL)
    return [
        Scheme(experiment="long", bag=LONG.key, preset=preset, terms=LONG.terms, initial=initial)
        for preset, initial in itertools.product(presets, (256, 100, 50, 1))
    ]
