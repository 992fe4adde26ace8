"""A batch script whose copy the tasks of a bag run, each as an element of its array, and its output files.

The words are those of sbatch(1) and qsub(1). An element has a job number of its own, as in a real array; it
names no job of any scheduler, so that a `scancel` in a script cannot meet one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

Dialect = Literal["slurm", "pbs", "gridengine"]

INDEX: dict[Dialect, tuple[str, ...]] = {
    "slurm": ("SLURM_ARRAY_TASK_ID",),
    "pbs": ("PBS_ARRAY_INDEX", "PBS_ARRAYID"),
    "gridengine": ("SGE_TASK_ID",),
}
"""The variables of a task that have its index in the array: of Slurm, OpenPBS and Torque, Grid Engine."""
_NO_INDEX = "4294967294"
"""What sbatch writes for `%a` without an array."""
_NUMBERS = 100_000_000
"""Job numbers of a bag: more than it has tasks, and above Slurm's largest job id (67,043,328)."""
_PATTERN = re.compile(r"%(?:(?P<width>\d{1,2})?(?P<letter>[AaNj])|%)")


class BatchScript(msgspec.Struct, frozen=True, kw_only=True):
    """What all elements share. The tasks' commands have the script's name first, then its arguments."""

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
    """On top of the bag's environment."""
    processes: int = 1
    """How often its node stands in $PBS_NODEFILE."""


class Element(msgspec.Struct, frozen=True):
    """One task of a script."""

    bag: int
    task: int
    index: str | None
    """In the array; None: there is no array."""

    @property
    def job(self) -> int:
        """Its own number."""
        return self.bag * _NUMBERS + self.task + 1

    @property
    def array_job(self) -> int:
        """The number that all elements share."""
        return self.job if self.index is None else self.bag


def element_of(script: BatchScript, bag: int, task: int, environment: Mapping[str, str] | None) -> Element:
    """The element that a task is, by the task's own variables."""
    own = environment or {}
    found = (own[name] for name in INDEX[script.dialect] if name in own)
    return Element(bag, task, next(found, None))


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
