"""What De Rose et al. 2008 say of the two strategies (§3 on its reference [8], §5), against every cell.

The paper gives no figures for "acceptable" or "efficiently"; the bounds are ours, and the page names them. A
claim on transparent allocation is held against the paper's own rule (all-idle) and against ours
(transparent).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, get_args

from adaptor_experiments.bootstrap import Interval
from adaptor_experiments.transparent.cells import Cell, Share
from adaptor_experiments.transparent.design import Donated

Verdict = Literal["confirms", "contradicts", "open"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
Judge = Callable[[Cell, Donated], Verdict]


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


def _long_or_heavy(cell: Cell) -> bool:
    return cell.mean == 10_000 or cell.level == "heavy"


def _every(_: Cell) -> bool:
    return True


def _within_two(ratio: Interval) -> Verdict:
    if 0.5 <= ratio.value <= 2:
        return "confirms" if ratio.low >= 0.5 and ratio.high <= 2 else "open"
    return "open" if ratio.low <= 2 and ratio.high >= 0.5 else "contradicts"


_JUDGES: dict[str, tuple[Callable[[Cell], bool], Judge]] = {
    "A": (
        lambda cell: cell.mean == 100 and cell.tasks >= 10_000 and _not_heavy(cell),
        _above(1.0, _explicit),
    ),
    "B": (lambda cell: cell.mean == 1000 and _not_heavy(cell), _above(0.5, _explicit)),
    "C": (_long_or_heavy, _below(1.0, _explicit)),
    "D": (lambda cell: cell.mean <= 1000 and _not_heavy(cell), _above(0.5, _explicit)),
    "E": (lambda cell: cell.mean == 10_000 and cell.level == "low", _above(0.5, _explicit)),
    "F": (_every, _holds(lambda donated: donated.later == 0)),
    "G": (_every, _holds(lambda donated: donated.reclaims > 0)),
    "H": (lambda cell: cell.mean <= 1000, _holds(lambda donated: donated.lost <= 0.2 * donated.used)),
    "I": (_long_or_heavy, _below(0.5, _explicit)),
    "J": (_not_heavy, lambda cell, rule: _within_two(cell.explicit[rule])),
    "K": (_every, lambda cell, _: "confirms" if cell.by["adaptive"].delay > 0 else "contradicts"),
    "L": (_every, _above(1 / 1.1, lambda cell, _: cell.mixed)),
    "L-cost": (_every, _above(1.0, lambda cell, _: cell.cheaper)),
}
"""By the key of a claim, whose words are in `page.yaml`: the cells that it concerns, and if one agrees."""


def verdicts(cell: Cell, rule: Donated) -> str:
    """What a cell says of the claims that concern it: `+A ?B −C` (confirms, open, contradicts)."""
    signs: dict[Verdict, str] = {"confirms": "+", "open": "?", "contradicts": "−"}
    return " ".join(
        f"{signs[judge(cell, rule)]}{key}" for key, (concerns, judge) in _JUDGES.items() if concerns(cell)
    )


def tally(claim: str, cells: Sequence[Cell], rule: Donated) -> dict[Verdict, list[Cell]]:
    """The cells that a claim concerns, by what they say of it."""
    concerns, judge = _JUDGES[claim]
    found: dict[Verdict, list[Cell]] = {verdict: [] for verdict in VERDICTS}
    for cell in filter(concerns, cells):
        found[judge(cell, rule)].append(cell)
    return found
