"""Commands of a scheduler with a time limit, on the machine where the scheduler answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping

from adaptor.defaults import REAL_COMMANDS
from backends.base import SchedulerError
from backends.machines.base import CommandAnswer, CommandHung, Machine
from backends.machines.here import HERE

__all__ = ["CommandAnswer", "CommandHung", "Commands"]

_NOT_RUNNABLE = (126, 127)  # exit statuses of `env` if it cannot execute, or cannot find, the program


_counting = threading.Lock()
_run = 0


def commands_run() -> int:
    """Commands that this process has run for schedulers, here and over ssh."""
    return _run


ChosenVariables = Callable[[Mapping[str, str]], Mapping[str, str]]
"""Chooses among all variables of a machine those with which commands run, and perhaps more."""


class Commands:
    """Runs commands with exactly the variables that are chosen for them, and `REAL_COMMANDS`.

    Raises (every method):
        SchedulerError: the command does not exist or cannot be started, or the machine is not reached.
        CommandHung: it took longer than `timeout` seconds, and it and its children were killed; or the
            connection to the machine was lost while it ran.
    """

    def __init__(self, choose: ChosenVariables, timeout: float, machine: Machine = HERE) -> None:
        self._choose = choose
        self._timeout = timeout
        self._machine = machine

    @property
    def machine(self) -> Machine:
        return self._machine

    def run(self, program: str, *arguments: str) -> CommandAnswer:
        """The answer, whatever its exit status."""
        global _run
        variables = {**self._choose(self._machine.variables()), **REAL_COMMANDS}
        with _counting:
            _run += 1
        answer = self._machine.run([program, *arguments], variables, self._timeout)
        if answer.status in _NOT_RUNNABLE:
            raise SchedulerError(f"{program}: cannot be run {self._machine.where}: {answer.complaint}")
        return answer

    def user(self) -> str:
        """The name under which commands run."""
        variables = self._machine.variables()
        return variables.get("LOGNAME") or variables.get("USER") or self.ask("id", "-un").strip()

    def ask(self, program: str, *arguments: str) -> str:
        """The output of a command that must succeed; raises SchedulerError where it does not."""
        return self._succeeded(program, *arguments).output

    def ask_bytes(self, program: str, *arguments: str) -> bytes:
        """Output of a command that succeeds, undecoded: for answers that may be long, and mostly repeat the
        last ones."""
        return self._succeeded(program, *arguments).printed

    def _succeeded(self, program: str, *arguments: str) -> CommandAnswer:
        answer = self.run(program, *arguments)
        if answer.status:
            raise SchedulerError(f"{program} failed with status {answer.status}: {answer.complaint}")
        return answer


CHUNK = 200  # ids in one command line: short enough for every system, and for a scheduler's patience


def chunks(ids: Collection[str]) -> Iterator[list[str]]:
    """The ids in lists of at most CHUNK."""
    ordered = list(ids)
    for first in range(0, len(ordered), CHUNK):
        yield ordered[first : first + CHUNK]


def only_says(text: str, words: Collection[str]) -> bool:
    """Whether every line holds one of these; False where there is no line."""
    lines = [line for line in text.splitlines() if line.strip()]
    return bool(lines) and all(any(each in line for each in words) for line in lines)
