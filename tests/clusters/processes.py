"""Find and end the processes of a throwaway cluster, and only those."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TextIO

import psutil

from tests.living import is_alive


def dying_with_us() -> list[str]:
    """The beginning of a daemon's command line: it must not outlive a test run that was killed."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL"] if setpriv else []


_PORTS = range(10_000, 32_768)
"""Linux takes the ports of connections, and those of servers that do not care, from above."""
_taken: list[TextIO] = []
"""The locked files of the ports that this process was given: no other process of the tests gets them."""


def free_ports(number: int) -> list[int]:
    """Ports of the loopback that nobody uses, and that nobody gets who does not ask for this very one.

    So a server may start there later, and again after it was away.
    """
    draw = random.SystemRandom()  # other test processes may have the same seed
    ports: list[int] = []
    with contextlib.ExitStack() as stack:
        while len(ports) < number:
            one = stack.enter_context(socket.socket())
            port = draw.choice(_PORTS)
            with contextlib.suppress(OSError):
                one.bind(("0.0.0.0", port))
                _taken.append(_locked(port))
                ports.append(port)
    return ports


def _locked(port: int) -> TextIO:
    """Until this process ends. Raises OSError: another one has it."""
    folder = Path(tempfile.gettempdir(), f"adaptor-test-ports-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    file = (folder / str(port)).open("w", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise
    return file


def step_processes(homes: Iterable[Path]) -> list[psutil.Process]:
    """The daemons of job steps (slurmstepd) that were started by a slurmd working in one of `homes`."""
    wanted = {str(home) for home in homes}
    found = []
    for process in psutil.process_iter(["name", "cwd"]):
        name, cwd = process.info["name"] or "", process.info["cwd"]
        if name.startswith("slurmstepd") and cwd in wanted:
            found.append(process)
    return found


def job_processes(conf: Path) -> list[psutil.Process]:
    """Processes that the jobs of the cluster with this slurm.conf have started, detached ones included."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            variables = process.environ()
            if variables.get("SLURM_CONF") == str(conf) and "SLURM_JOB_ID" in variables:
                found.append(process)
    return found


def kill_all(processes: Iterable[psutil.Process], patience: float = 30.0) -> None:
    """SIGKILL to these and all their descendants; returns when they are dead."""
    doomed: list[psutil.Process] = []
    for process in processes:
        with contextlib.suppress(psutil.Error):
            doomed += [process, *process.children(recursive=True)]
    for process in doomed:
        with contextlib.suppress(psutil.Error):
            process.kill()
    deadline = time.monotonic() + patience
    while any(is_alive(process) for process in doomed) and time.monotonic() < deadline:
        time.sleep(0.02)


def end_all(find: Callable[[], Iterable[psutil.Process]], patience: float = 60.0) -> None:
    """Kill what is found until nothing is: what forks or execs during one look escapes that look."""
    deadline = time.monotonic() + patience
    while (found := [process for process in find() if is_alive(process)]) and time.monotonic() < deadline:
        kill_all(found)
