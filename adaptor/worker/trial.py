"""`python -m adaptor.worker.trial TASKS [ADDRESS…]`: a task of the bag of `adaptor site check --live`.

It prints what a task finds on its node, as JSON, once all tasks of the bag have begun: so each has a worker
of its own. They run in one folder. `ADDRESS`: of a daemon; those that answer are among the findings.
"""

from __future__ import annotations

import json
import os
import platform
import socket
import sys
import time
from pathlib import Path

from adaptor import __version__
from adaptor.protocol.access import host_and_port
from adaptor.worker.given import affinity, machine_memory
from adaptor.worker.memory import memory_limit

_CONNECTING = 5.0  # seconds for one address
_OTHERS = 45.0  # seconds for the tasks on other nodes to begin


def main() -> None:
    tasks, addresses = int(sys.argv[1]), sys.argv[2:]
    Path(f"begun-{os.environ['ADAPTOR_TASK_ID']}").touch()
    told = {
        "python": platform.python_version(),
        "executable": sys.executable,
        "version": __version__,
        "bound": affinity() == int(os.environ["ADAPTOR_CPUS"]),
        "memory": machine_memory(),
        "memory_limit": memory_limit(),
        "reached": [address for address in addresses if _connects(address)],
    }
    until = time.monotonic() + _OTHERS
    while len(list(Path().glob("begun-*"))) < tasks and time.monotonic() < until:
        time.sleep(0.2)
    print(json.dumps({**told, "time": time.time()}))


def _connects(address: str) -> bool:
    try:
        socket.create_connection(host_and_port(address), timeout=_CONNECTING).close()
    except (OSError, ValueError):
        return False
    return True


if __name__ == "__main__":
    main()
