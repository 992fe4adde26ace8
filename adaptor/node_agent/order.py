"""The order of the daemon to a keeper: a file, because all users see a command's arguments."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from adaptor.node_agent.name_checks import check_name
from adaptor.processes.notes import read_note

REFUSED = 3
"""Exit code of a keeper that has not claimed its node: nothing runs there, and nothing will."""


class Order(TypedDict):
    """`<tag>.job.json` in a folder that the daemon's machine and the node share."""

    tag: str
    node: str
    p: int
    tr: int
    """Seconds."""
    grace: float
    """Seconds between SIGTERM and SIGKILL when the use ends."""
    worker: list[str]
    environment: dict[str, str]
    directory: str
    """The pilot's own folder."""
    runtime: str
    """The runtime folder of this node, for `adaptor reclaim`."""


_KINDS: dict[str, type | tuple[type, ...]] = {
    "tag": str,
    "node": str,
    "p": int,
    "tr": int,
    "grace": (int, float),
    "worker": list,
    "environment": dict,
    "directory": str,
    "runtime": str,
}


def read_order(path: Path) -> Order:
    """Raises OSError, or ValueError: the file holds no order."""
    content = read_note(path)
    given = content if isinstance(content, dict) else {}
    wrong = [name for name, kind in _KINDS.items() if not isinstance(given.get(name), kind)]
    if wrong:
        raise ValueError(f"{path}: no order: {', '.join(sorted(wrong))} missing, or of another type")
    order: Order = content
    words = [*order["worker"], *order["environment"].values()]
    if not all(isinstance(word, str) for word in words):
        raise ValueError(f"{path}: no order: words and variables of the worker must be strings")
    check_name(order["node"])
    check_name(order["tag"])
    return order
