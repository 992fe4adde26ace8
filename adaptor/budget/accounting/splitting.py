"""Dividing an amount between bags so that the parts are whole millionths and their sum is exact."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def proportions(weights: Sequence[float]) -> list[Fraction]:
    """Of finite weights, none below 0; their sum is 1. Equal where all weights are 0."""
    exact = [Fraction(weight) for weight in weights]
    whole = sum(exact)
    return [each / whole for each in exact] if whole else [Fraction(1, len(exact))] * len(exact)


def split(total: int, weights: Sequence[float]) -> list[int]:
    """Parts in proportion to the weights, by largest remainders; each is exact up to less than one.

    Where all weights are 0 the parts are equal.
    """
    exact = [total * share for share in proportions(weights)]
    parts = [int(each) for each in exact]
    remainders = sorted(range(len(parts)), key=lambda index: parts[index] - exact[index])
    for index in remainders[: total - sum(parts)]:
        parts[index] += 1
    return parts


def split_within(total: int, weights: Sequence[float], room: Sequence[int | None]) -> list[int]:
    """As `split`, but no part is above its room (None: without end) as long as the rooms together suffice.

    What is above a room goes to the others: first to those with a weight, in proportion to it, then to
    those without, in proportion to their room. Only where all rooms are full the rest is put on top.
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
