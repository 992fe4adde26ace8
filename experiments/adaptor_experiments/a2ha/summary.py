"""From runs to means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np

from adaptor_experiments.a2ha.design import Row


class Mean(msgspec.Struct, frozen=True):
    """Over the orders, with the standard deviation between them."""

    value: float
    deviation: float

    def shown(self, digits: int = 1) -> str:
        return f"{self.value:,.{digits}f} ± {self.deviation:,.{digits}f}"


class Group(msgspec.Struct, frozen=True):
    """All orders of one scheme."""

    rows: tuple[Row, ...]

    @property
    def first(self) -> Row:
        return self.rows[0]

    def mean(self, of: Callable[[Row], float]) -> Mean:
        values = np.array([of(row) for row in self.rows], np.float64)
        return Mean(float(values.mean()), float(values.std()))

    @property
    def excess(self) -> float:
        """Mean number of hosts over the optimal one, less 1."""
        return self.mean(lambda row: row.hosts / row.optimal).value - 1

    @property
    def charged_excess(self) -> float:
        """As `excess`, of the charged units."""
        return self.mean(lambda row: row.units / row.optimal).value - 1


def groups(rows: Iterable[Row], experiment: str) -> list[Group]:
    """By scheme, in the order in which they come."""
    found: dict[tuple[str, str, str, float, float, int], list[Row]] = {}
    for row in rows:
        if row.experiment == experiment:
            key = (row.bag, row.preset, row.bought, row.creation, row.increase, row.initial)
            found.setdefault(key, []).append(row)
    return [Group(tuple(each)) for each in found.values()]


def pick(found: Sequence[Group], bag: str, preset: str) -> Group:
    """The runs of a preset, as published."""
    wanted = (bag, preset, "as published")
    return next(each for each in found if (each.first.bag, each.first.preset, each.first.bought) == wanted)


def published(rows: Iterable[Row], bag: str, preset: str) -> Group:
    """The same, of all runs."""
    return pick(groups(rows, "presets"), bag, preset)
