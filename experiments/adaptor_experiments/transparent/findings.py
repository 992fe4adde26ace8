"""What the experiment says, in sentences with their figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from adaptor_experiments.transparent.claims import CLAIMS, tally
from adaptor_experiments.transparent.design import DONATED, STRATEGIES, Donated
from adaptor_experiments.transparent.summary import Cell


def conclusion(cells: Sequence[Cell]) -> tuple[str, ...]:
    return (*_speed(cells), _delay(cells), _lost(cells), *_claims(cells))


def _speed(cells: Sequence[Cell]) -> list[str]:
    means = sorted({cell.mean for cell in cells})
    by_rule = {
        rule: ", ".join(
            f"{_ratio([cell.explicit[rule].value for cell in cells if cell.mean == mean])}"
            f" (tasks of {mean:,} s)"
            for mean in means
        )
        for rule in DONATED
    }
    mixed = _ratio([cell.mixed.value for cell in cells])
    samples = max(cell.samples for cell in cells)
    chance = "" if samples > 1 else " Each is drawn from one submission time, which says nothing of chance."
    return [
        f"Donated nodes alone are {by_rule['all-idle']} times as fast as the better kind of formal request by"
        f" the paper's rule, {by_rule['transparent']} times by ours, and mixed is {mixed} times as fast as"
        f" the better of adaptive and transparent, in the geometric mean of {len(cells)} cells.{chance}"
    ]


def _ratio(values: Sequence[float]) -> str:
    return f"{np.exp(np.log(values).mean()):.2f}"


def _delay(cells: Sequence[Cell]) -> str:
    def delayed(name: str) -> int:
        return sum(cell.by[name].later > 0 for cell in cells)

    others = ", ".join(f"{name} in {delayed(name)}" for name in STRATEGIES if name not in DONATED)
    donated = " and ".join(f"{name} in {delayed(name)}" for name in DONATED)
    return f"Of {len(cells)} cells, {donated} made a local job start later; {others}."


def _lost(cells: Sequence[Cell]) -> str:
    def share(rule: Donated, mean: int) -> float:
        some = [cell.by[rule] for cell in cells if cell.mean == mean]
        return sum(each.lost for each in some) / max(sum(each.used for each in some), 1e-9)

    means = sorted({cell.mean for cell in cells})
    theirs, ours = (
        ", ".join(f"{share(rule, mean):.0%} (tasks of {mean:,} s)" for mean in means) for rule in DONATED
    )
    return (
        f"Of the donated processor time, local jobs that took it back have cost {theirs} by the paper's rule"
        f" and {ours} by ours."
    )


def _claims(cells: Sequence[Cell]) -> list[str]:
    """The paper's claims, by whether the rows that they concern agree."""
    tallies = {claim.key: tally(claim, cells, "all-idle") for claim in CLAIMS}

    def keys(*, confirmed: bool, contradicted: bool) -> str:
        wanted = (confirmed, contradicted)
        chosen = (
            key
            for key, found in tallies.items()
            if (bool(found["confirms"]), bool(found["contradicts"])) == wanted
        )
        return ", ".join(chosen) or "none"

    return [
        f"Of the paper's {len(CLAIMS)} claims (the first table), by its own rule every row that decides"
        f" confirms {keys(confirmed=True, contradicted=False)}; every one contradicts"
        f" {keys(confirmed=False, contradicted=True)}; rows differ on"
        f" {keys(confirmed=True, contradicted=True)}; nothing is decided of"
        f" {keys(confirmed=False, contradicted=False)}."
    ]
