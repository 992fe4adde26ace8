"""The bags that run on the queues of traces."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import msgspec

MOMENTS = (0.0, 0.1, 0.5, 0.9)  # shares of the tasks that have ended when a forecast is judged

KINDS: dict[str, Callable[[random.Random], float]] = {
    "alike": lambda draw: max(0.1, draw.gauss(1.0, 0.2)),
    "log-normal": lambda draw: draw.lognormvariate(-0.32, 0.8),
    "two kinds": lambda draw: (5.0 if draw.random() < 0.1 else 0.5) * max(0.2, draw.gauss(1.05, 0.15)),
    "sorted file": lambda draw: draw.lognormvariate(-0.18, 0.6),
}
"""Runtimes with a mean of about 1."""
_TASKS = (50, 200, 800)
_MEANS = (60.0, 300.0, 1200.0)


class CheckedBag(msgspec.Struct, frozen=True, kw_only=True):
    """A bag as its user submits it."""

    kind: str
    runtimes: tuple[int, ...]
    """Whole seconds, in the order of the file."""
    hint: float | None
    """What its user says that a task takes; None: nothing."""


def drawn(kind: str, draw: random.Random, tasks: int) -> list[float]:
    """Runtimes of a kind; those of a sorted file begin with the shortest, as of files by their size."""
    found = [KINDS[kind](draw) for _ in range(tasks)]
    return sorted(found) if kind == "sorted file" else found


def bag_of(number: int, seed: int) -> CheckedBag:
    """The kinds by turns; every second bag comes with a hint, which is as wrong as a guess is."""
    draw = random.Random(f"{seed}-{number}")  # noqa: S311
    kind = list(KINDS)[number % len(KINDS)]
    tasks, mean = draw.choice(_TASKS), draw.choice(_MEANS)
    runtimes = [max(1, round(mean * each)) for each in drawn(kind, draw, tasks)]
    true = sum(runtimes) / tasks
    hint = true * math.exp(draw.gauss(0.0, 0.4)) if number // len(KINDS) % 2 == 0 else None
    return CheckedBag(kind=kind, runtimes=tuple(runtimes), hint=hint)
