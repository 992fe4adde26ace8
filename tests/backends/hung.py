"""This machine with programs that never answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backends.machines.base import CommandAnswer
from backends.machines.here import Here

SOON = 0.5


class HereWithHung(Here):
    """Gives up the programs that hang SOON; all others have the time that a busy machine may need."""

    def __init__(self, *programs: str) -> None:
        super().__init__()
        self.programs = programs

    def run(self, arguments: Sequence[str], variables: Mapping[str, str], timeout: float) -> CommandAnswer:
        return super().run(arguments, variables, SOON if arguments[0] in self.programs else timeout)
