"""A real OpenPBS whose nodes are network namespaces of this one host, gone when it is stopped. Needs root."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import psutil

from tests.clusters import pbs_network
from tests.clusters.openpbs_conf import (
    ACCEPTS,
    DATABASE_USER,
    EXEC,
    ClusterOptions,
    cgroups_config,
    halves,
    head_conf,
    scheduled,
    settings,
)
from tests.clusters.openpbs_home import SEARCH_PATH, make_home
from tests.clusters.pbs_network import Network
from tests.clusters.throwaway import ClusterError, OnNetwork


def unavailable() -> str:
    """Why no throwaway OpenPBS can run here; empty where one can."""
    if not (EXEC / "sbin" / "pbs_server.bin").exists():
        return f"no OpenPBS in {EXEC} (docs/pbs.md says how to build one)"
    if not (EXEC / "sbin" / "pbs_iff").stat().st_mode & stat.S_ISUID:
        return f"{EXEC}/sbin/pbs_iff is not setuid (chmod 4755 {EXEC}/sbin/pbs_iff {EXEC}/sbin/pbs_rcp)"
    try:
        pwd.getpwnam(DATABASE_USER)
    except KeyError:
        return f"OpenPBS needs PostgreSQL and its user {DATABASE_USER} (Debian: postgresql)"
    return pbs_network.unavailable()


class ThrowawayOpenPbs(OnNetwork):
    """A throwaway cluster of OpenPBS.

    Raises:
        ClusterError: the cluster did not come up.
    """

    LOGS = ("*.out", "*/*_logs/*")

    def __init__(self, options: ClusterOptions | None = None) -> None:
        # Not in /tmp: PBS refuses homes below folders in which others may write.
        super().__init__(Path(tempfile.mkdtemp(prefix="throwaway-openpbs-", dir="/var/spool")), patience=60.0)
        self.options = options or ClusterOptions()
        self.network = Network(self.options.nodes, self.root)

    @property
    def conf(self) -> Path:
        return self.root / "pbs.conf"

    @property
    def env(self) -> dict[str, str]:
        """Variables of a client of this cluster."""
        return {"PBS_CONF_FILE": str(self.conf), "PATH": f"{EXEC}/bin:{os.environ.get('PATH', SEARCH_PATH)}"}

    def _come_up(self) -> None:
        self.network.start()
        self._make_head()
        self._start_daemon("pbs_comm")
        self.start_server()
        self._on_head(["pbs_sched"])
        self._on_head(["qmgr", "-a"], settings(self.options, self.nodes))
        self._add_hook("accepts", ACCEPTS)
        if self.options.cgroups:
            self._enable_cgroups()
        for number, node in enumerate(self.nodes, start=1):
            self._make_node(node, split=number in self.options.split)
            self.start_mom(node)
        self._until(lambda: self._nodes_have_hook("accepts"), "the nodes have no hook")
        self.wait_ready()

    def run(
        self,
        command: Sequence[str],
        *,
        check: bool = True,
        user: int | None = None,
        timeout: float | None = None,
    ) -> str:
        """Standard output of a command on this machine as a client, by root or another user."""
        environment = {"HOME": "/", **self.env}
        return self._run(command, check=check, user=user, environment=environment, timeout=timeout)

    def qmgr(self, *lines: str) -> None:
        """Change settings."""
        self._on_head(["qmgr", "-a"], "".join(f"{line}\n" for line in lines))

    @contextlib.contextmanager
    def setting(self, name: str, value: str, of: str = "queue workq") -> Iterator[None]:
        """A setting for a while."""
        self.qmgr(f"set {of} {name} = {value}")
        try:
            yield
        finally:
            self.qmgr(f"unset {of} {name}")

    def answers(self) -> bool:
        return "Server" in self.run(["qstat", "-B"], check=False)

    def wait_ready(self) -> None:
        """Until every node is in service and free."""
        self._until(self._all_free, "the nodes are not free")

    def clear(self) -> None:
        """End all jobs and reservations, forget ended ones, and bring all nodes back into service."""
        if "pbs_server" not in self._daemons:
            self.start_server()
        for node in self.nodes:
            self.network.connect(node)
            if node not in self._daemons:
                self.start_mom(node)
        self.run(["pbsnodes", "-r", *self.nodes], check=False)
        self._delete("qdel", ["-W", "force"], self.run(["qselect"]).split())
        self._until(lambda: not self.run(["qselect"]).split(), "the jobs do not end")
        kept = self.run(["pbs_rstat", "-B"], check=False).splitlines()
        self._delete("pbs_rdel", [], [line.split(":")[1].strip() for line in kept if ":" in line])
        self._delete("qdel", ["-x", "-W", "force"], self.run(["qselect", "-x"], check=False).split())
        self.wait_ready()

    def start_server(self) -> None:
        self._start_daemon("pbs_server")
        self._until(self.answers, "pbs_server does not answer")

    def stop_server(self, *, kill: bool = True) -> None:
        """SIGKILL, or in good order; jobs go on running."""
        if not kill:
            self._on_head(["qterm", "-t", "quick"], check=False)
            self._daemons["pbs_server"].wait(self.patience)
        self._end("pbs_server")

    @contextlib.contextmanager
    def plans(self) -> Iterator[None]:
        """The scheduler plans waiting jobs in their order, and keeps the place of the first ones."""
        config = self.root / "head" / "sched_priv" / "sched_config"
        before = config.read_text()
        self._set_scheduler(config, before.replace("strict_ordering: false", "strict_ordering: true"))
        try:
            yield
        finally:
            self._set_scheduler(config, before)

    @contextlib.contextmanager
    def hook(self, name: str, text: str) -> Iterator[None]:
        """Each program that a job starts meets one more hook for execjob_launch, with this text."""
        self._add_hook(name, text)
        try:
            self._until(lambda: self._nodes_have_hook(name), f"the nodes have no hook {name}")
            yield
        finally:
            self.qmgr(f"delete hook {name}")
            self._until(lambda: not self._nodes_have_hook(name), f"the nodes keep the hook {name}")

    def start_mom(self, node: str) -> None:
        """Start the mom of a node, which takes up the jobs that still run."""
        self._spawn(node, node, ["pbs_mom", "-N", "-p"], self.root / f"{node}.conf")

    def stop_mom(self, node: str) -> None:
        """`kill -9`; its jobs go on running."""
        self._end(node)

    def stop(self) -> None:
        super().stop()
        self._remove_cgroups()

    def _make_head(self) -> None:
        self.conf.write_text(head_conf(self.root, self.network.head), encoding="utf-8")
        # It makes the database and the first queue, with a server that it ends again. It does not wait
        # for PostgreSQL's start, and undoes everything when it was too fast.
        for _ in range(6):
            self._on_head([f"{EXEC}/libexec/pbs_habitat"], check=False)
            if any((self.root / "head" / "datastore").glob("*")):
                break
        else:
            raise ClusterError("pbs_habitat does not make a database")
        if self.options.gpus:
            config = self.root / "head" / "sched_priv" / "sched_config"
            config.write_text(scheduled(config.read_text()))
        self._on_head(["qterm", "-t", "quick"], check=False)
        self._until(lambda: not self._server_processes(), "the first server does not end")

    def _add_hook(self, name: str, text: str) -> None:
        file = self._hook_file(name, text)
        self.qmgr(
            f"create hook {name} event=execjob_launch",
            f"import hook {name} application/x-python default {file}",
        )

    def _enable_cgroups(self) -> None:
        file = self._hook_file("pbs_cgroups", cgroups_config(self.options.cgroups, self.network.head))
        self.qmgr(
            f"import hook pbs_cgroups application/x-config default {file}",
            "set hook pbs_cgroups enabled = True",
        )

    def _remove_cgroups(self) -> None:
        """Remove the cgroups that pbs_cgroups has made, in which nothing runs any more."""
        for controller in self.options.cgroups:
            for made in Path("/sys/fs/cgroup", controller).glob(f"{self.network.head}.*"):
                for folder, _, _ in os.walk(made, topdown=False):
                    Path(folder).rmdir()

    def _hook_file(self, name: str, text: str) -> Path:
        file = self.root / f"{name}.hook"
        file.write_text(text, encoding="utf-8")
        return file

    def _nodes_have_hook(self, name: str) -> bool:
        """The server sends hooks to the nodes some time after it was given them."""
        hooks = (self.root / node / "mom_priv" / "hooks" / f"{name}.PY" for node in self.nodes)
        return all(hook.exists() for hook in hooks)

    def _make_node(self, node: str, *, split: bool) -> None:
        conf = make_home(self.root, self.network.head, node)
        if split:
            definition = self.root / f"{node}.vnodes"
            definition.write_text(halves(node, self.options), encoding="utf-8")
            environment = {"PBS_CONF_FILE": str(conf), "PATH": SEARCH_PATH}
            insert = ["pbs_mom", "-s", "insert", "halves", str(definition)]
            self._run(self.network.on(node, insert), environment=environment)

    def _start_daemon(self, name: str) -> None:
        self._spawn(name, self.network.head, [name, "-N"], self.conf)

    def _spawn(self, name: str, host: str, command: Sequence[str], conf: Path) -> None:
        environment = {"PATH": SEARCH_PATH, "PBS_CONF_FILE": str(conf), "LC_ALL": "C"}
        self._begin(name, self.network.on(host, command), environment, self.root)

    def _server_processes(self) -> list[psutil.Process]:
        return [each for each in self.network.processes(self.network.head) if "pbs_server" in each.name()]

    def _set_scheduler(self, config: Path, text: str) -> None:
        """Write the scheduler's file, and have it read again."""
        config.write_text(text)
        for each in self.network.processes(self.network.head):
            if each.name() == "pbs_sched":
                each.send_signal(signal.SIGHUP)

    def _delete(self, command: str, options: Sequence[str], ids: Sequence[str]) -> None:
        if ids:
            self.run([command, *options, *ids], check=False)

    def _all_free(self) -> bool:
        states = [
            line.partition("=")[2].strip()
            for line in self.run(["pbsnodes", "-a", "-v"], check=False).splitlines()
            if line.strip().startswith("state =")
        ]
        halves = len(self.options.split)
        return len(states) == self.options.nodes + 2 * halves and set(states) == {"free"}

    def _on_head(self, command: Sequence[str], text: str = "", *, check: bool = True) -> str:
        environment = {"PATH": SEARCH_PATH, "PBS_CONF_FILE": str(self.conf)}
        return self._run(
            self.network.on(self.network.head, command), check=check, environment=environment, text=text
        )

    def _run(
        self,
        command: Sequence[str],
        *,
        environment: dict[str, str],
        check: bool = True,
        user: int | None = None,
        text: str = "",
        timeout: float | None = None,
    ) -> str:
        # Files, for a daemon that the command starts keeps the ends of pipes.
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            done = subprocess.run(
                list(command),
                env=environment,
                cwd=self.root,
                input=text.encode(),
                stdout=output,
                stderr=errors,
                timeout=timeout or 2 * self.patience,
                check=False,
                user=user,
                group=user,
            )
            said, complaint = _text_of(output), _text_of(errors)
        with (self.root / "commands.out").open("a", encoding="utf-8") as log:
            log.write(f"{' '.join(command)}: {done.returncode}\n{said}{complaint}")
        if check and done.returncode:
            raise ClusterError(f"{' '.join(command)}: exit status {done.returncode}: {complaint.strip()}")
        return said


def _text_of(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
