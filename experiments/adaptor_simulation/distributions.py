"""Task runtimes as a user describes them: `600`, `10m`, `uniform(5m, 15m)`, `lognormal(10m, 0.8)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from adaptor.units import parse_duration
from adaptor_simulation.files import ReplayError
from adaptor_simulation.kernels import Array

_CALL = re.compile(r"\s*([a-z]+)\s*\((.*)\)\s*", re.DOTALL)
Draw = Callable[[np.random.Generator, list[float], int], npt.NDArray[np.float64]]


class _Family(msgspec.Struct, frozen=True):
    parameters: Sequence[str]
    draw: Draw


_FAMILIES = {
    "uniform": _Family(("shortest", "longest"), lambda draw, by, n: draw.uniform(by[0], by[1], n)),
    "normal": _Family(("mean", "deviation"), lambda draw, by, n: draw.normal(by[0], by[1], n)),
    "lognormal": _Family(("median", "sigma"), lambda draw, by, n: by[0] * np.exp(draw.normal(0.0, by[1], n))),
    "exponential": _Family(("mean",), lambda draw, by, n: draw.exponential(by[0], n)),
}


def draw_runtimes(text: str, tasks: int, seed: int) -> Array:
    """Whole seconds of each task, at least 1, drawn from what the text says.

    A duration alone is the runtime of every task. `sigma` is the standard deviation of the logarithm;
    all other parameters are durations.

    Raises:
        ReplayError: the text is no distribution.
    """
    call = _CALL.fullmatch(text)
    if call is None:
        return _whole(np.full(tasks, _duration(text, text)))
    family = _FAMILIES.get(call[1])
    if family is None:
        raise ReplayError(f"{text!r}: there are {_known()}")
    given = [part.strip() for part in call[2].split(",")]
    if len(given) != len(family.parameters):
        raise ReplayError(f"{text!r}: {call[1]} takes {', '.join(family.parameters)}")
    by = [_duration(part, text) for part in given]
    if call[1] == "uniform" and by[0] > by[1]:
        raise ReplayError(f"{text!r}: the shortest is longer than the longest")
    return _whole(family.draw(np.random.default_rng(seed), by, tasks))


def _whole(seconds: npt.NDArray[np.float64]) -> Array:
    return np.clip(np.rint(seconds), 1, 1e12).astype(np.int64)


def _duration(part: str, text: str) -> float:
    try:
        return parse_duration(part)
    except ValueError as error:
        raise ReplayError(f"task time {text!r}: {error}; or write {_known()}") from error


def _known() -> str:
    return ", ".join(f"{name}({', '.join(family.parameters)})" for name, family in _FAMILIES.items())
