"""The command that runs a task in a container, by Apptainer or Singularity."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from adaptor.worker.execution import program_of
from adaptor.worker.output import CannotStartError
from adaptor.worker.shells import line_words
from adaptor.worker.slots import HeldTask

_RUNTIMES = ("apptainer", "singularity")
_NO_BIND = (":", ",")
"""Characters that separate paths in `--bind`."""


def in_container(held: HeldTask, stage: str, environment: Mapping[str, str]) -> list[str]:
    """The words that run a task in the image of its bag.

    The container sees the folder of the task and that of the staged copies, and what its configuration binds
    besides: usually the home directory and `/tmp`.

    Args:
        stage: the folder of the staged copies, the image among them.

    Raises:
        CannotStartError: the task's PATH has no Apptainer, or a path cannot be bound.
    """
    words = [_runtime(environment), "exec", "--pwd", held.cwd]
    for folder in dict.fromkeys((held.cwd, stage)):
        if any(mark in folder for mark in _NO_BIND):
            raise CannotStartError(f"{folder}: a folder with ':' or ',' cannot be bound into a container")
        words += ["--bind", folder]
    if held.gpus:
        words.append("--nv")
    return [*words, f"{stage}/{held.bag.image}", *_words(held)]


def _words(held: HeldTask) -> Sequence[str]:
    command = held.lease.command
    if not isinstance(command, str):
        return command
    shell = shlex.split(held.bag.shell) if held.bag.shell else ["/bin/sh"]
    return line_words(shell, command, held.bag.signal)


def _runtime(environment: Mapping[str, str]) -> str:
    for name in _RUNTIMES:
        try:
            return program_of(name, environment)
        except FileNotFoundError:
            continue
    raise CannotStartError(
        "neither apptainer nor singularity is on the task's PATH: load its module before you submit, or in"
        " the prologue of the site",
        127,
    )
