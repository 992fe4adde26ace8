"""Bags and estimators of the experiment, and the record of each run."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Literal

import msgspec

from adaptor.budget.provisioning.hosts import HostTerms
from adaptor.budget.provisioning.presets import AGGRESSIVE, CONSERVATIVE, FRUGAL, PREFERENCES, Preset
from adaptor_experiments.a2ha.bags import (
    DEMO,
    IMAGE,
    IMAGE_LISTS,
    KINDS,
    LONG,
    NORMAL,
    TESTING,
    TESTING_LISTS,
    WHOLE_HOUR,
    Kind,
    optimal_hosts,
    runtimes,
)
from adaptor_experiments.a2ha.paper_presets import (
    AGGRESSIVE_2008,
    AS_THE_TABLE,
    CONSERVATIVE_2008,
    HALF_FILLED,
    PaperPreset,
    by_2008,
)
from adaptor_experiments.a2ha.simulation import Bought, CloudRun

CREATION = (0.0, 0.25, 0.5, 0.75, 1.0)
INCREASE = (0.25, 0.5, 0.75)
_AT_ONCE = 25  # orders of a piece


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    seed: int = 1
    orders: int = 200
    """Orders of each bag (2008, §5; 2011, §4)."""


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
    """One run: the scheme, and a `Run` of the simulation."""

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
    without_startup = [msgspec.structs.replace(kind, terms=WHOLE_HOUR) for kind in (IMAGE, NORMAL)]
    grids = [*_grid(2011, (IMAGE, NORMAL, TESTING, DEMO)), *_grid(2008, without_startup)]
    lists = _schemes("lists", (*IMAGE_LISTS, *TESTING_LISTS), (CONSERVATIVE, AGGRESSIVE, FRUGAL))
    # Table 2: as the text has it (no new hosts beyond half of all tasks), with hosts that fill the half, and
    # as the table has it (half of what is left after the first hosts).
    long = [
        msgspec.structs.replace(scheme, initial=initial)
        for scheme in _schemes("long", (LONG,), (CONSERVATIVE, HALF_FILLED, AS_THE_TABLE, FRUGAL))
        for initial in (256, 100, 50, 1)
    ]
    return [*grids, *presets(), *lists, *long]


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


def _schemes(experiment: str, kinds: Iterable[Kind], presets: Iterable[Preset]) -> list[Scheme]:
    return [
        Scheme(experiment=experiment, bag=kind.key, preset=preset, terms=kind.terms)
        for kind, preset in itertools.product(kinds, presets)
    ]


def _grid(published: Literal[2008, 2011], kinds: Iterable[Kind]) -> list[Scheme]:
    presets = (
        PaperPreset(name="grid", creation_ratio=creation, increase_ratio=increase, published=published)
        for creation, increase in itertools.product(CREATION, INCREASE)
    )
    return _schemes(f"grid-{published}", kinds, presets)


class Piece(msgspec.Struct, frozen=True):
    """Some orders of a scheme."""

    scheme: Scheme
    first: int
    settings: Settings

    @property
    def name(self) -> str:
        scheme, preset = self.scheme, self.scheme.preset
        ratios = f"{preset.creation_ratio:g}-{preset.increase_ratio:g}"
        told = (scheme.experiment, scheme.bag, preset.name, ratios, scheme.bought, scheme.initial, self.first)
        return "-".join(map(str, told))


def pieces(settings: Settings, wanted: Iterable[Scheme] | None = None) -> list[Piece]:
    """Pieces of all schemes, or of those wanted."""
    return [
        Piece(scheme, first, settings)
        for scheme in (schemes() if wanted is None else wanted)
        for first in range(0, settings.orders, _AT_ONCE)
    ]


def run_piece(piece: Piece) -> list[Row]:
    last = min(piece.first + _AT_ONCE, piece.settings.orders)
    return [_run(piece.scheme, piece.settings, order) for order in range(piece.first, last)]


def _run(scheme: Scheme, settings: Settings, order: int) -> Row:
    bag = runtimes(KINDS[scheme.bag], settings.seed, order).tolist()
    run = CloudRun(bag, scheme.terms, scheme.preset, initial=scheme.initial, bought=scheme.bought).finish()
    return Row(
        experiment=scheme.experiment,
        bag=scheme.bag,
        preset=scheme.preset.name,
        bought=scheme.bought,
        creation=scheme.preset.creation_ratio,
        increase=scheme.preset.increase_ratio,
        initial=scheme.initial or 0,
        order=order,
        optimal=optimal_hosts(run.work, scheme.terms),
        **msgspec.structs.asdict(run),
    )
