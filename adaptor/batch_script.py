"""A batch script whose copy the tasks of a bag run, each as an element of its array, and its output files.

The words are those of sbatch(1) and qsub(1). An element has a job number of its own, as in a real array.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from adaptor.defaults import FIRST_JOB

Dialect = Literal["slurm", "pbs", "gridengine"]

INDEX: dict[Dialect, tuple[str, ...]] = {
    "slurm": ("SLURM_ARRAY_TASK_ID",),
    "pbs": ("PBS_ARRAY_INDEX", "PBS_ARRAYID"),
    "gridengine": ("SGE_TASK_ID",),
}
"""The variables of a task that have its index in the array: of Slurm, OpenPBS, Torque's qsub, Grid Engine."""
_NO_INDEX = "4294967294"  # sbatch's text for `%a` without an array
_NUMBERS = 2**27  # job numbers of a bag, of which its tasks have at most the upper half
_PATTERN = re.compile(r"%(?:(?P<width>\d{1,2})?(?P<letter>[AaNj])|%)")


class BatchScript(msgspec.Struct, frozen=True, kw_only=True):
    """The script that all elements share. The tasks' commands have the script's name first, then its
    arguments."""

    body: bytes
    """The copy that was made at submission; each worker writes it to a private file and runs that."""
    dialect: Dialect = "slurm"
    array: bool = False
    output: str
    """The file for standard output, absolute. `%A`: job number of the array, `%a`: index, `%j`: job number of
    the element, `%N`: node, `%%`: a percent sign; digits before the letter pad with zeros."""
    error: str = ""
    """The file for standard error; empty: the same file as for standard output."""
    append: bool = False
    """Whether to keep what the files hold; False: each element empties its own at its start."""
    variables: dict[str, str] = {}
    """Variables on top of the bag's environment."""
    processes: int = 1
    """Number of times that its node stands in $PBS_NODEFILE."""
    jobs: bool = False
    """Whether its elements are jobs of `adaptor.shims`, each with an `OwnScript`."""


OWN_SCRIPT = "ADAPTOR_SCRIPT"
"""The variable of a task with its `OwnScript` as JSON; the task itself does not find it."""


class OwnScript(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings of one task in place of the script of its bag."""

    output: str
    error: str = ""
    append: bool = False
    body: bytes = b""
    """Text of the script; empty: that of the bag."""
    place: int | None = None
    """Place in its array, from 0: the number of the array is that of its first element; None: there is no
    array."""
    submitted: float = 0.0
    """Epoch seconds."""
    cpus: int = 1
    limit: float | None = None
    """Seconds, for those who ask for them; the task's own needs count."""


_own_script = msgspec.json.Decoder(OwnScript)


def own_script(environment: Mapping[str, str] | None) -> OwnScript | None:
    """Settings of a task in place of the script of its bag; None: none. `environment`: the task's own
    variables."""
    text = (environment or {}).get(OWN_SCRIPT)
    return None if text is None else _own_script.decode(text)


def script_of(script: BatchScript, environment: Mapping[str, str] | None) -> BatchScript:
    """The script that a task runs."""
    own = own_script(environment)
    if own is None:
        return script
    own_files = {"output": own.output, "error": own.error, "append": own.append}
    found: BatchScript = msgspec.structs.replace(script, body=own.body or script.body, **own_files)
    return found


def job_number(bag: int, task: int) -> int:
    """The number by which a task is a job; it names no job of any scheduler.

    Slurm's commands keep 32 bits of a number: these are above its largest job id (67,043,328), too.
    """
    return FIRST_JOB + (bag - 1) * _NUMBERS + task


class Element(msgspec.Struct, frozen=True):
    """One task of a script."""

    bag: int
    task: int
    index: str | None
    """Index in the array; None: there is no array."""
    place: int | None = None
    """Place of the task in its array, from 0; None: it is in none."""

    @property
    def job(self) -> int:
        """Job number of the element itself."""
        return job_number(self.bag, self.task)

    @property
    def array_job(self) -> int:
        """The number that all elements share."""
        if self.index is None:
            return self.job
        return self.bag if self.place is None else self.job - self.place


def place_of(job: int) -> tuple[int, int]:
    """The bag and the task of a job number.

    Raises:
        ValueError: no task has this number; a scheduler may have given it.
    """
    bag, task = divmod(job - FIRST_JOB, _NUMBERS)
    if bag < 0 or task >= _NUMBERS // 2:
        raise ValueError(f"{job} is no number of a task")
    return bag + 1, task


def element_of(script: BatchScript, bag: int, task: int, environment: Mapping[str, str] | None) -> Element:
    """The element that a task is, by the task's own variables."""
    own = environment or {}
    found = (own[name] for name in INDEX[script.dialect] if name in own)
    script_own = own_script(own)
    return Element(bag, task, next(found, None), script_own.place if script_own is not None else None)


def output_files(script: BatchScript, element: Element, node: str) -> tuple[str, str]:
    """The files for standard output and error, which may be the same."""
    out = expanded(script.output, element, node)
    return out, expanded(script.error, element, node) if script.error else out


def expanded(pattern: str, element: Element, node: str) -> str:
    """A pattern of `BatchScript` as the name of a file."""

    def value(match: re.Match[str]) -> str:
        match match["letter"]:
            case "A":
                text = str(element.array_job)
            case "a":
                text = element.index or _NO_INDEX
            case "j":
                text = str(element.job)
            case "N":
                return node.partition(".")[0]
            case _:
                return "%"
        return text.zfill(min(int(match["width"] or 0), 10))

    return _PATTERN.sub(value, pattern)
