"""The bags that run on the queues of traces."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import msgspec

MOMENTS = (0.0, 0.1, 0.5, 0.9)
"""Shares of the tasks that have ended when a forecast is judged."""

Draw = Callable[[random.Random, int], list[float]]
"""Runtimes with a mean of about 1."""


def _alike(draw: random.Random, tasks: int) -> list[float]:
    return [max(0.1, draw.gauss(1.0, 0.2)) for _ in range(tasks)]


def _log_normal(draw: random.Random, tasks: int) -> list[float]:
    return [draw.lognormvariate(-0.32, 0.8) for _ in range(tasks)]


def _two_kinds(draw: random.Random, tasks: int) -> list[float]:
    return [(5.0 if draw.random() < 0.1 else 0.5) * max(0.2, draw.gauss(1.05, 0.15)) for _ in range(tasks)]


def _sorted(draw: random.Random, tasks: int) -> list[float]:
    """The shortest first, as of files by their size."""
    return sorted(draw.lognormvariate(-0.18, 0.6) for _ in range(tasks))


KINDS: dict[str, Draw] = {
    "alike": _alike,
    "log-normal": _log_normal,
    "two kinds": _two_kinds,
    "sorted file": _sorted,
}
_TASKS = (50, 200, 800)
_MEANS = (60.0, 300.0, 1200.0)


class CheckedBag(msgspec.Struct, frozen=True, kw_only=True):
    """A bag as its user submits it."""

    kind: str
    runtimes: tuple[int, ...]
    """Whole seconds, in the order of the file."""
    hint: float | None
    """What its user says that a task takes; None: nothing."""


def bag_of(number: int, seed: int) -> CheckedBag:
    """The kinds by turns; every second bag comes with a hint, which is as wrong as a guess is."""
    draw = random.Random(f"{seed}-{number}")  # noqa: S311
    kind = list(KINDS)[number % len(KINDS)]
    tasks, mean = draw.choice(_TASKS), draw.choice(_MEANS)
    runtimes = [max(1, round(mean * each)) for each in KINDS[kind](draw, tasks)]
    true = sum(runtimes) / tasks
    hint = true * math.exp(draw.gauss(0.0, 0.4)) if number // len(KINDS) % 2 == 0 else None
    return CheckedBag(kind=kind, runtimes=tuple(runtimes), hint=hint)
