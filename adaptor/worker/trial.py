"""`python -m adaptor.worker.trial FOLDER`: what a node reports of itself for `adaptor site check --live`.

Needs the standard library only, so that it can tell what is missing. It never fails: it reports what cannot
be done. It tries `$ADAPTOR_TRIAL_ADDRESSES` one after another, and sends the time to `$ADAPTOR_TRIAL_CLOCK`.
"""

from __future__ import annotations

import json
import os
import platform
import socket
import sys
import time
from pathlib import Path
from typing import Any

from adaptor.worker.given import asked_of, bounds_of, given, machine_memory

_TIMEOUT = 5.0  # seconds for one address


def main() -> int:
    folder = Path(sys.argv[1])
    node = os.environ.get("ADAPTOR_NODE") or platform.node()
    asked, bounds = asked_of(os.environ), bounds_of(os.environ)
    found = given(asked, bounds, machine_memory())
    told: dict[str, Any] = {
        "node": node,
        "python": platform.python_version(),
        "executable": sys.executable,
        **_package(),
        "reached": [each for each in _words("ADAPTOR_TRIAL_ADDRESSES") if _connects(each)],
        # What the job has of this node, against what it asked for.
        "processors": found.processors,
        "bound": bounds.affinity is not None,
        "memory_asked": asked.memory is not None,
        "memory": machine_memory(),
        "memory_limit": bounds.memory,
        "shortfalls": found.shortfalls,
        "spool": _writes(os.environ.get("ADAPTOR_TRIAL_SPOOL", "")),
    }
    _tell_time(_words("ADAPTOR_TRIAL_CLOCK"), os.environ.get("ADAPTOR_TRIAL", ""), node)
    told["time"] = time.time()
    data = json.dumps(told).encode()
    name = f"trial-{node.replace('/', '_')}-{os.getpid()}"
    part = folder / f".{name}"
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    part.replace(folder / f"{name}.json")
    return 0


def _words(name: str) -> list[str]:
    return os.environ.get(name, "").split()


def _package() -> dict[str, str]:
    """The version of this package, and what it lacks."""
    from adaptor import __version__ as version

    try:
        import adaptor.worker.agent  # noqa: F401
    except Exception as error:
        return {"version": version, "problem": f"{type(error).__name__}: {error}"}
    return {"version": version, "problem": ""}


def _connects(address: str) -> bool:
    try:
        _connection(address).close()
    except (OSError, ValueError):
        return False
    return True


def _connection(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host.removeprefix("tcp://").strip("[]"), int(port)), timeout=_TIMEOUT)


def _tell_time(addresses: list[str], word: str, node: str) -> None:
    for address in addresses:
        try:
            with _connection(address) as connection:
                connection.sendall(f"{word} {time.time():.6f} {node}\n".encode())
                return
        except (OSError, ValueError):
            continue


def _writes(folder: str) -> str:
    """Why no file can be written in a folder; empty: one can, or there is no folder to try."""
    if not folder:
        return ""
    try:
        path = Path.home() / Path(folder).expanduser() / f".trial-{os.getpid()}"
        path.write_bytes(b"a trial")
        path.unlink()
    except OSError as error:
        return f"{error.strerror}"
    return ""


if __name__ == "__main__":
    sys.exit(main())
