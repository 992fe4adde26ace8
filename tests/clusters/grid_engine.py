"""A real Grid Engine whose hosts are network namespaces here, gone when it is stopped. Needs root."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.clusters import pbs_network
from tests.clusters.grid_engine_conf import (
    ARCH,
    BINARIES,
    INSTALLED,
    PES,
    QUEUES,
    SHARE,
    GridOptions,
    bootstrap,
    configuration,
    execution_host,
    host_group,
    parallel_environment,
    queue,
    scheduler,
    with_memory,
)
from tests.clusters.pbs_network import Network
from tests.clusters.throwaway import ClusterError, OnNetwork, play
from tests.living import run_text

_SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MASTER = "sge_qmaster"


def unavailable() -> str:
    """Why no throwaway Grid Engine can run here; empty where one can."""
    if not (BINARIES / _MASTER).exists():
        return f"no Grid Engine in {INSTALLED} (tests/clusters/install-gridengine)"
    return pbs_network.unavailable()


class ThrowawayGridEngine(OnNetwork):
    """A throwaway cluster of Grid Engine.

    Raises:
        ClusterError: the cluster did not come up.
    """

    LOGS = ("*.out", "qmaster/messages", "execd/*/messages")

    def __init__(self, options: GridOptions | None = None) -> None:
        super().__init__(Path(tempfile.mkdtemp(prefix="throwaway-gridengine-")), patience=60.0)
        self.options = options or GridOptions()
        self.network = Network(self.options.nodes, self.root)

    @property
    def env(self) -> dict[str, str]:
        """Variables of a client of this cluster."""
        return {
            "SGE_ROOT": str(self.root),
            "SGE_CELL": "default",
            "SGE_QMASTER_PORT": "6444",
            "SGE_EXECD_PORT": "6445",
            "PATH": f"{BINARIES}:{os.environ.get('PATH', _SEARCH_PATH)}",
        }

    def _come_up(self) -> None:
        self.network.start()
        self._make_cell()
        self.start_master()
        self._configure()
        for node in self.nodes:
            self.start_node(node)
        self.wait_ready()

    def run(self, command: Sequence[str], *, check: bool = True, user: int | None = None) -> str:
        """Standard output of a command on this machine as a client, by root or another user."""
        return self._run(command, check=check, user=user)

    def configure(self, option: str, text: str, *names: str) -> None:
        """Change settings: `qconf OPTION [NAME …] FILE`."""
        file = self.root / "settings.txt"
        file.write_text(text, encoding="utf-8")
        self._on_head(["qconf", option, *names, str(file)])

    def wait_ready(self) -> None:
        """Until every node is in service and no job is left."""
        self._until(lambda: not self.run(["qstat", "-u", "*"]).strip(), "there are jobs left")
        self._until(self._all_serve, "the nodes are not in service")

    def clear(self) -> None:
        """End all jobs, and bring all nodes back into service."""
        if _MASTER not in self._daemons:
            self.start_master()
        for node in self.nodes:
            self.network.connect(node)
            if node not in self._daemons:
                self.start_node(node)
        self.run(["qmod", "-e", "*"], check=False)
        self.run(["qdel", "-f", "-u", "*"], check=False)
        self.wait_ready()

    def start_master(self) -> None:
        self._spawn(_MASTER, self.network.head)
        self._until(lambda: bool(self._on_head(["qconf", "-sh"])), f"{_MASTER} does not answer")

    def stop_master(self) -> None:
        """`kill -9`; jobs go on running."""
        self._end(_MASTER)

    def start_node(self, node: str) -> None:
        """Its daemon takes up the jobs that still run."""
        self._spawn(node, node)

    def _make_cell(self) -> None:
        common = self.root / "default" / "common"
        for folder in (common, self.root / "qmaster" / "job_scripts", self.root / "execd"):
            folder.mkdir(parents=True)
        for place in ("bin", "lib", "utilbin"):
            (self.root / place).mkdir()
            (self.root / place / ARCH).symlink_to(BINARIES)
        (self.root / "util").symlink_to(SHARE / "util")
        common.joinpath("bootstrap").write_text(bootstrap(self.root), encoding="utf-8")
        common.joinpath("act_qmaster").write_text(f"{self.network.head}\n", encoding="utf-8")
        # A client says its own name, whatever the name of its address in the network.
        client = f"pbs{self.network.number}client"
        own = socket.gethostname()
        names = {own, socket.gethostbyaddr(own)[0]}
        common.joinpath("host_aliases").write_text(" ".join((client, *names)) + "\n", encoding="utf-8")
        made = self.root / "configuration"
        made.write_text(configuration(self.root), encoding="utf-8")
        self._on_head(["spoolinit", "classic", "libspoolc", f"{common};{self.root}/qmaster", "init"])
        self._on_head(["spooldefaults.bin", "configuration", str(made)])
        resources = SHARE / "util" / "resources"
        self._on_head(["spooldefaults.bin", "complexes", str(resources / "centry")])
        self._on_head(["spooldefaults.bin", "usersets", str(resources / "usersets")])
        self._on_head(["spooldefaults.bin", "managers", "root"])

    def _configure(self) -> None:
        client = f"pbs{self.network.number}client"
        self._on_head(["qconf", "-ah", ",".join((client, *self.nodes))])
        self._on_head(["qconf", "-as", client])
        self.configure("-Msconf", scheduler(self.run(["qconf", "-ssconf"])))
        self.configure("-Mc", with_memory(self.run(["qconf", "-sc"])))
        for name in PES:
            self.configure("-Ap", parallel_environment(name))
        for node in self.nodes:
            self.configure("-Ae", execution_host(node, self.options))
        self.configure("-Ahgrp", host_group(self.nodes))
        for name, limit in QUEUES.items():
            self.configure("-Aq", queue(name, limit, self.options))

    def _all_serve(self) -> bool:
        """Each queue on each host has a load and no state of a problem."""
        lines = self.run(["qstat", "-f"]).splitlines()
        instances = [line.split() for line in lines if "@" in line]
        serving = [words for words in instances if len(words) == 5 and words[3] != "-NA-"]
        return len(serving) == len(self.nodes) * len(QUEUES)

    def _spawn(self, name: str, host: str) -> None:
        program = _MASTER if name == _MASTER else "sge_execd"
        environment = {**self._environment(), "SGE_ND": "true"}
        self._begin(name, self.network.on(host, [str(BINARIES / program)]), environment, self.root)

    def _environment(self) -> dict[str, str]:
        return {**self.env, "LD_LIBRARY_PATH": str(BINARIES), "HOME": "/", "LC_ALL": "C"}

    def _on_head(self, command: Sequence[str]) -> str:
        return self._run(self.network.on(self.network.head, command))

    def _run(self, command: Sequence[str], *, check: bool = True, user: int | None = None) -> str:
        done = run_text(
            list(command),
            env=self._environment(),
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            errors="replace",
            timeout=2 * self.patience,
            user=user,
            group=user,
        )
        with (self.root / "commands.out").open("a", encoding="utf-8") as log:
            log.write(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
        if check and done.returncode:
            complaint = (done.stderr or done.stdout).strip()
            raise ClusterError(f"{' '.join(command)}: exit status {done.returncode}: {complaint}")
        return done.stdout


_HOW_TO = """\
A throwaway Grid Engine runs: hosts {cluster.nodes} of 4 slots and 4 GB; queues all.q and short.q.
In another terminal:

    export SGE_ROOT={cluster.root} SGE_QMASTER_PORT=6444 SGE_EXECD_PORT=6445 PATH={binaries}:$PATH
    qhost
    adaptor site init --output site.yaml
    adaptor --config site.yaml run FILE

Ctrl-C here stops it and ends its jobs."""


def main() -> int:
    """A throwaway Grid Engine for a person to play with: `python -m tests.clusters.grid_engine`."""
    return play(
        unavailable(), ThrowawayGridEngine, lambda cluster: _HOW_TO.format(cluster=cluster, binaries=BINARIES)
    )


if __name__ == "__main__":
    sys.exit(main())
