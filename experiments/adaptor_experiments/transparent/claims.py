"""What De Rose et al. 2008 say of the two strategies (§3 on its reference [8], §5), against every cell.

The paper gives no figures for "acceptable" or "efficiently"; the bounds are ours, and the page names them. A
claim on transparent allocation is held against the paper's own rule (all-idle) and against ours
(transparent).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adaptor_experiments import claims
from adaptor_experiments.bootstrap import Interval
from adaptor_experiments.claims import Verdict, above, below, between
from adaptor_experiments.transparent.cells import Cell, Share
from adaptor_experiments.transparent.design import Donated

Judge = Callable[[Cell, Donated], Verdict]


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


_JUDGES: dict[str, tuple[Callable[[Cell], bool], Judge]] = {
    "A": (
        lambda cell: cell.mean == 100 and cell.tasks >= 10_000 and _not_heavy(cell),
        above(1.0, _explicit),
    ),
    "B": (lambda cell: cell.mean == 1000 and _not_heavy(cell), above(0.5, _explicit)),
    "C": (_long_or_heavy, below(1.0, _explicit)),
    "D": (lambda cell: cell.mean <= 1000 and _not_heavy(cell), above(0.5, _explicit)),
    "E": (lambda cell: cell.mean == 10_000 and cell.level == "low", above(0.5, _explicit)),
    "F": (_every, _holds(lambda donated: donated.later == 0)),
    "G": (_every, _holds(lambda donated: donated.reclaims > 0)),
    "H": (lambda cell: cell.mean <= 1000, _holds(lambda donated: donated.lost <= 0.2 * donated.used)),
    "I": (_long_or_heavy, below(0.5, _explicit)),
    "J": (_not_heavy, lambda cell, rule: between(cell.explicit[rule], 0.5, 2.0)),
    "K": (_every, lambda cell, _: "confirms" if cell.by["adaptive"].delay > 0 else "contradicts"),
    "L": (_every, above(1 / 1.1, lambda cell, _: cell.mixed)),
    "L-cost": (_every, above(1.0, lambda cell, _: cell.cheaper)),
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
    return claims.tally(filter(concerns, cells), lambda cell: judge(cell, rule))
