"""What the experiment says, in sentences with their figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from adaptor.experiments.transparent.claims import CLAIMS, tally
from adaptor.experiments.transparent.design import STRATEGIES
from adaptor.experiments.transparent.summary import Cell


def conclusion(cells: Sequence[Cell]) -> tuple[str, ...]:
    return (*_speed(cells), _delay(cells), _lost(cells), *_claims(cells))


def _speed(cells: Sequence[Cell]) -> list[str]:
    means = sorted({cell.mean for cell in cells})
    donated = ", ".join(
        f"{_ratio([cell.explicit.value for cell in cells if cell.mean == mean])} (tasks of {mean:,} s)"
        for mean in means
    )
    mixed = _ratio([cell.mixed.value for cell in cells])
    samples = max(cell.samples for cell in cells)
    chance = "" if samples > 1 else " Each is drawn from one submission time, which says nothing of chance."
    return [
        f"Donated nodes alone are {donated} times as fast as the better kind of formal request, and mixed is"
        f" {mixed} times as fast as the better of adaptive and transparent, in the geometric mean of"
        f" {len(cells)} cells.{chance}"
    ]


def _ratio(values: Sequence[float]) -> str:
    return f"{np.exp(np.log(values).mean()):.2f}"


def _delay(cells: Sequence[Cell]) -> str:
    def delayed(name: str) -> int:
        return sum(cell.by[name].later > 0 for cell in cells)

    others = ", ".join(f"{name} in {delayed(name)}" for name in STRATEGIES if name not in _DONATED)
    donated = " and ".join(f"{name} in {delayed(name)}" for name in _DONATED)
    return f"Of {len(cells)} cells, {donated} made a local job start later; {others}."


_DONATED = ("transparent", "all-idle")


def _lost(cells: Sequence[Cell]) -> str:
    def share(mean: int) -> float:
        some = [cell.by["transparent"] for cell in cells if cell.mean == mean]
        return sum(each.lost for each in some) / max(sum(each.used for each in some), 1e-9)

    told = ", ".join(f"{share(mean):.0%} (tasks of {mean:,} s)" for mean in sorted({c.mean for c in cells}))
    return f"Of the donated processor time, local jobs that took it back have cost {told}."


def _claims(cells: Sequence[Cell]) -> list[str]:
    """The paper's claims, by whether the rows that they concern agree."""
    tallies = {claim.key: tally(claim, cells) for claim in CLAIMS}

    def keys(*, confirmed: bool, contradicted: bool) -> str:
        wanted = (confirmed, contradicted)
        chosen = (
            key
            for key, found in tallies.items()
            if (bool(found["confirms"]), bool(found["contradicts"])) == wanted
        )
        return ", ".join(chosen) or "none"

    return [
        f"Of the paper's {len(CLAIMS)} claims (the first table), every row that decides confirms"
        f" {keys(confirmed=True, contradicted=False)}; every one contradicts"
        f" {keys(confirmed=False, contradicted=True)}; rows differ on"
        f" {keys(confirmed=True, contradicted=True)}; nothing is decided of"
        f" {keys(confirmed=False, contradicted=False)}."
    ]
