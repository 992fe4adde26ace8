"""What De Rose et al. 2008 say of the two strategies (§3 on its reference [8], §5), each against every cell.

The paper gives no figures for "acceptable" or "efficiently"; the bounds here are ours and stand beside
each claim. A claim on transparent allocation is held against the paper's own rule (all-idle) and against ours
(transparent).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, get_args

import msgspec

from adaptor_experiments.bootstrap import Interval
from adaptor_experiments.transparent.design import Donated
from adaptor_experiments.transparent.summary import Cell, Share

Verdict = Literal["confirms", "contradicts", "open"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
Judge = Callable[[Cell, Donated], Verdict]


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence of the paper and what it means for a cell."""

    key: str
    where: str
    sentence: str
    test: str
    """What a row must show, in words."""
    concerns: Callable[[Cell], bool]
    judge: Judge
    """By the rule that uses the donated nodes."""


def _above(bound: float, ratio: Callable[[Cell, Donated], Interval]) -> Judge:
    """Confirmed where the ratio is at least this; open where its interval reaches to the other side."""

    def judge(cell: Cell, rule: Donated) -> Verdict:
        found = ratio(cell, rule)
        if found.low < bound <= found.high:  # also where there is but one sample
            return "open"
        return "confirms" if found.value >= bound else "contradicts"

    return judge


def _below(bound: float, ratio: Callable[[Cell, Donated], Interval]) -> Judge:
    opposite: dict[Verdict, Verdict] = {"confirms": "contradicts", "contradicts": "confirms", "open": "open"}
    above = _above(bound, ratio)
    return lambda cell, rule: opposite[above(cell, rule)]


def _holds(true: Callable[[Share], bool]) -> Judge:
    return lambda cell, rule: "confirms" if true(cell.by[rule]) else "contradicts"


def _explicit(cell: Cell, rule: Donated) -> Interval:
    return cell.explicit[rule]


def _not_heavy(cell: Cell) -> bool:
    return cell.level != "heavy"


CLAIMS = (
    Claim(
        key="A",
        where="§3 on [8]",
        sentence="particularly useful for applications comprising a large number of short duration tasks … "
        "with medium or low load",
        test="10,000 tasks or more of 100 s, load not heavy: as fast as the better explicit one",
        concerns=lambda cell: cell.mean == 100 and cell.tasks >= 10_000 and _not_heavy(cell),
        judge=_above(1.0, _explicit),
    ),
    Claim(
        key="B",
        where="§3 on [8]",
        sentence="medium duration tasks in these resources should experiment with an acceptable "
        "turn-around time",
        test="tasks of 1,000 s, load not heavy: at most twice the turnaround of the better explicit one",
        concerns=lambda cell: cell.mean == 1000 and _not_heavy(cell),
        judge=_above(0.5, _explicit),
    ),
    Claim(
        key="C",
        where="§3 on [8]",
        sentence="for those who need to execute large tasks or … a heavy load, another strategy must be "
        "applied",
        test="tasks of 10,000 s, or heavy load: the better explicit one is faster",
        concerns=lambda cell: cell.mean == 10_000 or cell.level == "heavy",
        judge=_below(1.0, _explicit),
    ),
    Claim(
        key="D",
        where="§5",
        sentence="reasonable performance for grid users when the execution time of each task is not large "
        "and the space-shared resources have medium to low utilization",
        test="tasks of 100 s or 1,000 s, load not heavy: at most twice the turnaround of the better explicit "
        "one",
        concerns=lambda cell: cell.mean <= 1000 and _not_heavy(cell),
        judge=_above(0.5, _explicit),
    ),
    Claim(
        key="E",
        where="§5",
        sentence="even possible that long duration tasks could be executed in an acceptable time in "
        "space-shared resources with low utilization",
        test="tasks of 10,000 s, low load: at most twice the turnaround of the better explicit one",
        concerns=lambda cell: cell.mean == 10_000 and cell.level == "low",
        judge=_above(0.5, _explicit),
    ),
    Claim(
        key="F",
        where="§5",
        sentence="intrusiveness caused by the Transparent Allocation Strategy is almost negligible",
        test="no local job starts later",
        concerns=lambda _: True,
        judge=_holds(lambda donated: donated.later == 0),
    ),
    Claim(
        key="G",
        where="§5",
        sentence="will generate, to the grid user point of view, more faults",
        test="donated processors are taken back while the bag runs",
        concerns=lambda _: True,
        judge=_holds(lambda donated: donated.reclaims > 0),
    ),
    Claim(
        key="H",
        where="§5",
        sentence="depending on the characteristics of the application, overheads added by this strategy "
        "are acceptable",
        test="tasks of 100 s or 1,000 s, the characteristic that the section names: at most a fifth of the "
        "donated processor time that is used is lost",
        concerns=lambda cell: cell.mean <= 1000,
        judge=_holds(lambda donated: donated.lost <= 0.2 * donated.used),
    ),
    Claim(
        key="I",
        where="§5",
        sentence="[explicit is] a useful strategy to be applied even in long duration tasks or in sites with "
        "high load",
        test="tasks of 10,000 s, or heavy load: at most half the turnaround of transparent",
        concerns=lambda cell: cell.mean == 10_000 or cell.level == "heavy",
        judge=_below(0.5, _explicit),
    ),
    Claim(
        key="J",
        where="§5",
        sentence="both … can be used efficiently in sites with low and medium loads",
        test="load not heavy: the two are within a factor of two",
        concerns=_not_heavy,
        judge=lambda cell, rule: _within_two(cell.explicit[rule]),
    ),
    Claim(
        key="K",
        where="§5",
        sentence="the Explicit Allocation Strategy is a costly strategy, as it should reserve resources",
        test="adaptive makes local jobs start later",
        concerns=lambda _: True,
        judge=lambda cell, _: "confirms" if cell.by["adaptive"].delay > 0 else "contradicts",
    ),
    Claim(
        key="L",
        where="§5",
        sentence="we envisage a mixed utilization of both strategies",
        test="mixed is at most a tenth slower than the better of adaptive and transparent",
        concerns=lambda _: True,
        judge=_above(1 / 1.1, lambda cell, _: cell.mixed),
    ),
)


def _within_two(ratio: Interval) -> Verdict:
    if 0.5 <= ratio.value <= 2:
        return "confirms" if ratio.low >= 0.5 and ratio.high <= 2 else "open"
    return "open" if ratio.low <= 2 and ratio.high >= 0.5 else "contradicts"


def verdicts(cell: Cell, rule: Donated) -> str:
    """What a cell says of the claims that concern it: `+A ?B −C` (confirms, open, contradicts)."""
    signs: dict[Verdict, str] = {"confirms": "+", "open": "?", "contradicts": "−"}
    return " ".join(f"{signs[each.judge(cell, rule)]}{each.key}" for each in CLAIMS if each.concerns(cell))


def tally(claim: Claim, cells: Sequence[Cell], rule: Donated) -> dict[Verdict, list[Cell]]:
    """The cells that a claim concerns, by what they say of it."""
    found: dict[Verdict, list[Cell]] = {verdict: [] for verdict in VERDICTS}
    for cell in cells:
        if claim.concerns(cell):
            found[claim.judge(cell, rule)].append(cell)
    return found
