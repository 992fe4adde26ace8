"""Commands in a script that matter: steps of several processes, and calls of the scheduler."""

from __future__ import annotations

import re
from collections.abc import Iterator

from adaptor.bagfile.scripts.asked import Remark, ScriptOptions
from adaptor.bagfile.scripts.getopt import OptionError
from adaptor.batch_script import Dialect

_BEFORE = r"(?:^|[;&|(`]|\b(?:then|do|else|time|exec)\s)\s*"  # text that may stand before a command in a line
_SUBMIT = re.compile(rf"{_BEFORE}(?P<command>sbatch|qsub)\s")
_JOBS = re.compile(rf"{_BEFORE}(?P<command>scontrol\s+(?:update|requeue|hold|release)|sstat|qdel|qalter)\b")
_SRUN = re.compile(rf"{_BEFORE}srun\s+(?P<words>.*)")
_NO_STEP = re.compile(r"--(?:multi-prog|pty|container-[\w-]+|het-group|pack-group|no-allocate|time)\b")
"""Options of srun that what stands in front of it cannot follow."""
_PROCESSES = re.compile(r"(?<!\S)(?:-n\s*|--ntasks[= ])(?P<count>[\d$\"'{]\S*)")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_MPI = re.compile(
    r"(?<![a-z])(?:open|intel|im|py)?mpi(?!exec|run)\w*|\w+_mpi\b|mvapich|pmix?2?\b|horovod|petsc|gromacs|gmx\b"
    r"|lammps|vasp|namd",
    re.IGNORECASE,
)
"""Words of programs whose processes find each other by the scheduler."""
_NO_MPI = re.compile(r"--mpi[= ]none")
_SAY_ONCE = {
    "submits": "jobs that a script submits go to the scheduler as usual, not through pilots",
    "asks": "the scheduler does not know the job number of an element",
}


def read_body(asked: ScriptOptions, text: str, dialect: Dialect) -> None:
    """Note remarks and obstacles of the commands of a script."""
    found: dict[str, Remark] = {}
    lines = list(_commands(text))
    for number, line in lines:
        for kind, pattern in (("submits", _SUBMIT), ("asks", _JOBS)):
            match = pattern.search(line)
            if match is not None:
                command = " ".join(match["command"].split())
                text = f"{command}: {_SAY_ONCE[kind]}"
                found.setdefault(kind, Remark(number, text, changes=kind == "asks"))
    asked.remarks += found.values()
    if dialect == "slurm":
        asked.obstacles += _steps(asked, lines)


def _commands(text: str) -> Iterator[tuple[int, str]]:
    """The numbered lines without comments; continued lines are one."""
    begun, first = "", 0
    for number, line in enumerate(text.split("\n"), start=1):
        bare = _COMMENT.sub("", line)
        first = first or number
        if bare.endswith("\\"):
            begun += f"{bare[:-1]} "
            continue
        yield first, begun + bare
        begun, first = "", 0


def _steps(asked: ScriptOptions, lines: list[tuple[int, str]]) -> Iterator[OptionError]:
    """Steps that only Slurm can start, such as those whose processes find each other by it."""
    for number, line in lines:
        match = _SRUN.search(line)
        option = _NO_STEP.search(match["words"]) if match is not None else None
        if option is not None:
            yield OptionError(number, f"srun {option[0]}: not supported in a task")
    hints = [word for _, line in lines for word in _MPI.findall(_NO_MPI.sub("", line))]
    if not hints:
        return
    for number, line in lines:
        match = _SRUN.search(line)
        if match is None or _NO_MPI.search(match["words"]):
            continue
        count = _PROCESSES.search(match["words"])
        several = count["count"] not in ("1", '"1"') if count else (asked.processes or 1) > 1
        if several and (count is None or not count["count"].isdecimal() or int(count["count"]) > 1):
            yield OptionError(
                number,
                f"srun would start {count['count'] if count else asked.processes} processes of an MPI program"
                f" (the script says {hints[0]}); write mpiexec",
            )
            return
