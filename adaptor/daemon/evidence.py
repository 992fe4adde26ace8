"""Files that pilots leave in their folders: unacknowledged results, and why workers gave up."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from adaptor.decisions.pilots import Pilot
from adaptor.decisions.questions import LeftBehind
from adaptor.protocol.decoding import decoded
from adaptor.protocol.messages import Result
from adaptor.reports import JobReport, JobState
from backends.machines.base import Machine

log = logging.getLogger(__name__)

KEPT = 50  # folders of ended pilots that are kept
_END = "pilot-end.txt"
"""`STATUS TOLD BEGAN ENDED`: exit status, whether it got the order to leave (yes, no), epoch seconds."""
_PATTERNS, _LOGS = ("unsent-*.msgpack", "unreachable-*.txt", _END), ("*.out",)
_TOLD_EARLY = 15.0
"""Seconds by which a script learns of the end of its walltime early: it starts later than its job."""
_EXITED = re.compile(r"^srun: (error: .*: Exited with exit code \d+|Terminating StepId=\S+)$", re.MULTILINE)
"""Lines in which srun only says that a worker has failed, behind the words of that worker."""
_LARGEST, _END_OF_LOG = 16 * 2**20, 10_000  # bytes of a file that are read, its last ones

_results: msgspec.msgpack.Decoder[list[Result]] = msgspec.msgpack.Decoder(list[Result])


class OwnEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a pilot's script, as the script itself wrote it."""

    status: int  # its exit status
    told: bool  # whether the scheduler told it to leave
    began: float
    ended: float


class PilotFiles(LeftBehind, frozen=True, kw_only=True):
    """Files that one pilot has left, decoded."""

    own_end: OwnEnd | None = None
    """The end as the script wrote it; None: it was killed, or its scheduler's template writes no such
    note."""


NOTHING = PilotFiles()


def pilots_directory(home: Path) -> Path:
    return home / "pilots"


def pilot_directory(home: Path, pilot: int, array: int | None = None) -> Path:
    """Folder of a pilot. `array`: the first pilot of its array, whose folder holds it; None: it was submitted
    alone."""
    folder = pilots_directory(home)
    return folder / str(pilot) if array is None else folder / str(array) / str(pilot)


def evidence(machine: Machine, folders: Mapping[Path, Path | None]) -> dict[Path, PilotFiles]:
    """Decode the files that pilots have left. Raises SchedulerError: the folders cannot be read at the
    moment.

    Args:
        folders: by folder, that of its array, whose log has the scheduler's words where its own has none.
    """
    paths = list(folders)
    found = machine.read_folders(paths, _PATTERNS, _LARGEST)
    logs = machine.read_folders(paths, _LOGS, _END_OF_LOG)
    silent = {folder: folders[folder] for folder in paths if not any(logs[folder].values())}
    arrays = list(dict.fromkeys(array for array in silent.values() if array is not None))
    shared = machine.read_folders(arrays, _LOGS, _END_OF_LOG) if arrays else {}
    return {
        folder: _understood(
            folder, found[folder] | logs[folder] | shared.get(silent.get(folder) or folder, {})
        )
        for folder in paths
    }


def _understood(folder: Path, found: Mapping[str, bytes]) -> PilotFiles:
    unsent = {name: data for name, data in found.items() if name.startswith("unsent-")}
    spoken = [found[name] for name in sorted(found) if name.startswith("unreachable-")]
    logs = [found[name] for name in sorted(found) if name.endswith(".out")]
    return PilotFiles(
        results=[result for name in sorted(unsent) for result in _decoded(folder / name, unsent[name])],
        complaints=" ".join(_text(data).strip() for data in spoken),
        last_words=last_line(_EXITED.sub("", "\n".join(_text(data) for data in logs)))[:300],
        own_end=_own_end(found.get(_END, b"")),
    )


def own_report(pilot: Pilot, end: OwnEnd) -> JobReport:
    """A pilot's own word on its end, where its scheduler remembers no ended jobs."""
    if not end.told:
        state = JobState.COMPLETED if end.status == 0 else JobState.FAILED
    elif end.ended - end.began >= pilot.granted - _TOLD_EARLY:
        state = JobState.WALLTIME
    else:
        state = JobState.CANCELLED
    return JobReport(
        id=pilot.job or "",
        tag=pilot.tag,
        state=state,
        start=end.began if pilot.started is None else pilot.started,
        end=end.ended,
    )


def _own_end(data: bytes) -> OwnEnd | None:
    words = _text(data).split()
    try:
        status, told, began, ended = words
        return OwnEnd(status=int(status), told=told == "yes", began=float(began), ended=float(ended))
    except ValueError:
        return None


def _decoded(path: Path, data: bytes) -> list[Result]:
    try:
        return decoded(_results.decode, data)
    except msgspec.DecodeError as error:
        log.error("%s: these results cannot be read: %s", path, error)
        return []


def last_line(text: str) -> str:
    """The last line of a program's output that is not blank; empty: there is none."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def prune(
    machine: Machine, home: Path, in_system: Collection[int], ended_in_arrays: Sequence[Path] = ()
) -> None:
    """Remove the folders of ended pilots except the newest. Raises SchedulerError.

    Args:
        in_system: numbers of pilots, and of their arrays.
        ended_in_arrays: folders of ended pilots whose arrays may be in the system, without the newest.
    """
    folder = pilots_directory(home)
    numbers = sorted(int(name) for name in machine.names(folder) if name.isdigit())
    ended = [number for number in numbers if number not in in_system]
    unwanted = [*(pilot_directory(home, number) for number in ended[:-KEPT]), *ended_in_arrays]
    if unwanted:
        machine.remove(unwanted)
