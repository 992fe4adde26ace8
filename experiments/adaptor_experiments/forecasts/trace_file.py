"""Any trace whose queues and starts are forecast: a file in SWF, and how it is read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from adaptor.errors import UsageError
from adaptor_simulation.trace_run import LoadedTrace, load_jobs
from adaptor_simulation.traces.repairs import Choices

PUBLISHED = ("SDSC-SP2-1998", "CTC-SP2", "SDSC-BLUE", "lublin_256_est")
"""Traces of the published tables, by the beginnings of their files."""


class TraceFile(msgspec.Struct, frozen=True):
    """A trace, and how it is read; the same in every experiment of forecasts."""

    path: Path
    processors: int | None = None
    """Processors of its machine; None: as its header says."""
    choices: Choices = Choices()
    lenient: bool = False

    @property
    def name(self) -> str:
        """`CTC-SP2-1996-3` of `CTC-SP2-1996-3.1-cln.swf.gz`."""
        return self.path.name.split(".")[0] or self.path.name

    def load(self) -> LoadedTrace:
        """Raises TraceError: it cannot be read or leaves no job."""
        return load_jobs(self.path, processors=self.processors, choices=self.choices, lenient=self.lenient)


def files_in(folder: Path) -> list[Path]:
    """The traces of the published tables; of a folder that has none of them, all that it has.

    Raises UsageError: it has no trace.
    """
    found = sorted(folder.glob("*.swf*"))
    published = [path for name in PUBLISHED for path in found if path.name.startswith(name)]
    if not found:
        raise UsageError(f"no trace (*.swf, *.swf.gz, *.swf.xz) in {folder}; name one: --trace FILE")
    return published or found


def named_once(files: Sequence[TraceFile]) -> list[TraceFile]:
    """The same. Raises UsageError: two of them would have one name in the tables."""
    known: dict[str, Path] = {}
    for file in files:
        other = known.setdefault(file.name, file.path)
        if other != file.path:
            raise UsageError(f"--trace: {file.path} and {other} have one name; rename one of them")
    return [*dict.fromkeys(files)]
