"""What the daemon's side tells a keeper: a file, because everybody sees a command's arguments."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from adaptor.node_agent.names import check_name
from adaptor.processes.notes import read_note

REFUSED = 3
"""Exit code of a keeper that did not lend its node: nothing runs there, and nothing will."""


class Order(TypedDict):
    """`<tag>.job.json` in a folder that the daemon's side and the node share."""

    tag: str
    node: str
    p: int
    tr: int
    """Seconds."""
    grace: float
    """Seconds between SIGTERM and SIGKILL when the lease ends."""
    worker: list[str]
    environment: dict[str, str]
    directory: str
    """The pilot's own folder."""
    runtime: str
    """Where this node keeps what `adaptor reclaim` needs."""


def read_order(path: Path) -> Order:
    """Raises OSError, or ValueError: it is no order."""
    content = read_note(path)
    missing = Order.__annotations__.keys() - (content.keys() if isinstance(content, dict) else set())
    if missing:
        raise ValueError(f"{path}: no order: {', '.join(sorted(missing))} missing")
    order: Order = content
    check_name(order["node"])
    check_name(order["tag"])
    return order
