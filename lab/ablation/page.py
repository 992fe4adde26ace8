"""The table of the constants of the rules, with what each value loses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from lab.ablation.losses import Loss, loss
from lab.ablation.measures import FORECASTS, Row
from lab.ablation.running import variant
from lab.ablation.table import Constant

Rows = Mapping[tuple[str, str], Sequence[Row]]
"""By variant and measure."""


def page(constants: Sequence[Constant], rows: Rows) -> Iterator[str]:
    """Lines of Markdown: a table for each room."""
    rooms = list(dict.fromkeys(each.room for each in constants))
    for room in rooms:
        yield f"\n## {room}\n"
        yield "| constant | value | it trades | without it, or half and twice the value |"
        yield "|---|---|---|---|"
        for each in constants:
            if each.room == room:
                yield _line(each, rows)


def _line(constant: Constant, rows: Rows) -> str:
    values = dict.fromkeys((*constant.rule.without, *constant.half_and_twice))
    tried = "; ".join(filter(None, (_losses(constant, value, rows) for value in values)))
    file = constant.file.split("/", 1)[1].removesuffix(".py")
    value = _short(constant.value)
    return (
        f"| `{file}` `{constant.name}` | {value} ({constant.rule.unit}) | {constant.rule.trades} "
        f"| {tried or 'not run'} |"
    )


def _losses(constant: Constant, value: str, rows: Rows) -> str:
    """Empty: it was not run."""
    found = {
        measure: loss(rows["", measure], other)
        for measure in constant.measures
        if ("", measure) in rows
        and (other := rows.get((variant(constant, value).title, measure))) is not None
    }
    said = ", ".join(_said(measure, each) for measure, each in found.items())
    return f"{_short(value)}: {said}" if said else ""


def _said(measure: str, found: Loss) -> str:
    if math.isinf(found.goal):
        return f"{measure} fails"
    if not found.differing:
        return f"{measure} same"
    words = [f"{measure} {found.goal:+.1%}"]
    if measure not in FORECASTS and abs(found.both - found.goal) >= 0.001:
        words.append(f"time × cost {found.both:+.1%}")
    if found.kept:
        words.append(f"{-found.kept:+} kept")
    if found.exceeded:
        words.append(f"{found.exceeded:+} over the budget")
    return " ".join(words)


def _short(value: str) -> str:
    return f"`{value}`" if len(value) < 24 else f"`{value[:20]}…`"
