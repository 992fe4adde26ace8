"""What the memory control group of this process says, in either version. Standard library only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_OF_PROCESS = Path("/proc/self/cgroup")
_ROOT = Path("/sys/fs/cgroup")


def memory_limit(of_process: Path = _OF_PROCESS, root: Path = _ROOT) -> int | None:
    """Bytes that the tightest memory group of this process allows; None: none does."""
    limits = []
    for version, top, group in _memory_groups(of_process, root):
        name = "memory.max" if version == 2 else "memory.limit_in_bytes"
        folders = [folder for folder in (group, *group.parents) if folder.is_relative_to(top)]
        limits += [_limit(folder / name) for folder in folders]
    return min((limit for limit in limits if limit is not None), default=None)


def oom_kill_counter(of_process: Path = _OF_PROCESS, root: Path = _ROOT) -> Path | None:
    """The file that counts kills for lack of memory in this process's group; None: there is none."""
    for version, _, group in _memory_groups(of_process, root):
        file = group / ("memory.events" if version == 2 else "memory.oom_control")
        if file.is_file():
            return file
    return None


def _memory_groups(of_process: Path, root: Path) -> Iterator[tuple[int, Path, Path]]:
    """Version, top of the hierarchy and folder of each group that may limit memory (cgroups(7))."""
    try:
        lines = of_process.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        match = re.fullmatch(r"(\d+):([^:]*):/(.*)", line)
        if match is None:
            continue
        if match[1] == "0":
            yield 2, root, root / match[3]
        elif "memory" in match[2].split(","):
            yield 1, root / "memory", root / "memory" / match[3]


def _limit(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    # Version 1 says "no limit" by a number near 2**63.
    return int(text) if text.isdigit() and int(text) < 2**60 else None
