"""Bags of many kinds, drawn anew for each order: what estimators are checked on that nobody set them for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Seconds = npt.NDArray[np.float64]
_Draw = np.random.Generator


def _constant(_: _Draw) -> Seconds:
    return np.full(256, 200.0)


def _uniform(draw: _Draw) -> Seconds:
    return draw.uniform(10, 400, 400)


def _exponential(draw: _Draw) -> Seconds:
    return draw.exponential(150, 500)


def _log_normal(draw: _Draw) -> Seconds:
    return draw.lognormal(np.log(60), 1.2, 600)


def _two_kinds(draw: _Draw) -> Seconds:
    long = draw.random(300) < 0.2
    return np.maximum(1.0, np.where(long, draw.normal(400, 60, 300), draw.normal(60, 10, 300)))


def _rare_long(draw: _Draw) -> Seconds:
    long = draw.random(300) < 0.1
    return np.maximum(1.0, np.where(long, draw.normal(600, 60, 300), draw.normal(60, 10, 300)))


def _many_kinds(draw: _Draw) -> Seconds:
    means = draw.choice([18.0, 60.0, 120.0, 300.0], size=600, p=[0.35, 0.35, 0.2, 0.1])
    return np.maximum(3.0, draw.normal(means, 0.1 * means))


def _levy(draw: _Draw) -> Seconds:
    found: Seconds = 36.0 / draw.normal(0.0, 1.0, 3000) ** 2
    return found[found <= 540.0][:600]


DRAWN: dict[str, tuple[str, str, Callable[[_Draw], Seconds]]] = {
    "constant": ("constant", "256 tasks of 200 s", _constant),
    "uniform": ("uniform", "400 tasks of 10 to 400 s", _uniform),
    "exponential": ("exponential", "500 tasks, mean 150 s", _exponential),
    "log-normal": ("log-normal", "600 tasks, median 60 s, deviation of the logarithms 1.2", _log_normal),
    "two-kinds": (
        "two kinds",
        "300 tasks: four fifths of N(60 s, 10 s), a fifth of N(400 s, 60 s)",
        _two_kinds,
    ),
    "rare-long": (
        "a tenth ten times as long",
        "300 tasks: nine tenths of N(60 s, 10 s), a tenth of N(600 s, 60 s)",
        _rare_long,
    ),
    "many-kinds": ("multi-modal", "600 tasks around 18, 60, 120 and 300 s, as in `replay bats`", _many_kinds),
    "levy": ("Lévy", "600 tasks: Lévy with a scale of 36 s, cut at 540 s, as in `replay bats`", _levy),
}
"""By key: title, what they are, and how they are drawn."""
