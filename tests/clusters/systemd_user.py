"""A systemd user instance of its own, with a private /run and cgroups, killed and started as by a reboot."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.living import run_text

_SYSTEMD = Path("/lib/systemd/systemd")
_CGROUPS = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))
"""Folders of the second version of cgroups: on a machine that has the first one too, and on others."""
_SETUP = """
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system /run/user/0
chmod 700 /run/user/0
umount -l /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo ready
exec sleep infinity
"""
_PATIENCE = 120.0


def unavailable() -> str | None:
    """Why none can run here; None: one can."""
    if os.geteuid() != 0:
        return "a systemd user instance of its own needs root"
    missing = [name for name in ("unshare", "nsenter", "systemctl") if shutil.which(name) is None]
    if missing or not _SYSTEMD.exists():
        return f"no systemd here: {', '.join(missing) or _SYSTEMD} not found"
    return None if _cgroups() else "no cgroups of version 2 that can be written"


def _cgroups() -> Path | None:
    return next((root for root in _CGROUPS if os.access(root / "cgroup.procs", os.W_OK)), None)


class SystemdUser:
    """The instance, and commands in its sight."""

    def __init__(self, home: Path) -> None:
        home.mkdir(exist_ok=True)
        self._home = home
        root = _cgroups()
        assert root is not None
        self._group = root / f"adaptor-test-{os.getpid()}"
        self._group.mkdir(exist_ok=True)
        self._join = f"echo $$ > {self._group}/cgroup.procs; "
        self._holder = subprocess.Popen(
            ["sh", "-c", f'{self._join} exec unshare -m -C sh -c "$0"', _SETUP],
            stdout=subprocess.PIPE,
            text=True,
        )
        self._manager: subprocess.Popen[bytes] | None = None
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != "ready\n":
            self.close()
            raise RuntimeError("the mounts of a systemd user instance failed; standard error has the reason")

    @property
    def environment(self) -> dict[str, str]:
        # In a chroot, systemctl does nothing unless it is asked to ignore that.
        return {"XDG_RUNTIME_DIR": "/run/user/0", "HOME": str(self._home), "SYSTEMD_IGNORE_CHROOT": "1"}

    def command(self, arguments: Sequence[str]) -> list[str]:
        into = ["nsenter", "-t", str(self._holder.pid), "-m", "-C", "--root", "--"]
        return ["sh", "-c", f'{self._join} exec "$@"', "sh", *into, *arguments]

    def run(
        self, arguments: Sequence[str], environment: Mapping[str, str], timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        return run_text(self.command(arguments), env=self._environment(environment), timeout=timeout)

    def _environment(self, given: Mapping[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in given.items() if not name.startswith(("XDG_", "DBUS_"))}
        return {**kept, **self.environment}

    def start(self) -> None:
        """Start as at boot, or at login: the units that are enabled start."""
        with (self._home / "systemd.log").open("ab") as log:
            self._manager = subprocess.Popen(
                self.command([str(_SYSTEMD), "--user", "--log-target=console"]),
                env=self._environment(os.environ),
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + _PATIENCE
        while self.run(["systemctl", "--user", "is-system-running"], os.environ).stdout.strip() != "running":
            assert time.monotonic() < until, (self._home / "systemd.log").read_text()
            time.sleep(0.2)

    def kill(self) -> None:
        """`kill -9` of the instance and of all that it has started, as when the machine goes down."""
        until = time.monotonic() + _PATIENCE
        while left := set(self._pids()) - {self._holder.pid}:  # what was forked meanwhile, too
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if self._manager is not None:
                self._manager.wait(_PATIENCE)
            assert time.monotonic() < until
            time.sleep(0.1)

    def close(self) -> None:
        self.kill()
        self._holder.kill()
        self._holder.wait(_PATIENCE)
        for folder in sorted(self._group.rglob("*/"), key=lambda path: len(path.parts), reverse=True):
            folder.rmdir()
        self._group.rmdir()

    def _pids(self) -> list[int]:
        found = []
        for folder, _, _ in os.walk(self._group):
            with contextlib.suppress(OSError):  # the group has been removed
                found += [int(line) for line in Path(folder, "cgroup.procs").read_text().split()]
        return [pid for pid in found if Path(f"/proc/{pid}").exists()]
