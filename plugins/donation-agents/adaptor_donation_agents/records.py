"""Records of a use of a donated node: its order, its record on the node, requests for its end.

Every name in them becomes part of a file's name.
"""

from __future__ import annotations

import contextlib
import re
import time
from pathlib import Path
from typing import Any, TypedDict, get_origin, get_type_hints, is_typeddict

from adaptor.processes.identity import Identity
from adaptor.processes.notes import END, note_path, read_note, write_once
from adaptor_donation_agents.folders import UserFolder

REFUSED = 3  # exit code of a keeper that has not claimed its node: nothing runs there, and nothing will
NOTHING = "not in use"  # what a reclaim says of a node without a use
RECLAIMED = "reclaimed"
CANCELLED = "cancelled"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,200}")
_JOB = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._\[\]-]{0,200}")


def check_name(name: str) -> str:
    """The same name. Raises ValueError: it is not made of letters, digits, `.`, `_` and `-`."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a name of letters, digits, '.', '_' and '-'")
    return name


def check_job(job: str) -> str:
    """The same id of a job; parts of a job array are written `17[3]` by some. Raises ValueError."""
    if not _JOB.fullmatch(job):
        raise ValueError(f"{job!r} is not the id of a job")
    return job


class Order(TypedDict):
    """`<tag>.job.json` in a folder that the daemon's machine and the node share."""

    tag: str
    node: str
    p: int
    tr: int  # seconds
    grace: float  # seconds between SIGTERM and SIGKILL when the use ends
    worker: list[str]
    environment: dict[str, str]
    directory: str  # the pilot's own folder
    runtime: str  # the runtime folder of this node, for `adaptor reclaim`


def read_order(path: Path) -> Order:
    """Raises OSError, or ValueError: the file holds no order."""
    content = read_note(path)
    wrong = _wrong(content, Order)
    if wrong:
        raise ValueError(f"{path}: no order: {', '.join(wrong)} missing, or of another type")
    order: Order = content
    words = [*order["worker"], *order["environment"].values()]
    if not all(isinstance(word, str) for word in words):
        raise ValueError(f"{path}: no order: words and variables of the worker must be strings")
    check_name(order["node"])
    check_name(order["tag"])
    return order


class UseRecord(TypedDict):
    """`use@<node>`: exists as long as the use lasts."""

    tag: str
    keeper: Identity
    notes: str  # the folder of its notes
    since: float


class EndRequest(TypedDict):
    """`end@<node>`: a request to end a use."""

    tag: str  # the use that is to end; empty: any on the node
    cause: str  # RECLAIMED or CANCELLED
    job: str  # the local job that needs the node; may be empty
    since: float  # epoch seconds of the request


def use_file(node: str) -> str:
    return f"use@{node}"


def end_request_file(node: str) -> str:
    return f"end@{node}"


def lock_file(node: str) -> str:
    return f"lock@{node}"


def marker(runtime: str, uid: int, node: str) -> str:
    """The value of MARKER in the environment of a user's processes on a donated node."""
    return f"{runtime}/{uid}/{node}"


def read_use(folder: UserFolder, node: str) -> UseRecord | None:
    """Raises ValueError: the record is damaged."""
    content = folder.read(use_file(node))
    if content is None:
        return None
    if _wrong(content, UseRecord) or _wrong(content["keeper"], Identity):
        raise ValueError(f"{use_file(node)}: incomplete")
    if content["keeper"]["pid"] <= 1:
        raise ValueError(f"{use_file(node)}: names no agent")
    check_name(content["tag"])
    use: UseRecord = content  # type: ignore[assignment]
    return use


def read_end_request(folder: UserFolder, node: str, tag: str) -> EndRequest | None:
    """The request to end this very use."""
    try:
        content = folder.read(end_request_file(node))
    except ValueError:
        return None
    if _wrong(content, EndRequest) or content is None or content["tag"] not in ("", tag):
        return None
    request: EndRequest = content  # type: ignore[assignment]
    return request


def _wrong(content: object, form: type) -> list[str]:
    """Fields of a TypedDict that are missing in what was read, or of another type."""
    given = content if isinstance(content, dict) else {}
    hints = get_type_hints(form)
    return sorted(name for name, hint in hints.items() if not isinstance(given.get(name), _kind(hint)))


def _kind(hint: Any) -> type | tuple[type, ...]:
    """A value of this type as JSON gives it; it writes whole numbers without a point."""
    if hint is float:
        return (int, float)
    return dict if is_typeddict(hint) else get_origin(hint) or hint


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


def close(folder: UserFolder, node: str, use: UseRecord, content: dict[str, Any]) -> None:
    """In place of a dead keeper: write the end note and remove the record. Raises OSError."""
    try:
        note_end(use, content)
    finally:
        folder.remove(use_file(node))


def note_end(use: UseRecord, content: dict[str, Any]) -> None:
    """Write the end note, unless the keeper did. Raises OSError."""
    with contextlib.suppress(FileExistsError):
        write_once(note_path(Path(use["notes"]), use["tag"], END), content)
