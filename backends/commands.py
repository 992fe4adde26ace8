"""Commands of a scheduler with a time limit, through plumbum."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from typing import Any

import msgspec
from plumbum import CommandNotFound, local
from plumbum.machines.local import LocalMachine

from adaptor.units import format_duration
from backends.base import SchedulerError

_NOT_RUNNABLE = (126, 127)
"""How `env` ends where it cannot execute, or cannot find, the program."""


class Answer(msgspec.Struct, frozen=True):
    """What a command printed, and its exit status."""

    status: int
    output: str
    errors: str

    @property
    def complaint(self) -> str:
        """The first lines of standard error for a message, or of the output where there is none."""
        lines = (self.errors.strip() or self.output.strip() or "no message").splitlines()
        return "; ".join(line.strip() for line in lines[:3] if line.strip())


class CommandHung(SchedulerError):
    """A command was ended because it took longer than allowed."""


class Commands:
    """Runs commands with exactly the variables of `environment`.

    `machine` is plumbum's: this one, or in its place one reached over ssh.

    Raises (every method):
        SchedulerError: the command does not exist or cannot be started.
        CommandHung: it took longer than `timeout` seconds; it and its children were killed.
    """

    def __init__(self, environment: Mapping[str, str], timeout: float, machine: LocalMachine = local) -> None:
        self._environment = dict(environment)
        self._timeout = timeout
        self._machine = machine

    def run(self, program: str, *arguments: str) -> Answer:
        """The answer, whatever its exit status."""
        # plumbum adds to the environment but cannot take away from it; `env -u` can, here as over ssh.
        inherited = {*self._machine.env.keys(), *os.environ} - set(self._environment)
        removals = [word for name in sorted(inherited) for word in ("-u", name)]
        try:
            process = self._machine["env"].popen(
                [*removals, program, *arguments],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                new_session=True,  # its own process group, so that all of it can be killed
            )
        except (CommandNotFound, OSError) as error:
            raise SchedulerError(f"{program}: cannot be run here: {error}") from error
        answer = self._finish(program, process)
        if answer.status in _NOT_RUNNABLE:
            raise SchedulerError(f"{program}: cannot be run here: {answer.complaint}")
        return answer

    def ask(self, program: str, *arguments: str) -> str:
        """The output of a command that must succeed; raises SchedulerError where it does not."""
        answer = self.run(program, *arguments)
        if answer.status:
            raise SchedulerError(f"{program} failed with status {answer.status}: {answer.complaint}")
        return answer.output

    def _finish(self, program: str, process: Any) -> Answer:
        try:
            output, errors = process.communicate(timeout=self._timeout)
        except subprocess.TimeoutExpired as error:
            _kill_group(process)
            raise CommandHung(
                f"{program} did not answer within {format_duration(self._timeout)} (command_timeout)"
            ) from error
        return Answer(process.returncode, output.decode(errors="replace"), errors.decode(errors="replace"))


def _kill_group(process: Any) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    # A child that left the group may still hold the pipes: do not wait for it.
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=1)
