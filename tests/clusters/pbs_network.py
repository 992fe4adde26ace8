"""Network namespaces for the hosts of a throwaway cluster, on a bridge of their own. Needs root.

The name of a PBS host must resolve to an address that resolves back to it. So /etc/hosts gets a line for each
host while the cluster lives; names and addresses contain the cluster's number, so that several can live.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import psutil

from tests.clusters.processes import kill_all

_HOSTS = Path("/etc/hosts")
_LOCKS = Path("/run/throwaway-pbs")
_MOST = 200
"""Clusters at the same time."""
_AS_HOST = """
ulimit -n 4096 # daemons of PBS close all descriptors that they might have, one by one
mount --bind "$1/nsswitch.conf" /etc/nsswitch.conf # nothing answers to questions about names there
if [ -d /run/postgresql ]; then mount --bind "$1/sockets" /run/postgresql; fi # a port is a file there
for file in ~root/.profile ~root/.bash_profile ~root/.bash_login; do # jobs have login shells: what root has
    if [ -f "$file" ]; then mount --bind /dev/null "$file"; fi # there for its own may wait for ever
done
hostname "$0"
shift
exec "$@"
"""
_NAMES = "passwd: files\ngroup: files\nshadow: files\nhosts: files\n"


class Network:
    """A head and nodes: `head` and `nodes` are their host names. This machine is in the network, too."""

    def __init__(self, nodes: int, root: Path) -> None:
        """Takes a free number and removes what a cluster of that number has left that was killed."""
        _LOCKS.mkdir(mode=0o755, exist_ok=True)
        self.number, self._lock = _free_number()
        self.head = f"pbs{self.number}head"
        self.nodes = tuple(f"pbs{self.number}n{n}" for n in range(1, nodes + 1))
        self._remove_leftovers()
        self._root = root
        (root / "nsswitch.conf").write_text(_NAMES, encoding="utf-8")
        sockets = root / "sockets"
        sockets.mkdir(exist_ok=True)
        sockets.chmod(0o1777)
        self._lock.truncate(0)
        self._lock.write(str(root))
        self._lock.flush()

    def start(self) -> None:
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("address", "add", f"{self.address}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        addresses = {f"pbs{self.number}client": self.address}
        for last, name in enumerate((self.head, *self.nodes), start=1):
            self._add_host(name, self._address(last))
            addresses[name] = self._address(last)
        with _hosts_lines() as lines:
            lines += [f"{address} {name} {self._mark}" for name, address in addresses.items()]

    def on(self, host: str, command: Sequence[str]) -> list[str]:
        """The words of a command that runs as if on a host; the process that they start becomes it."""
        return [
            *("nsenter", f"--net=/run/netns/{host}", "unshare", "--uts", "--mount"),
            *("sh", "-c", _AS_HOST, host, str(self._root), *command),
        ]

    def processes(self, host: str) -> list[psutil.Process]:
        """All that run on a host."""
        answer = subprocess.run(["ip", "netns", "pids", host], capture_output=True, text=True, check=False)
        found = []
        for pid in answer.stdout.split():
            with contextlib.suppress(psutil.Error):
                found.append(psutil.Process(int(pid)))
        return found

    def cut(self, host: str) -> None:
        """Nothing reaches a host, or leaves it; what runs there runs on."""
        _ip("link", "set", self._cable(host), "down")

    def connect(self, host: str) -> None:
        _ip("link", "set", self._cable(host), "up")

    def stop(self) -> None:
        """Ends all that runs on the hosts."""
        self._remove_leftovers()
        self._lock.truncate(0)
        self._lock.close()

    @property
    def address(self) -> str:
        """Address of this machine."""
        return self._address(254)

    @property
    def _bridge(self) -> str:
        return f"pbs{self.number}br"

    @property
    def _mark(self) -> str:
        return f"# throwaway-pbs {self.number}"

    def _address(self, last: int) -> str:
        return f"10.99.{self.number}.{last}"

    def _cable(self, host: str) -> str:
        return f"v{host}"

    def _add_host(self, name: str, address: str) -> None:
        _ip("netns", "add", name)
        cable = self._cable(name)
        _ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("link", "set", cable, "master", self._bridge, "up")
        for words in (
            ("link", "set", "lo", "up"),
            ("address", "add", f"{address}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
            ("route", "add", "default", "via", self.address),
        ):
            _ip("-n", name, *words)

    def _remove_leftovers(self) -> None:
        start = f"pbs{self.number}"
        hosts = [path.name for path in Path("/run/netns").glob(f"{start}[hn]*")]
        kill_all([process for host in hosts for process in self.processes(host)])
        for host in hosts:
            _ip("netns", "delete", host)
            _ip("link", "delete", self._cable(host), check=False)  # goes with the namespace, but not at once
        _ip("link", "delete", self._bridge, check=False)
        with _hosts_lines() as lines:
            lines[:] = [line for line in lines if not line.endswith(self._mark)]
        self._lock.seek(0)
        root = self._lock.read()
        if root:
            shutil.rmtree(root, ignore_errors=True)
            self._lock.seek(0)


def _free_number() -> tuple[int, IO[str]]:
    """Held for as long as the file is open."""
    for number in range(1, _MOST):
        lock = (_LOCKS / str(number)).open("a+", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        return number, lock
    raise RuntimeError(f"{_MOST} throwaway clusters are there already ({_LOCKS})")


@contextlib.contextmanager
def _hosts_lines() -> Iterator[list[str]]:
    """Lines of /etc/hosts, to be changed; written in place, as containers mount that file."""
    with (_LOCKS / "hosts").open("a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = _HOSTS.read_text(encoding="utf-8").splitlines()
        lines = list(before)
        yield lines
        if lines != before:
            with _HOSTS.open("r+", encoding="utf-8") as file:  # never empty for those who read it meanwhile
                file.write("".join(f"{line}\n" for line in lines))
                file.truncate()


def _ip(*words: str, check: bool = True) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")


def unavailable() -> str:
    """Why there can be no such network here; empty where there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [name for name in ("ip", "nsenter", "unshare") if not shutil.which(name)]
    return f"{', '.join(missing)} not found (Debian: iproute2, util-linux)" if missing else ""
