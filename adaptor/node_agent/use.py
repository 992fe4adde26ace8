"""The records of one use of a donated node: who keeps it, and who asks for its end."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any, TypedDict

from adaptor.node_agent.name_checks import check_name
from adaptor.node_agent.user_folder import UserFolder
from adaptor.processes.identity import Identity
from adaptor.processes.notes import END, note_path, write_once

RECLAIMED = "reclaimed"
CANCELLED = "cancelled"


class Use(TypedDict):
    """`use@<node>`: exists as long as the use lasts."""

    tag: str
    keeper: Identity
    notes: str
    """The folder of its notes."""
    since: float


class EndRequest(TypedDict):
    """`end@<node>`: somebody asks for the end of a use."""

    tag: str
    """The use that is to end; empty: any on the node."""
    cause: str
    """RECLAIMED or CANCELLED."""
    job: str
    """The local job that needs the node; may be empty."""
    since: float
    """Epoch seconds of the request."""


_USE = {"tag": str, "keeper": dict, "notes": str, "since": float}
_IDENTITY = {"host": str, "boot": str, "pid": int, "ticks": int}
_END_REQUEST = {"tag": str, "cause": str, "job": str, "since": float}


def use_file(node: str) -> str:
    return f"use@{node}"


def end_request_file(node: str) -> str:
    return f"end@{node}"


def lock_file(node: str) -> str:
    return f"lock@{node}"


def marker(runtime: str, uid: int, node: str) -> str:
    """The value of MARKER in the environment of a user's processes on a donated node."""
    return f"{runtime}/{uid}/{node}"


def read_use(folder: UserFolder, node: str) -> Use | None:
    """Raises ValueError: the record is damaged."""
    content = folder.read(use_file(node))
    if content is None:
        return None
    if not _is_made_of(content, _USE) or not _is_made_of(content["keeper"], _IDENTITY):
        raise ValueError(f"{use_file(node)}: incomplete")
    if content["keeper"]["pid"] <= 1:
        raise ValueError(f"{use_file(node)}: names no keeper")
    check_name(content["tag"])
    use: Use = content  # type: ignore[assignment]
    return use


def read_end_request(folder: UserFolder, node: str, tag: str) -> EndRequest | None:
    """The request to end this very use."""
    try:
        content = folder.read(end_request_file(node))
    except ValueError:
        return None
    if content is None or not _is_made_of(content, _END_REQUEST):
        return None
    if content["tag"] not in ("", tag):
        return None
    request: EndRequest = content  # type: ignore[assignment]
    return request


def _is_made_of(content: dict[str, Any], kinds: dict[str, type]) -> bool:
    return all(isinstance(content.get(name), kind) for name, kind in kinds.items())


def requested_end(request: EndRequest) -> dict[str, Any]:
    """The end note of a use that ended at a request; none of its processes lives."""
    took = max(0.0, time.time() - request["since"])
    if request["cause"] == CANCELLED:
        return end("cancelled", yielded=took)
    whom = f" for local job {request['job']}" if request["job"] else ""
    return end("preempted", f"reclaimed{whom} after {took:.2f} s", yielded=took)


def end(
    state: str, reason: str = "", *, exit_code: int | None = None, yielded: float | None = None
) -> dict[str, Any]:
    return {
        "ended": time.time(),
        "state": state,
        "reason": reason,
        "exit_code": exit_code,
        "yielded": yielded,
    }


def close(folder: UserFolder, node: str, use: Use, content: dict[str, Any]) -> None:
    """In place of a dead keeper: write the end note and remove the record. Raises OSError."""
    try:
        note_end(use, content)
    finally:
        folder.remove(use_file(node))


def note_end(use: Use, content: dict[str, Any]) -> None:
    """Write the end note, unless the keeper did. Raises OSError."""
    with contextlib.suppress(FileExistsError):
        write_once(note_path(Path(use["notes"]), use["tag"], END), content)
