"""`python -m adaptor.worker.trial FOLDER`: what a node tells of itself for `adaptor site check --live`.

Needs nothing but the standard library, so that it can tell what is missing. It never fails: what cannot be
done is told. `$ADAPTOR_TRIAL_ADDRESSES` are tried one after another, `$ADAPTOR_TRIAL_CLOCK` is told the time.
"""

from __future__ import annotations

import json
import os
import platform
import re
import socket
import sys
import time
from pathlib import Path
from typing import Any

_TIMEOUT = 5.0
"""Seconds for one address."""


def main() -> int:
    folder = Path(sys.argv[1])
    told: dict[str, Any] = {
        "node": os.environ.get("ADAPTOR_NODE") or platform.node(),
        "python": platform.python_version(),
        "executable": sys.executable,
        **_package(),
        "reached": [each for each in _words("ADAPTOR_TRIAL_ADDRESSES") if _connects(each)],
        "memory_limit": memory_limit(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")),
        "spool": _writes(os.environ.get("ADAPTOR_TRIAL_SPOOL", "")),
    }
    _tell_time(_words("ADAPTOR_TRIAL_CLOCK"), os.environ.get("ADAPTOR_TRIAL", ""))
    told["time"] = time.time()
    data = json.dumps(told).encode()
    part = folder / f".trial-{os.getpid()}"
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    part.replace(folder / f"trial-{os.getpid()}.json")
    return 0


def _words(name: str) -> list[str]:
    return os.environ.get(name, "").split()


def _package() -> dict[str, str]:
    """The version of this package, and what it lacks."""
    try:
        import adaptor.worker.agent  # noqa: F401
    except Exception as error:
        return {"version": _version(), "problem": f"{type(error).__name__}: {error}"}
    return {"version": _version(), "problem": ""}


def _version() -> str:
    from adaptor import __version__

    return __version__


def _connects(address: str) -> bool:
    try:
        _connection(address).close()
    except (OSError, ValueError):
        return False
    return True


def _connection(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host.removeprefix("tcp://").strip("[]"), int(port)), timeout=_TIMEOUT)


def _tell_time(addresses: list[str], word: str) -> None:
    for address in addresses:
        try:
            with _connection(address) as connection:
                connection.sendall(f"{word} {time.time():.6f}\n".encode())
                return
        except (OSError, ValueError):
            continue


def _writes(folder: str) -> str:
    """Empty: a file can be written there, or there is no such folder to try; else why not."""
    if not folder:
        return ""
    try:
        path = Path.home() / Path(folder).expanduser() / f".trial-{os.getpid()}"
        path.write_bytes(b"a trial")
        path.unlink()
    except OSError as error:
        return f"{error.strerror}"
    return ""


def memory_limit(cgroups: Path, root: Path) -> int | None:
    """Bytes that the tightest cgroup of this process allows, of either version; None: none does."""
    try:
        lines = cgroups.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    limits = []
    for line in lines:
        match = re.fullmatch(r"\d+:([^:]*):(/.*)", line)
        if match is None or match[1] not in ("", "memory"):
            continue
        place, name = (root, "memory.max") if not match[1] else (root / "memory", "memory.limit_in_bytes")
        folder = place / match[2].lstrip("/")
        limits += [_limit(each / name) for each in (folder, *folder.parents) if each.is_relative_to(place)]
    return min((limit for limit in limits if limit is not None), default=None)


def _limit(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return None
    # Version 1 says "no limit" by a number near 2**63.
    return int(text) if text.isdigit() and int(text) < 2**60 else None


if __name__ == "__main__":
    sys.exit(main())
