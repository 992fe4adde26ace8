"""Resources of which a worker got less on a node than its pilot asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from adaptor.units import counted, format_size

Resource = Literal["processors", "memory", "gpus"]
ShortfallSign = Literal["affinity", "job step", "cgroup", "devices"]


class Shortfall(NamedTuple):
    """One resource of one node; memory in bytes."""

    resource: Resource
    asked: int
    given: int
    by: ShortfallSign
    """Limit or tool that shows the shortfall."""

    def __str__(self) -> str:
        """`2 of 6 processors (affinity)`."""
        if self.resource == "memory":
            return f"{format_size(self.given)} of {format_size(self.asked)} of memory ({self.by})"
        noun = "processor" if self.resource == "processors" else "GPU"
        return f"{self.given} of {counted(self.asked, noun)} ({self.by})"


def gave_less(node: str, shortfalls: Sequence[Shortfall]) -> str:
    """`n2 gave 2 of 6 processors (affinity): tasks use only these`."""
    words = [str(shortfall) for shortfall in shortfalls]
    joined = " and ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)
    return f"{node} gave {joined}: tasks use only these"
