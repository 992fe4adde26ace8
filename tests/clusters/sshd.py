"""A real sshd on the loopback, for the user who runs the tests, in a temporary folder."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import psutil

from tests.clusters.processes import dying_with_us, free_ports, kill_all

_SBIN = "/usr/sbin:/sbin:/usr/local/sbin"
_PRIVILEGE_SEPARATION = Path("/run/sshd")
"""Without this folder sshd does not start for root; the service makes it, which does not run here."""

_CONFIG = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {root}/host_key
PidFile {root}/sshd.pid
AuthorizedKeysFile {root}/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PrintMotd no
LogLevel VERBOSE
GatewayPorts no
{extra}
"""


BREAK_CONNECTION = """\
break_connection() {
    local process=$$
    while [ "$process" -gt 1 ]; do
        process=$(ps -o ppid= -p "$process" | tr -d ' ')
        case $(ps -o comm= -p "$process") in sshd|sshd-session) kill -9 "$process"; return; esac
    done
}
"""
"""A function for bash: kills the process that serves the connection of its shell."""
_SERVING = frozenset({"sshd", "sshd-session"})
"""Programs that serve a connection: a fork of the listener; since OpenSSH 9.8 a program of its own."""


class SshdError(RuntimeError):
    """The sshd did not come up; the message holds the end of its log."""


def _program(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", "/usr/bin:/bin") + ":" + _SBIN)


def available() -> str | None:
    """None where an sshd can run here, else why not."""
    missing = [name for name in ("sshd", "ssh", "ssh-keygen") if not _program(name)]
    if missing:
        return f"no sshd here: {', '.join(missing)} not found (Debian: apt-get install openssh-server)"
    if os.getuid() == 0:
        with contextlib.suppress(OSError):
            _PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
    return None


class ThrowawaySshd:
    """Starts on entering the `with` block, ends with all of its sessions on leaving it.

    Raises:
        SshdError: it did not come up.
    """

    def __init__(self, variables: Mapping[str, str] | None = None, options: str = "") -> None:
        """`variables`: what every session has in its environment; `options`: lines of sshd_config."""
        self.root = Path(tempfile.mkdtemp(prefix="sshd-"))
        (self.port,) = free_ports(1)
        # A home of its own: what the user's shell does at its start is no business of the tests.
        self.home = self.root / "home"
        self.home.mkdir(mode=0o700)
        known = {"HOME": str(self.home), **(variables or {})}
        self._lines = [
            f"SetEnv {' '.join(f'{key}={value}' for key, value in known.items())}",
            *options.splitlines(),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def identity(self) -> Path:
        return self.root / "user_key"

    @property
    def known_hosts(self) -> Path:
        return self.root / "known_hosts"

    def site(self, port: int | None = None) -> dict[str, object]:
        """The `ssh:` of a site that is reached through it, or through what listens at `port` instead."""
        return {
            "host": "127.0.0.1",
            "user": getpass.getuser(),
            "port": port or self.port,
            "identity": str(self.identity),
            "options": {
                "UserKnownHostsFile": str(self.known_hosts),
                "StrictHostKeyChecking": "yes",
                "HostKeyAlias": "throwaway",
            },
        }

    def __enter__(self) -> ThrowawaySshd:
        for name in ("host_key", "user_key"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.root / name],
                check=True,
                timeout=60,
            )
        (self.root / "authorized_keys").write_bytes((self.root / "user_key.pub").read_bytes())
        key = (self.root / "host_key.pub").read_text().split()
        self.known_hosts.write_text(f"throwaway {key[0]} {key[1]}\n")
        config = _CONFIG.format(port=self.port, root=self.root, extra="\n".join(self._lines))
        (self.root / "sshd_config").write_text(config)
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self.root, ignore_errors=True)

    def start(self) -> None:
        program = _program("sshd") or "sshd"
        with (self.root / "sshd.out").open("ab") as output:
            self._process = subprocess.Popen(
                [
                    *dying_with_us(),
                    program,
                    "-D",
                    "-f",
                    self.root / "sshd_config",
                    "-E",
                    self.root / "sshd.log",
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        deadline = time.monotonic() + 60
        while not (self.root / "sshd.pid").exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise SshdError(f"sshd did not come up: {self.log()}")
            time.sleep(0.05)

    def stop(self) -> None:
        """No new connections, and an end to all there are."""
        if self._process is not None and self._process.poll() is None:
            kill_all([psutil.Process(self._process.pid)])
            self._process.wait()
        self._process = None
        (self.root / "sshd.pid").unlink(missing_ok=True)

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def sessions(self) -> list[psutil.Process]:
        """The processes that serve one connection each."""
        if self._process is None:
            return []
        return psutil.Process(self._process.pid).children()

    def cut(self) -> None:
        """Break all connections, as a network does: whatever runs on this side goes on running."""
        for process in self.sessions():
            with contextlib.suppress(psutil.NoSuchProcess):
                for one in [process, *process.children()]:
                    if one.name() in _SERVING:
                        one.kill()

    def log(self) -> str:
        paths = [path for path in (self.root / "sshd.out", self.root / "sshd.log") if path.exists()]
        return "".join(path.read_text(errors="replace") for path in paths)[-2000:]
