"""The notes that pilots leave of their own end, for schedulers that do not tell it."""

from __future__ import annotations

from pathlib import Path

from backends.machines.base import Machine

NOTE = "pilot.end"
"""In the pilot's folder: the exit status of its script (`dialect.template`)."""
_LONGEST = 16


class Notes:
    """Where the pilots that were submitted since the daemon's start leave their notes."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._folders: dict[str, Path] = {}
        self._statuses: dict[str, int] = {}

    def expect(self, tag: str, folder: Path) -> None:
        """Its pilot is about to be submitted."""
        self._folders[tag] = folder

    def is_expected(self, tag: str) -> bool:
        """Whether it is known where its note would be."""
        return tag in self._folders

    def status(self, tag: str) -> int | None:
        """The exit status of an ended pilot's script; None where it left none. Raises SchedulerError."""
        folder = self._folders.get(tag)
        if tag not in self._statuses and folder is not None:
            text = self._machine.read_files(folder, [NOTE], _LONGEST).get(NOTE, b"").strip()
            if text.isdigit():
                self._statuses[tag] = int(text)
        return self._statuses.get(tag)
