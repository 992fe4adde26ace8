"""A recorded Grid Engine: what each of its commands printed (fixtures/gridengine/README.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from adaptor.config.schema import SiteConfig
from adaptor_gridengine import parse
from adaptor_gridengine.backend import GridEngineBackend
from adaptor_gridengine.parse import Cell
from adaptor_gridengine.reading import Master
from adaptor_gridengine.state import GridSeen
from backends.commands import CommandAnswer
from backends.machines.here import Here
from tests.backends.answering import answer_of

FIXTURES = Path(__file__).parents[2] / "fixtures" / "gridengine"
NOW = 1795643489.0
"""Epoch seconds at which `2-busy` was recorded."""
GIB = 2**30


def recorded(name: str) -> str:
    return (FIXTURES / name).read_text(encoding="utf-8")


class RecordedCell(Here):
    """A machine on which the recorded cell answers."""

    def __init__(self, **answers: CommandAnswer | str) -> None:
        """`answers`: by program, where it does not say what was recorded."""
        super().__init__()
        self.asked: list[list[str]] = []
        self.answers = answers

    def variables(self) -> dict[str, str]:
        return {"LOGNAME": "root", "JOB_ID": "3", "SGE_ROOT": "/opt/sge"}

    def run(self, arguments: Sequence[str], variables: Mapping[str, str], timeout: float) -> CommandAnswer:
        program, *words = arguments
        self.asked.append([program, *words])
        said = self.answers.get(program)
        if said is None:
            said = _recorded_answer(program, words)
        return said if isinstance(said, CommandAnswer) else answer_of(0, said, "")

    def write_private(self, path: Path, data: bytes) -> None:
        """Nothing is written."""

    def command(self, program: str) -> list[str]:
        """The only one with this program."""
        (found,) = (words for words in self.asked if words[0] == program)
        return found[1:]


def _recorded_answer(program: str, words: Sequence[str]) -> str:
    if program == "qconf":
        name = "".join(f"-{word}" for word in words[1:]) if words[0] == "-sp" else ""
        return recorded(f"qconf{words[0]}{name}.txt")
    if program == "qstat" and "-help" in words:
        return recorded("qstat-help.txt")
    if program == "qstat":
        return recorded("3-own-qstat.xml" if "prsz" in words else "2-busy-qstat.xml")
    if program == "qrstat":
        return recorded("qrstat-ar.xml" if "-ar" in words else "qrstat.xml")
    return recorded("qacct.txt") if program == "qacct" else "77\n"


def cell(**changes: Any) -> Cell:
    """The cell as it was configured, with changes."""
    known = Master(SiteConfig(backend="gridengine"), RecordedCell()).cell()
    return Cell(**{**{name: getattr(known, name) for name in known.__struct_fields__}, **changes})


def seen(qstat: str = "2-busy-qstat.xml", *, reservations: bool = False, **changes: Any) -> GridSeen:
    """The recorded look. `changes`: of the cell."""
    text = recorded(qstat)
    return GridSeen(
        now=NOW,
        cell=cell(**changes),
        instances=parse.instances(text),
        jobs=parse.jobs(text),
        reservations=parse.reservations(recorded("qrstat-ar.xml")) if reservations else (),
    )


def backend(machine: RecordedCell, **keys: Any) -> GridEngineBackend:
    return GridEngineBackend(SiteConfig(backend="gridengine", **keys), machine)
