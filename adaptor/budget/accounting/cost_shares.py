"""How the cost of a pilot that has ended is divided among its bags, and what of it was wasted. Pure."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping

import msgspec

from adaptor.budget.accounting.entries import Part, Reserved
from adaptor.budget.accounting.splitting import split_within


class Use(msgspec.Struct, frozen=True):
    """What a bag's attempts held of a pilot, in processor-seconds."""

    useful: float = 0.0
    """Attempts whose result counts."""
    wasted: float = 0.0
    """Killed attempts and losing replicas."""


def charged(
    reserved: Reserved, seconds: float, uses: Mapping[int, Use], room: Callable[[int], int | None]
) -> tuple[Part, ...]:
    """The charge for a pilot that held its processors for so long, by what each bag's attempts held of it.

    `room` tells what the budget of a bag has left beside this reservation, in millionths of a credit; None:
    it has no budget. What one cannot bear is borne by the others.
    """
    amount = reserved.tariff.charge(reserved.kind, reserved.p, seconds)
    area = reserved.p * reserved.tariff.charged_seconds(seconds)
    own = {part.bag: part.amount for part in reserved.parts}
    bags = list(dict.fromkeys([*own, *(bag for bag, use in uses.items() if use.useful + use.wasted > 0)]))
    used = [uses.get(bag, Use()) for bag in bags]
    held = [use.useful + use.wasted for use in used]
    weights = held if any(held) else [float(own.get(bag, 0)) for bag in bags]
    rooms = []
    for bag in bags:
        left = room(bag)
        rooms.append(None if left is None else max(0, left) + own.get(bag, 0))
    parts = split_within(amount, weights, rooms)
    return tuple(
        Part(bag, part, _wasted(part, amount, area, use))
        for bag, part, use in zip(bags, parts, used, strict=True)
    )


def recounted(
    parts: Iterable[Part], area: int, uses: Mapping[int, Use], kept: Container[int] = ()
) -> tuple[Part, ...]:
    """The parts of a charge for so many processor-seconds, with what was wasted by what is known now.

    The parts of the bags `kept` stay as they are.
    """
    known = tuple(parts)
    amount = sum(part.amount for part in known)
    return tuple(
        part
        if part.bag in kept
        else msgspec.structs.replace(
            part, wasted=_wasted(part.amount, amount, area, uses.get(part.bag, Use()))
        )
        for part in known
    )


def _wasted(part: int, amount: int, area: int, use: Use) -> int:
    """Of a bag's part of a charge: all that did not pay for a useful attempt."""
    return part - min(part, round(amount * use.useful / area)) if area else 0
