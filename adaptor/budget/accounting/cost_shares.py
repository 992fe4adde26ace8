"""Division of an ended pilot's cost among its bags, and the wasted part of it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from fractions import Fraction

import msgspec

from adaptor.budget.accounting.entries import Part, Reserved


def proportions(weights: Sequence[float]) -> list[Fraction]:
    """Shares of finite weights, none below 0; their sum is 1. Equal shares if all weights are 0."""
    exact = [Fraction(weight) for weight in weights]
    whole = sum(exact)
    return [share / whole for share in exact] if whole else [Fraction(1, len(exact))] * len(exact)


def split(total: int, weights: Sequence[float]) -> list[int]:
    """Parts in proportion to the weights, by largest remainders; each is exact up to less than one.

    Where all weights are 0 the parts are equal.
    """
    if len(weights) == 1:  # of most pilots, at a hundredth of the time
        return [total]
    exact = [total * share for share in proportions(weights)]
    parts = [int(part) for part in exact]
    remainders = sorted(range(len(parts)), key=lambda index: parts[index] - exact[index])
    for index in remainders[: total - sum(parts)]:
        parts[index] += 1
    return parts


def split_within(total: int, weights: Sequence[float], room: Sequence[int | None]) -> list[int]:
    """Split a total like `split`, with no part above its room (None: no bound) as long as the rooms suffice.

    What is above a room goes to the others: first to those with a weight, in proportion to it, then to those
    without, in proportion to their room. The rest is put on top only where all rooms are full.
    """
    parts = [0] * len(weights)
    users = [index for index, weight in enumerate(weights) if weight > 0]
    rest = _fill(parts, total, users, weights, room)
    others = [index for index in range(len(weights)) if index not in users]
    limits = [rest if limit is None else limit for limit in room]
    rest = _fill(parts, rest, others, limits, room)
    return [part + more for part, more in zip(parts, split(rest, weights), strict=True)]


def _fill(
    parts: list[int], rest: int, takers: list[int], weights: Sequence[float], room: Sequence[int | None]
) -> int:
    """Give the rest to the takers within their rooms; returns what is left of it."""
    while rest and takers:
        shares = split(rest, [weights[taker] for taker in takers])
        full = []
        for taker, share in zip(takers, shares, strict=True):
            limit = room[taker]
            if limit is not None and parts[taker] + share > limit:
                full.append((taker, limit))
        if not full:
            for taker, share in zip(takers, shares, strict=True):
                parts[taker] += share
            return 0
        for taker, limit in full:
            rest -= limit - parts[taker]
            parts[taker] = limit
            takers.remove(taker)
    return rest


class Use(msgspec.Struct, frozen=True):
    """Processor-seconds of a pilot that a bag's attempts held."""

    useful: float = 0.0
    """Processor-seconds of attempts whose result counts."""
    wasted: float = 0.0
    """Killed attempts and losing replicas."""


def charged(
    reserved: Reserved, seconds: float, uses: Mapping[int, Use], room: Callable[[int], int | None]
) -> tuple[Part, ...]:
    """The charge for the processor-seconds of a pilot, by what each bag's attempts held of it.

    `room` returns what the budget of a bag has left besides this reservation, in millionths of a credit;
    None: it has no budget. What one bag cannot pay, the others pay.
    """
    amount, area = reserved.charge(seconds), reserved.area(seconds)
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
    """The parts of a charge for processor-seconds, with what was wasted by what is known now.

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
    """Wasted part of a bag's part of a charge: all that did not pay for a useful attempt."""
    return part - min(part, round(amount * use.useful / area)) if area else 0
