"""Sentences of a paper, compared with the rows of a result: the verdict of each row, and of all.

The papers give no figures for "acceptable", "similar" or "worse": the bounds are ours, on the pages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeVar, get_args

import msgspec

from adaptor_experiments.bootstrap import Interval

Verdict = Literal["confirms", "contradicts", "open"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
Of = Literal["each", "most"]  # of which rows a sentence speaks
Row = TypeVar("Row")


class Bounds(msgspec.Struct, frozen=True):
    """Bounds of the figure of a row: at least `low`, and less than `high`."""

    low: float = -math.inf
    high: float = math.inf

    def judge(self, found: Interval) -> Verdict:
        """Open where the interval of the figure reaches to the other side, or is not known."""
        if not found.known or (found.low < self.low <= found.high) or (found.low < self.high <= found.high):
            return "open"
        return "confirms" if self.low <= found.value < self.high else "contradicts"


def tally(rows: Iterable[Row], judge: Callable[[Row], Verdict]) -> dict[Verdict, list[Row]]:
    """The rows by what each says."""
    found: dict[Verdict, list[Row]] = {verdict: [] for verdict in VERDICTS}
    for row in rows:
        found[judge(row)].append(row)
    return found


def example(found: Mapping[Verdict, Sequence[Row]]) -> Row | None:
    """A row of the rarest verdict, as it tells most; None: there is no row."""
    rarest = min(filter(None, found.values()), key=len, default=None)
    return rarest[0] if rarest else None


def settled(found: Mapping[Verdict, Sequence[Row]], of: Of) -> Verdict:
    """Verdict of all rows together on a sentence about each, or about most of them."""
    confirm, contradict, undecided = (len(found[verdict]) for verdict in VERDICTS)
    if of == "most":
        half = (confirm + contradict + undecided) / 2
        return "confirms" if confirm > half else "contradicts" if contradict > half else "open"
    if contradict:
        return "contradicts"
    return "confirms" if confirm and not undecided else "open"
