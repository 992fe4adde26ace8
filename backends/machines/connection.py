"""One ssh connection that is reused: plumbum's `SshMachine` holds it, every other ssh goes through it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, cast

from plumbum import CommandNotFound, ProcessExecutionError
from plumbum.machines.session import ShellSession, ShellSessionError
from plumbum.machines.ssh_machine import SshMachine

from adaptor.backoff import Backoff
from adaptor.config.schema import SshConfig
from backends.base import SchedulerError
from backends.machines.here import kill_and_reap, kill_group

_PLACE = "/tmp"  # noqa: S108  (each folder is new and 0700)
_PREFIX = "adaptor-ssh-"
_HELD = "held"


class ControlFolder:
    """Private, and short: the path of a unix socket may have 108 characters at most."""

    def __init__(self) -> None:
        """Make the folder; remove what killed processes have left. Raises OSError."""
        _sweep()
        self._path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_PLACE))
        # Make a file that is locked before it has its name: others sweep away what has it and is not.
        path = self._path / _HELD
        new = path.with_suffix(".new")
        handle = os.open(new, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        new.rename(path)
        self._held = handle

    @property
    def socket(self) -> Path:
        return self._path / "ssh"

    def remove(self) -> None:
        shutil.rmtree(self._path, ignore_errors=True)
        os.close(self._held)


def _sweep() -> None:
    for path in Path(_PLACE).glob(f"{_PREFIX}*/{_HELD}"):
        with contextlib.suppress(OSError):
            if path.parent.stat().st_uid == os.getuid() and not _is_held(path):
                shutil.rmtree(path.parent, ignore_errors=True)


def _is_held(path: Path) -> bool:
    """Whether a process lives that has the lock; the kernel releases it with the process."""
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(handle)


CONNECT_TIMEOUT = 20.0  # seconds for which a connection is tried
_LOOK_AGAIN = 0.05  # seconds between looks for a process that still connects, on leaving
_ALIVE = {"ServerAliveInterval": "5", "ServerAliveCountMax": "3"}
"""A connection that is silent for 15 s is given up."""
_NEVER_ASK = {"BatchMode": "yes", "RemoteCommand": "none", "RequestTTY": "no", "LogLevel": "ERROR"}
_MASTER = {"ControlMaster": "yes", "ControlPersist": "no", "ConnectTimeout": f"{CONNECT_TIMEOUT:.0f}"}
_NO_EXTRAS = {
    "ForwardAgent": "no",
    "ForwardX11": "no",
    "ClearAllForwardings": "yes",
    "PermitLocalCommand": "no",
}


_HINTS = {
    "host key": " (connect once by hand, so that ssh knows it)",
    "Permission denied": " (no password is ever asked for: see `identity`, or load the key into an agent)",
}
_FAILURES = (ProcessExecutionError, EOFError, OSError, ValueError, ShellSessionError)
"""Errors that plumbum may raise if a connection fails."""


def _as_options(settings: dict[str, str]) -> list[str]:
    return [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]


class _Login(SshMachine):
    """The session that plumbum opens is the connection; every other ssh goes through it."""

    def __init__(self, config: SshConfig, control: Path, started: Callable[[Any], None]) -> None:
        """Connects, within CONNECT_TIMEOUT.

        Args:
            control: the socket through which the others go.
            started: is given the process of the connection before it stands.

        Raises SchedulerError: it cannot.
        """
        self._started = started
        self._options = config.options
        self._watch: threading.Timer | None = None
        self._ssh: Any = None
        try:
            super().__init__(
                config.host,
                user=config.user,
                port=config.port,
                keyfile=str(Path(config.identity).expanduser()) if config.identity else None,
                ssh_opts=_as_options({**_NEVER_ASK, "ControlPath": str(control)}),
                new_session=True,  # so that no Ctrl-C reaches it, and all of it can be killed
            )
        except CommandNotFound as error:
            raise SchedulerError(f"ssh: not found here: {error}") from error
        except _FAILURES as error:
            raise SchedulerError(f"ssh {config.host}: cannot connect: {self._words(error)}") from error
        finally:
            if self._watch is not None:
                self._watch.cancel()

    def _words(self, error: BaseException) -> str:
        """The error message of ssh, if it printed one, and a hint what to do."""
        said = str(getattr(error, "stderr", "") or "")
        with contextlib.suppress(OSError, ValueError, AttributeError):
            said += self._ssh.stderr.read().decode(errors="replace")
        last = _last(said.encode()) if said.strip() else f"no answer within {CONNECT_TIMEOUT:.0f} s"
        hints = (hint for word, hint in _HINTS.items() if word in said)
        return f"{last}{next(hints, '')}"

    def session(self, isatty: bool = False, new_session: bool = True) -> ShellSession:
        # Of an option that is given twice, ssh takes the first.
        options = [*_as_options(_MASTER), *_as_options(self._options), *_as_options({**_ALIVE, **_NO_EXTRAS})]
        self._ssh = self.popen(["/bin/sh"], ssh_opts=["-T", *options], cwd="", new_session=new_session)
        self._started(self._ssh)
        self._watch = threading.Timer(CONNECT_TIMEOUT, kill_group, [self._ssh])
        self._watch.daemon = True
        self._watch.start()
        return ShellSession(self._ssh, self.custom_encoding, isatty, None, host=self.host)

    def alive(self) -> bool:
        return isinstance(self._session, ShellSession) and self._session.alive()


class SshConnection:
    """Made when it is first needed, and again, after a pause that grows, when it was lost."""

    def __init__(self, config: SshConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._login: _Login | None = None
        self._connecting: Any = None
        self._folder: ControlFolder | None = None
        self._pause = Backoff(first=2, most=120)
        self.number = 0  # number of connections so far: another number, another connection

    def alive(self) -> bool:
        login = self._login
        return login is not None and login.alive()

    def ensure(self) -> int:
        """Connect where there is no connection; its number.

        Raises SchedulerError: the machine is not reached, or it is not yet time to try again.
        """
        with self._lock:
            if not self.alive():
                self._drop()
                self._connect()
            return self.number

    def open_shell(self, stderr: int | IO[bytes]) -> subprocess.Popen[bytes]:
        """A shell there, through the connection, with pipes. Raises SchedulerError."""
        # Without the connection these ssh must fail, not open one of their own.
        options = ["-F", os.devnull, "-T", *_as_options({"ControlMaster": "no", "ProxyCommand": "exit 1"})]
        return self._popen(("/bin/bash", "-s"), options, stderr)

    def control(self, order: Sequence[str], timeout: float) -> str:
        """An order to the connection itself (ssh(1), `-O`), such as a forwarding; what it prints.

        Raises SchedulerError: it is refused, or there is no connection.
        """
        process = self._popen((), ["-F", os.devnull, "-o", "ControlMaster=no", *order], subprocess.PIPE)
        try:
            output, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as error:
            kill_and_reap(process)
            raise SchedulerError(f"ssh {self._config.host}: no answer within {timeout:g} s") from error
        if process.returncode:
            raise SchedulerError(f"ssh {self._config.host}: {_last(errors)}")
        return output.decode(errors="replace")

    def close(self) -> None:
        """Leave; nothing waits for a connection any longer."""
        self._give_up_connecting()
        while not self._lock.acquire(timeout=_LOOK_AGAIN):
            self._give_up_connecting()  # its process was not known yet, or another thread tries now
        try:
            self._drop()
        finally:
            self._lock.release()

    def _give_up_connecting(self) -> None:
        connecting = self._connecting
        if connecting is not None:
            kill_group(connecting)

    def _starts(self, process: Any) -> None:
        self._connecting = process

    def _popen(
        self, arguments: Sequence[str], options: Sequence[str], stderr: int | IO[bytes]
    ) -> subprocess.Popen[bytes]:
        self.ensure()
        login = self._login
        if login is None:
            raise SchedulerError(f"ssh {self._config.host}: the connection was closed")
        started: Any = login.popen(
            list(arguments),
            ssh_opts=list(options),
            cwd="",
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            new_session=True,
        )
        # plumbum's wrapper answers to all that a Popen does, and closes the pipes when it is forgotten.
        return cast("subprocess.Popen[bytes]", started)

    def _connect(self) -> None:
        now = time.time()
        if self._pause.waiting(now):
            raise SchedulerError(self._pause.reason)
        try:
            self._folder = ControlFolder()
            self._login = _Login(self._config, self._folder.socket, self._starts)
        except OSError as error:
            raise SchedulerError(f"no place for the socket of a connection: {error}") from error
        except SchedulerError as error:
            self._pause.failed(time.time(), str(error))
            self._drop()
            raise
        finally:
            self._connecting = None
        self._pause.succeeded()
        self.number += 1

    def _drop(self) -> None:
        login, self._login = self._login, None
        if login is not None:
            with contextlib.suppress(OSError, ValueError, EOFError):
                login.close()
        if self._folder is not None:
            self._folder.remove()
            self._folder = None


def _last(errors: bytes) -> str:
    lines = errors.decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else "no message"
