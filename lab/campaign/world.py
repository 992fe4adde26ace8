"""Parts of a scene, found from outside: by /proc, files, commands."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import msgspec
import psutil

from adaptor.processes.commands import isolated_command, module_command
from adaptor.protocol.access import AccessError, read_access, worker_access, write_access
from lab.campaign.effects import Effects
from lab.campaign.local_jobs import LocalJobs
from lab.campaign.schedulers.cluster import Cluster
from lab.campaign.small_disk import SmallDisk
from tests.clusters.proxy import Proxy
from tests.clusters.sshd import ThrowawaySshd
from tests.clusters.throwaway import ClusterError
from tests.e2e.lab import Lab
from tests.living import is_alive

BAG = 1


class World:
    """Parts that a scene lacks are None, and the faults that need them find no victim."""

    def __init__(self, lab: Lab, sites: list[Cluster]) -> None:
        self.lab = lab
        self.sites = sites
        self.effects = Effects(lab.root / "effects")
        self.local_jobs: LocalJobs | None = None
        self.sshd: ThrowawaySshd | None = None
        self.proxy: Proxy | None = None
        self.proxied_site: str | None = None
        """The site whose workers are sent through the proxy by their access file."""
        self.spool: Path | None = None
        self.state_disk: SmallDisk | None = None
        self.output_disk: SmallDisk | None = None
        self.spool_disk: SmallDisk | None = None
        self.rewound: list[tuple[float, float]] = []
        """From when to when a controller forgot what it had known."""
        self.claimed: set[str] = set()
        """Names of present victims."""
        self.chores: list[Callable[[], object]] = []
        """Repairs that are still to be done; tried until they succeed."""
        self.killed: set[tuple[int, int]] = set()
        self.cuts: list[tuple[float, float]] = []
        """Times at which a disk forgot the last that the daemon had written, and at which the daemon was to
        run again."""
        self.daemon_runs = False
        """Whether it should."""
        self.troubles: list[str] = []
        self._seen: int | None = None

    def tend(self) -> None:
        """Do what is due again and again: chores, a daemon that should run, the way through the proxy."""
        chores, self.chores = self.chores, []
        for chore in chores:
            try:
                chore()
            except (ClusterError, subprocess.TimeoutExpired):
                self.chores.append(chore)
        if self.daemon_runs:
            self._keep_daemon()
        if self.proxied_site and self.proxy:
            self._lead_through(self.proxy, self.lab.state / worker_access(self.proxied_site))

    def daemon(self) -> psutil.Process | None:
        wanted = ("--state", str(self.lab.state))
        for process in psutil.process_iter(["cmdline"]):
            command = process.info["cmdline"] or []
            if runs(command, "adaptor.daemon") and wanted in pairwise(command):
                return process
        return None

    def workers(self) -> list[psutil.Process]:
        return self._modules("adaptor.worker")

    def launchers(self) -> list[psutil.Process]:
        """Slurm's `srun`, one beside the script of a pilot for each of its workers."""
        return [process for process in self.ours() if Path((words(process) or [""])[0]).name == "srun"]

    def keepers(self) -> list[psutil.Process]:
        return self._modules("adaptor_donation_agents.keeper")

    def tasks(self) -> list[psutil.Process]:
        """The processes that lead one execution each."""
        return [
            process
            for process in self.ours()
            if str(self.effects.folder / "task.sh") in words(process) and variable(process, "ADAPTOR_TASK_ID")
        ]

    def ours(self) -> list[psutil.Process]:
        """All that belongs to the scene by its folder, arguments or variables, the daemon included."""
        root = str(self.lab.root)
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if not is_alive(process):
                    continue
                variables = Path(f"/proc/{process.pid}/environ").read_bytes().decode(errors="replace")
                if (
                    root in variables
                    or any(root in word for word in process.cmdline())
                    or _below(process, root)
                ):
                    found.append(process)
        return sorted(found, key=lambda process: process.pid)

    def set_budget(self, room: float) -> float:
        """A budget with `room` credits above what is used and reserved; the amount that was set."""
        (line,) = self.lab.ask("credits", str(BAG))["bags"]
        amount = float(line["used"]) + float(line["reserved"]) + room
        self.lab.run("change", str(BAG), "--budget", f"{amount:.6f}")
        return amount

    def _modules(self, name: str) -> list[psutil.Process]:
        """The processes in which Python runs a module."""
        return [process for process in self.ours() if runs(words(process), name)]

    def keep_evidence(self, folder: Path) -> None:
        """The state directory, with the journal and all logs, outlives its file system."""
        shutil.copytree(self.lab.state, folder, dirs_exist_ok=True, symlinks=True, ignore=_no_sockets)

    def _keep_daemon(self) -> None:
        daemon = self.daemon()
        if daemon is not None:
            self._seen = daemon.pid
            return
        if self._seen is not None:
            self.troubles.append(f"the daemon (pid {self._seen}) ended by itself")
        self._seen = None
        # Where the disk is full it cannot start, and says so; then it is tried again.
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                self.lab.command("daemon", "start"),
                env=self.lab.environment,
                cwd=self.lab.work,
                capture_output=True,
                timeout=90,
                check=False,
            )

    def forget_daemon(self) -> None:
        """Note that the daemon is ended on purpose, and stays so until `daemon_runs` is set again."""
        self.daemon_runs, self._seen = False, None

    def _lead_through(self, proxy: Proxy, path: Path) -> None:
        address = f"tcp://{proxy.address}:{proxy.port}"
        with contextlib.suppress(AccessError, OSError):
            access = read_access(path)
            if access.addresses != (address,):
                write_access(path, msgspec.structs.replace(access, addresses=(address,)))


def words(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def runs(command: list[str], module: str) -> bool:
    """Whether a command line starts this module, in any of the ways in which the adaptor starts Python."""
    return any(
        tuple(command[: len(form)]) == form
        for made in (module_command, isolated_command)
        for form in [made("".join(command[:1]), module)]
    )


def variable(process: psutil.Process, name: str) -> str:
    """Empty where the process has none of this name, or is gone."""
    try:
        return str(process.environ().get(name, ""))
    except psutil.Error:
        return ""


def _below(process: psutil.Process, root: str) -> bool:
    return process.cwd().startswith(root)


def _no_sockets(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if Path(folder, name).is_socket() or Path(folder, name).is_fifo()]
