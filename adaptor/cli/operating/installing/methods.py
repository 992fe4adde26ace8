"""The ways to have the daemon started again: what each writes and runs."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from adaptor.atomic_file import write_private
from adaptor.cli.operating.installing.service import Service, cron_lines, scron_lines, unit, with_block
from adaptor.errors import AdaptorError

_TIMEOUT = 60.0
"""Seconds for a command."""
_LINGERING = Path("/var/lib/systemd/linger")


class Step(msgspec.Struct, frozen=True):
    """One thing that is done, in words and in deed."""

    told: str
    do: Callable[[], object]


class Method(Protocol):
    name: str

    def missing(self) -> str:
        """Why it cannot be used here; empty: it can."""

    def install(self) -> list[Step]: ...
    def remove(self) -> list[Step]: ...
    def remarks(self) -> list[str]:
        """What is left to the user, with the way out."""


class Systemd:
    name = "systemd"

    def __init__(self, service: Service) -> None:
        self._service = service
        base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
        self._path = Path(base).expanduser() / "systemd" / "user" / f"{service.name}.service"

    def missing(self) -> str:
        return _why_not(["systemctl", "--user", "show-environment"], "systemd runs no user instance here")

    def install(self) -> list[Step]:
        text = unit(self._service)
        return [
            Step(f"write {self._path}:\n\n{text}", lambda: self._write(text)),
            _command("systemctl", "--user", "daemon-reload"),
            _command("systemctl", "--user", "enable", self._path.name),
            _command("systemctl", "--user", "restart", self._path.name),
        ]

    def remove(self) -> list[Step]:
        return [
            _command("systemctl", "--user", "disable", "--now", self._path.name),
            Step(f"remove {self._path}", lambda: self._path.unlink(missing_ok=True)),
            _command("systemctl", "--user", "daemon-reload"),
        ]

    def remarks(self) -> list[str]:
        if lingers():
            return ["lingering is on: the daemon outlives your logout, and starts with the machine"]
        return [
            "lingering is off: systemd ends the daemon when you log out, and does not start it with the "
            "machine. Switch it on: loginctl enable-linger (if that is refused, ask whoever runs the machine "
            f"for: loginctl enable-linger {getpass.getuser()})"
        ]

    def _write(self, text: str) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_private(self._path, text.encode())


class Crontab:
    """cron, or Slurm's scrontab."""

    def __init__(self, service: Service, program: str, lines: list[str], remarks: list[str]) -> None:
        self.name = "cron" if program == "crontab" else program
        self._service, self._program, self._lines, self._remarks = service, program, lines, remarks

    def missing(self) -> str:
        if shutil.which(self._program) is None:
            return f"there is no {self._program} here"
        listed = _run([self._program, "-l"])
        refused = listed.returncode and "no crontab" not in listed.stderr.lower()
        return f"{self._program} is refused: {listed.stderr.strip()}" if refused else ""

    def install(self) -> list[Step]:
        shown = "\n".join(self._lines)
        return [Step(f"put into your {self._program}:\n\n{shown}\n", lambda: self._put(self._lines))]

    def remove(self) -> list[Step]:
        return [Step(f"take our lines out of your {self._program}", lambda: self._put([]))]

    def remarks(self) -> list[str]:
        return self._remarks

    def _put(self, lines: list[str]) -> None:
        before = _run([self._program, "-l"])
        text = before.stdout if before.returncode == 0 else ""
        _ask([self._program, "-"], with_block(text, self._service.name, lines))


def cron(service: Service) -> Crontab:
    remark = (
        f"cron starts the daemon when {service.host} starts; after a crash it is started by the next"
        " `adaptor submit`, or by: adaptor daemon start"
    )
    return Crontab(service, "crontab", cron_lines(service), [remark])


def scron(service: Service, options: tuple[str, ...]) -> Crontab:
    remark = (
        "the daemon runs in a job of Slurm, which is queued again when it has ended: give it the partition "
        "and the time that your centre has for that, for instance --scron '-q workflow' --scron '-t 7-0'"
    )
    return Crontab(service, "scrontab", scron_lines(service, options), [remark])


def lingers() -> bool:
    """Whether processes of this user outlive his logout."""
    user = getpass.getuser()
    try:
        told = _run(["loginctl", "show-user", user, "--property=Linger", "--value"])
    except AdaptorError:
        return (_LINGERING / user).exists()
    return told.stdout.strip() == "yes" if told.returncode == 0 else (_LINGERING / user).exists()


def _command(*arguments: str) -> Step:
    return Step(f"run {' '.join(arguments)}", lambda: _ask(list(arguments)))


def _why_not(arguments: Sequence[str], words: str) -> str:
    try:
        _ask(arguments)
    except AdaptorError as error:
        return f"{words} ({error})"
    return ""


def _ask(arguments: Sequence[str], given: str = "") -> None:
    """Raises AdaptorError: the command fails."""
    done = _run(arguments, given)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise AdaptorError(f"{' '.join(arguments)} failed: {said[-1] if said else done.returncode}")


def _run(arguments: Sequence[str], given: str = "") -> subprocess.CompletedProcess[str]:
    """Raises AdaptorError: the command cannot be run, or hangs."""
    try:
        return subprocess.run(
            arguments, input=given, capture_output=True, text=True, timeout=_TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AdaptorError(f"{arguments[0]} cannot be run: {error}") from error
