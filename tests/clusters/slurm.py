"""A real Slurm with many nodes on this one host, in a temporary folder, gone when it is stopped.

As a program (`python -m tests.clusters.slurm`) it serves a person to play with.
"""

from __future__ import annotations

import argparse
import getpass
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from tests.clusters import slurm_accounting
from tests.clusters.processes import end_all, free_ports, job_processes, kill_all, step_processes
from tests.clusters.slurm_accounting import SEARCH_PATH
from tests.clusters.slurm_conf import MIXED, ClusterOptions, Ports, slurm_conf
from tests.clusters.throwaway import ClusterError, Throwaway, play

_DAEMONS = ("munged", "slurmctld", "slurmd")
_COMMANDS = ("sbatch", "squeue", "sinfo", "scancel", "scontrol", "srun")
_UP = frozenset({"idle", "mixed", "allocated", "planned", "completing", "reserved"})


def available() -> str | None:
    """None where a throwaway Slurm can run here, else why not."""
    missing = [name for name in (*_DAEMONS, *_COMMANDS) if not shutil.which(name, path=SEARCH_PATH)]
    if missing:
        return (
            f"no real Slurm here: {', '.join(missing)} not found "
            "(Debian: apt-get install slurmctld slurmd slurm-client munge)"
        )
    return None


class ThrowawaySlurm(Throwaway):
    """A throwaway cluster of Slurm. Run by root it runs jobs of any user; run by another user it runs those
    of that user.

    Raises:
        ClusterError: the cluster did not come up within `patience` seconds.
    """

    LOGS = ("*.log", "*.out")

    def __init__(self, options: ClusterOptions | None = None, *, patience: float = 90.0) -> None:
        # Short, because the path of a unix socket may have 108 characters at most.
        super().__init__(Path(tempfile.mkdtemp(prefix="slurm-")), patience)
        self.options = options or ClusterOptions()

    @property
    def conf(self) -> Path:
        return self.root / "slurm.conf"

    @property
    def env(self) -> dict[str, str]:
        """Variables of a client of this cluster."""
        return {"SLURM_CONF": str(self.conf)}

    def _come_up(self) -> None:
        self._write_files()
        self._start_munge()
        if self.options.accounting:
            self._start_accounting()
        self.start_controller()
        for name in self.options.node_names:
            self.start_node(name)
        self.wait_ready()

    def run(
        self,
        command: Sequence[str],
        *,
        check: bool = True,
        timeout: float = 30.0,
        env: Mapping[str, str] | None = None,
    ) -> str:
        """Standard output of a command on this cluster; its standard error is part of any failure."""
        done = subprocess.run(
            list(command),
            env={**self._environment(), **(env or {})},
            cwd=self.root,
            capture_output=True,
            text=True,
            errors="replace",  # jobs may be called anything
            timeout=timeout,
            check=False,
        )
        if check and done.returncode:
            raise ClusterError(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def occupy(self, nodes: int, minutes: int, script: str = "sleep 3600", name: str = "local") -> str:
        """Submit a local job that wants so many whole nodes; its number."""
        size = [f"-N{nodes}", "--exclusive", f"-t{minutes}"]
        rest = ["-o/dev/null", f"--job-name={name}", "--wrap", script]
        return self.run(["sbatch", "--parsable", "-p", "batch", *size, *rest]).strip()

    def last_job(self) -> int:
        """The number of the last job that was submitted."""
        said = self.run(["scontrol", "show", "config"])
        line = next(line for line in said.splitlines() if line.startswith("NEXT_JOB_ID"))
        return int(line.split("=")[1]) - 1

    def put_srun_first(self, folder: Path) -> None:
        """Put an `srun` first in PATH that finds the cluster in jobs, too: some clients drop $SLURM_CONF."""
        folder.mkdir()
        program = folder / "srun"
        program.write_text(f'#!/bin/sh\nSLURM_CONF={self.conf} exec {shutil.which("srun")} "$@"\n')
        program.chmod(0o755)
        os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"

    def wait_ready(self) -> None:
        """Until every node is in service."""
        self._until(self._all_nodes_up, "the nodes did not come up")

    def clear(self) -> None:
        """End all our jobs and bring all nodes back into service, with the daemons that were ended."""
        if "slurmctld" not in self._daemons:
            self.start_controller()
        for node in self.options.node_names:
            if f"slurmd.{node}" not in self._daemons:
                self.start_node(node)
        self._until(self._jobs_are_cancelled, "slurmctld cancels no jobs")
        self._until(lambda: not self.run(["squeue", "-h"]), "the jobs do not end")
        self._until(self._all_nodes_resumed, "the nodes did not come up")

    def start_controller(self) -> None:
        self._spawn("slurmctld", ["slurmctld", "-D", "-f", str(self.conf)])
        self._until(self._controller_answers, "slurmctld does not answer")

    def stop_controller(self, *, kill: bool = False) -> None:
        """An orderly stop, or with `kill` SIGKILL; jobs go on running."""
        self._end("slurmctld", kill=kill)

    def start_node(self, name: str) -> None:
        self._spawn(f"slurmd.{name}", ["slurmd", "-D", "-N", name, "-f", str(self.conf)])

    def stop_node(self, name: str) -> None:
        """End a node's daemon and all that runs on the node, as a power cut does."""
        self._end(f"slurmd.{name}", kill=True)
        end_all(lambda: step_processes([self.home(f"slurmd.{name}")]))

    def kill_node_daemon(self, name: str) -> None:
        """`kill -9` of a node's daemon; the job steps on the node go on."""
        self._end(f"slurmd.{name}", kill=True)

    def stop(self) -> None:
        """End every process of the cluster, its jobs included, and remove its folder."""
        daemons, self._daemons = list(self._daemons.values()), {}
        kill_all([psutil.Process(daemon.pid) for daemon in daemons if daemon.poll() is None])
        for daemon in daemons:
            daemon.wait()
        homes = [self.home(f"slurmd.{name}") for name in self.options.node_names]
        end_all(lambda: [*step_processes(homes), *job_processes(self.conf)])
        shutil.rmtree(self.root, ignore_errors=True)

    def _environment(self) -> dict[str, str]:
        kept = {key: os.environ[key] for key in ("HOME", "USER", "LOGNAME", "LANG") if key in os.environ}
        found = {"MYSQL_UNIX_PORT": str(slurm_accounting.database_socket(self.root))}
        return {**kept, **found, "PATH": SEARCH_PATH, **self.env}

    def home(self, name: str) -> Path:
        """A daemon's working directory; the daemons of the job steps inherit it and are found by it."""
        return self.root / name

    def _write_files(self) -> None:
        if self.options.job_submit:
            (self.root / "job_submit.lua").write_text(self.options.job_submit, encoding="utf-8")
        host, user = socket.gethostname().split(".")[0], getpass.getuser()
        controller, accounting, *nodes = free_ports(self.options.nodes + 2)
        ports = Ports(controller, accounting, tuple(nodes))
        text = slurm_conf(self.options, self.root, host, user, ports)
        self.conf.write_text(text, encoding="utf-8")
        if self.options.gres:
            (self.root / "gres.conf").write_text("\n".join([*self.options.gres, ""]), encoding="utf-8")
        if self.options.accounting:
            slurm_accounting.write_slurmdbd_conf(self.root, accounting)
        (self.root / "state").mkdir()
        key = self.root / "munge.key"
        key.touch(0o600)
        key.write_bytes(os.urandom(128))

    def _start_munge(self) -> None:
        names = {
            "key-file": "munge.key",
            "pid-file": "munge.pid",
            "log-file": "munge.log",
            "seed-file": "munge.seed",
        }
        files = [f"--{option}={self.root / name}" for option, name in names.items()]
        self._spawn(
            "munged", ["munged", "--foreground", "--force", f"--socket={self.root}/munge.socket", *files]
        )
        self._until((self.root / "munge.socket").exists, "munged did not open its socket")

    def _start_accounting(self) -> None:
        self.run(slurm_accounting.install_database(self.root), timeout=self.patience)
        self._spawn("mariadbd", slurm_accounting.database(self.root))
        socket = slurm_accounting.database_socket(self.root)
        ping = ["mariadb-admin", "--no-defaults", f"--socket={socket}", "ping"]
        self._until(lambda: "alive" in self.run(ping, check=False), "MariaDB does not answer")
        self.start_accounting()
        cluster = ["sacctmgr", "-i", "add", "cluster", "throwaway"]
        self._until(lambda: bool(self.run(cluster)), "slurmdbd takes no cluster")
        for words in self.options.accounts:
            self.run(["sacctmgr", "-i", *words.split()])

    def start_accounting(self) -> None:
        self._spawn("slurmdbd", ["slurmdbd", "-D"])
        self._until(lambda: bool(self.run(["sacctmgr", "-n", "show", "qos"])), "slurmdbd does not answer")

    def stop_accounting(self) -> None:
        """SIGKILL; slurmctld keeps what it has to say."""
        self._end("slurmdbd", kill=True)

    def _spawn(self, name: str, command: list[str]) -> None:
        home = self.home(name)
        home.mkdir(exist_ok=True)
        program = shutil.which(command[0], path=SEARCH_PATH) or command[0]
        self._begin(name, [program, *command[1:]], self._environment(), home)

    def _end(self, name: str, *, kill: bool) -> None:
        process = self._daemons.pop(name, None)
        if process is None:
            return
        if not kill:
            process.terminate()
            try:
                process.wait(self.patience)
            except subprocess.TimeoutExpired:
                kill = True
        if kill:
            process.kill()
            process.wait()

    def _controller_answers(self) -> bool:
        return "UP" in self.run(["scontrol", "ping"], check=False)

    def _jobs_are_cancelled(self) -> bool:
        self.run(["scancel", f"--user={getpass.getuser()}"])
        return True

    def _all_nodes_resumed(self) -> bool:
        for node, state in self._node_states():
            if state not in _UP:
                self.run(["scontrol", "update", f"nodename={node}", "state=resume"], check=False)
        return self._all_nodes_up()

    def _all_nodes_up(self) -> bool:
        up = {node for node, state in self._node_states() if state in _UP}
        return up == set(self.options.node_names)

    def _node_states(self) -> set[tuple[str, str]]:
        rows = self.run(["sinfo", "-h", "-N", "-o", "%N %T"], check=False).splitlines()
        return {(node, state) for node, _, state in (row.partition(" ") for row in rows if row)}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.clusters.slurm", description=__doc__)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--cpus", type=int, default=4, help="processors of a node (default 4)")
    parser.add_argument("--mixed", action="store_true", help="unequal nodes, with memory counted and GPUs")
    chosen = parser.parse_args(arguments)
    equal = ClusterOptions(nodes=chosen.nodes, cpus=chosen.cpus)
    sizes = "4 to 8" if chosen.mixed else chosen.cpus

    def how_to(cluster: ThrowawaySlurm) -> str:
        return _HOW_TO.format(conf=cluster.conf, nodes=cluster.options.nodes, cpus=sizes)

    return play(available(), lambda: ThrowawaySlurm(MIXED if chosen.mixed else equal), how_to)


_HOW_TO = """\
A throwaway Slurm runs: {nodes} nodes of {cpus} processors; partitions batch, short and scavenger.
In another terminal:

    export SLURM_CONF={conf}
    sinfo
    adaptor site init --output site.yaml
    adaptor --config site.yaml run FILE

Ctrl-C here stops it and ends its jobs."""

if __name__ == "__main__":
    sys.exit(main())
