"""Options of one task that differ from its bag's, as people write them in JSON Lines and in Python. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import msgspec

from adaptor.bag_spec import AtLeast1
from adaptor.did_you_mean import did_you_mean, type_words
from adaptor.option_kinds import GPUS, MEMORY, plain_text
from adaptor.resources import OwnNeeds, TaskGpus
from adaptor.units import SHORTEST_TIME, parse_duration

Number = Annotated[float, msgspec.Meta(ge=0)]


class OwnOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of one task; None: as the bag says."""

    cpus: AtLeast1 | None = None
    mem: str | Number | None = None
    gpus: str | Number | None = None
    time: str | Number | None = None
    env: dict[str, str] | None = None

    @property
    def needs(self) -> OwnNeeds:
        """The needs of the task. Raises ValueError: a value is not of its kind."""
        gpus = _of("gpus", _gpus, self.gpus)
        return OwnNeeds(
            cpus=self.cpus,
            memory=_of("mem", lambda text: int(MEMORY.parse(text, 0.0)), self.mem),
            gpus=gpus[0] if gpus else None,
            gpu_type=gpus[1] if gpus else "",
            time=_of("time", _time, self.time),
        )

    @property
    def environment(self) -> dict[str, str] | None:
        """Variables of the task besides those of the bag. Raises ValueError: no process can have one of
        them."""
        for key, value in (self.env or {}).items():
            if not key or "=" in key:
                raise ValueError(f"env: {key!r} is not a name of a variable")
            plain_text(key)
            plain_text(value)
        return self.env


_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")


def explained(problem: str, kind: type[Any]) -> str:
    """A message of msgspec about a struct, with the key, and a suggestion for an unknown one."""
    unknown = _UNKNOWN.match(problem)
    if not unknown:
        text, _, path = problem.partition(" - at `$.")
        text = "the line ends within the object" if text == "Input data was truncated" else text
        return f"{path.rstrip('`')}: {type_words(text)}" if path else type_words(text)
    known = kind.__struct_fields__
    hint = did_you_mean(unknown[1], known, f"known are {', '.join(known)}")
    return f"unknown key '{unknown[1]}' ({hint})"


_Value = TypeVar("_Value")


def _of(key: str, parse: Callable[[str], _Value], given: str | float | None) -> _Value | None:
    """The value of a key, written as a number or as on a command line; None: it is not there."""
    if given is None:
        return None
    try:
        return parse(
            given if isinstance(given, str) else (str(int(given)) if given == int(given) else repr(given))
        )
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None


def _gpus(text: str) -> tuple[float, str]:
    found: TaskGpus | None = GPUS.parse(text, 0.0)
    return (found.count, found.type) if found else (0.0, "")


def _time(text: str) -> float:
    seconds = parse_duration(text)
    if not SHORTEST_TIME <= seconds < math.inf:
        raise ValueError("must be above 0, such as 90, '10m' or '2h'")
    return seconds
