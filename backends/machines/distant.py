"""A machine that is reached over ssh: every command and every file through one connection.

Whatever the login shell of the user, it only sees `/bin/bash -s`. The program, its arguments and its
variables come through the input, quoted for a POSIX shell, so they stand in no command line of ours.
The braces around the lines make a text that was cut short a mistake, which is not executed.
"""

from __future__ import annotations

import re
import secrets
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence

import msgspec

from adaptor.config.schema import SshConfig
from adaptor.processes.commands import module_command
from adaptor.processes.talk import Talk
from adaptor.protocol.files.remote import RemoteFiles
from adaptor.units import format_duration
from backends.base import SchedulerError
from backends.machines.base import CommandAnswer, CommandHung, Machine
from backends.machines.connection import SshConnection
from backends.machines.here import TooMuchError, kill_and_reap, printed_by

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHELLS_OWN = frozenset(
    {"BASHOPTS", "BASH_ARGC", "EUID", "PPID", "SHELLOPTS", "UID", "PWD", "OLDPWD", "SHLVL", "_"}
)
"""A shell sets these itself, and some of them cannot be changed."""


class Printed(msgspec.Struct, frozen=True):
    """Output between the marks, and the exit status."""

    status: int
    output: bytes
    errors: bytes


def script(lines: Sequence[str], mark: str) -> bytes:
    """The text that runs `lines` without input, and tells their exit status."""
    body = "\n".join(lines)
    text = (
        f'{{\necho {mark}; echo {mark} >&2\n(\n{body}\n)\nprintf "\\n%s %s\\n" {mark} "$?" >&2\nexit 0\n}}\n'
    )
    return encoded(text)


def talk(arguments: Sequence[str], mark: str) -> bytes:
    """The text that becomes a program, which has the rest of the input; `mark` is printed before."""
    return encoded(f"{{\necho {mark}\nexec {shlex.join(arguments)}\n}}\n")


def printed(output: bytes, errors: bytes, mark: str) -> Printed | None:
    """Output of the lines of `script`; None: the end of the lines is missing.

    Output of the login shell before the lines is left out.
    """
    sign = mark.encode()
    _, begun, said = output.partition(sign + b"\n")
    _, warned, rest = errors.partition(sign + b"\n")
    complaints, _, status = rest.rpartition(b"\n" + sign + b" ")
    if not begun or not warned or not re.fullmatch(rb"\d+\n", status):
        return None
    return Printed(int(status), said, complaints)


def command_lines(
    arguments: Sequence[str], wanted: Mapping[str, str], present: Mapping[str, str], timeout: float
) -> list[str]:
    """A command with exactly the wanted variables, ended with its children after `timeout` seconds.

    `present`: the variables that the shell has from the start.
    """
    lines = ["limit=$(command -v timeout) || { echo 'timeout: not found' >&2; exit 127; }"]
    removed = [name for name in present if name not in wanted and name not in _SHELLS_OWN]
    named = [name for name in removed if _NAME.fullmatch(name)]
    odd = [name for name in removed if not _NAME.fullmatch(name)]
    if named:
        lines.append(f"unset -v {' '.join(named)}")
    for name, value in wanted.items():
        if present.get(name) != value and _NAME.fullmatch(name) and name not in _SHELLS_OWN:
            lines.append(f"export {name}={shlex.quote(value)}")
    without = [word for name in odd for word in ("-u", name)]
    lines.append(
        f'exec "$limit" -k 2 {timeout:.3f} /usr/bin/env {shlex.join([*without, *arguments])} </dev/null'
    )
    return lines


def encoded(text: str) -> bytes:
    """Names of files and values of variables may hold any bytes."""
    return text.encode(errors="surrogateescape")


_SLACK = 5.0  # seconds that the other side has for ending a command before we give it up
_TIMED_OUT = (124, 137)  # exit statuses of timeout(1) if it had to end the command


class Distant(Machine):
    """Connects when it is first asked something."""

    def __init__(
        self, config: SshConfig, additions: Mapping[str, str], timeout: float, python: str = "python3"
    ) -> None:
        """
        Args:
            additions: variables of the site's commands.
            timeout: seconds for what is not a command of the scheduler, such as writing a file.
            python: the interpreter there that has this package in our version. Its files need it, commands
                of the scheduler need `/bin/bash` and GNU coreutils.
        """
        server = module_command(python, "adaptor.protocol.files.remote")
        super().__init__(RemoteFiles(lambda: self.start(server), timeout))
        self.where = f"on {config.host}"
        self.connection = SshConnection(config)
        self._additions = dict(additions)
        self._timeout = timeout
        self._own: dict[str, str] = {}
        self._known_by = 0
        self._forwards: dict[tuple[int, int], int] = {}  # by connection and port here

    def variables(self) -> dict[str, str]:
        return {**self._variables_there(), **self._additions}

    def run(self, arguments: Sequence[str], variables: Mapping[str, str], timeout: float) -> CommandAnswer:
        lines = command_lines(arguments, variables, self._variables_there(), timeout)
        done = self._execute(arguments[0], lines, timeout + _SLACK)
        if done.status in _TIMED_OUT:
            raise CommandHung(
                f"{arguments[0]} did not answer within {format_duration(timeout)} {self.where} "
                "(command_timeout)"
            )
        return CommandAnswer(done.status, done.output, done.errors.decode(errors="replace"))

    def start(self, arguments: Sequence[str]) -> Talk:
        mark = _mark()
        errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the conversation)
        conversation = Talk(self.connection.open_shell(errors), errors)
        try:
            if conversation.process.stdin is not None:
                conversation.process.stdin.write(talk(arguments, mark))
                conversation.process.stdin.flush()
            wanted = f"{mark}\n".encode()
            if not conversation.read_until(wanted, self._timeout).endswith(wanted):
                alive = conversation.process.poll() is None
                within = f"no answer within {format_duration(self._timeout)}"
                raise TimeoutError(within if alive else "the connection was lost")
        except (OSError, TimeoutError) as error:
            complaint = conversation.complaint() or str(error)
            conversation.end()
            raise SchedulerError(f"{arguments[0]}: cannot be started {self.where}: {complaint}") from error
        return conversation

    def _located(self, problem: str) -> str:
        what, colon, why = problem.partition(":")
        return f"{what} {self.where}{colon}{why}"

    def close(self) -> None:
        self.files.close()
        self.connection.close()

    def forward(self, port: int) -> int:
        """A port of the other side's loopback that leads to our loopback's `port`, as long as the connection.

        Raises SchedulerError: the machine is not reached, or its sshd does not allow that.
        """
        number = self.connection.ensure()
        if (number, port) not in self._forwards:
            words = ["-O", "forward", "-R", f"127.0.0.1:0:127.0.0.1:{port}"]
            try:
                told = self.connection.control(words, self._timeout).strip()
                self._forwards = {(number, port): int(told)}
            except (SchedulerError, ValueError) as error:
                raise SchedulerError(
                    f"no tunnel was opened {self.where} ({error}); if its sshd forbids forwarding,"
                    " give the site a folder there as `spool`"
                ) from error
        return self._forwards[number, port]

    def _variables_there(self) -> dict[str, str]:
        """Environment of a command there, as its shell has it; asked once per connection."""
        number = self.connection.ensure()
        if self._known_by != number:
            problem = "the environment cannot be read"
            done = self._execute(problem, ["env -0"], self._timeout)
            if done.status:
                complaint = CommandAnswer(done.status, b"", done.errors.decode(errors="replace")).complaint
                raise SchedulerError(f"{problem} {self.where}: {complaint}")
            pairs = (entry.partition(b"=") for entry in done.output.split(b"\0") if b"=" in entry)
            self._own = {_text(name): _text(value) for name, _, value in pairs}
            self._known_by = number
        return self._own

    def _execute(self, what: str, lines: Sequence[str], timeout: float) -> Printed:
        mark = _mark()
        process = self.connection.open_shell(subprocess.PIPE)
        try:
            output, errors = printed_by(process, timeout, script(lines, mark))
        except subprocess.TimeoutExpired as error:
            kill_and_reap(process)
            raise CommandHung(f"{what}: no answer within {format_duration(timeout)} {self.where}") from error
        except TooMuchError as error:
            kill_and_reap(process)
            raise CommandHung(f"{what} {error} {self.where}") from error
        done = printed(output, errors, mark)
        if done is None:
            raise CommandHung(f"{what}: the connection was lost before it had answered {self.where}")
        return done


def _text(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


def _mark() -> str:
    return f"adaptor-{secrets.token_hex(8)}"
