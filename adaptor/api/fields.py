"""What a field means, by its type: `--json`, tables and words for people follow from it.

A plain number has no further meaning; a plain float of a view is seconds, or as its name says.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import Annotated, Any, get_args, get_type_hints

import msgspec

from adaptor.forecast.estimate import Estimate


class Meaning(Enum):
    """What a field is."""

    TIME = "time"
    DURATION = "duration"
    BYTES = "bytes"
    COUNT = "count"
    """Of things, or a number of one."""
    STATE = "state"
    """No number: a word that has a colour."""
    PLAIN = "plain"


Time = Annotated[float, Meaning.TIME]
"""Epoch seconds; people see local time, `--json` ISO 8601 in UTC."""
WholeSeconds = Annotated[int, Meaning.DURATION]
"""Whole seconds; `--json` has a float, as of all durations."""
Seconds = Annotated[float, Meaning.DURATION]
"""Seconds that pass."""
Bytes = Annotated[int, Meaning.BYTES]
StateName = Annotated[str, Meaning.STATE]
TimeInterval = Annotated[Estimate, Meaning.TIME]
"""A time, and the interval in which it lies with probability 0.9; `high` is infinite if no end is known."""


@cache
def meanings(view: type[msgspec.Struct]) -> dict[str, Meaning]:
    """What each field of a view is."""
    hints = get_type_hints(view, include_extras=True)
    return {name: _meaning(hints[name]) for name in view.__struct_fields__}


def _meaning(hint: Any) -> Meaning:
    """Of a field, which may have None besides its number."""
    parts = (hint, *get_args(hint))
    for part in parts:
        for said in getattr(part, "__metadata__", ()):
            if isinstance(said, Meaning):
                return said
    return Meaning.COUNT if int in parts else Meaning.PLAIN
