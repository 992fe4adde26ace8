"""What is known of a node's lease: who keeps it, and who has called for its end."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, TypedDict

from adaptor.node_agent.names import check_name
from adaptor.node_agent.place import Place
from adaptor.processes.identity import Identity
from adaptor.processes.notes import END, note_path, write_once

RECLAIMED = "reclaimed"
CANCELLED = "cancelled"


class Lease(TypedDict):
    """`lease@<node>`: there as long as the lease."""

    tag: str
    keeper: Identity
    notes: str
    """The folder of its notes."""
    since: float


class Call(TypedDict):
    """`call@<node>`: somebody wants the node."""

    tag: str
    """Whose lease is to end; empty: whichever it is."""
    cause: str
    """RECLAIMED or CANCELLED."""
    job: str
    """For which local job; may be empty."""
    since: float
    """When it was called for, epoch seconds."""


_LEASE = {"tag": str, "keeper": dict, "notes": str, "since": float}
_IDENTITY = {"host": str, "boot": str, "pid": int, "ticks": int}
_CALL = {"tag": str, "cause": str, "job": str, "since": float}


def lease_file(node: str) -> str:
    return f"lease@{node}"


def call_file(node: str) -> str:
    return f"call@{node}"


def lock_file(node: str) -> str:
    return f"lock@{node}"


def marker(runtime: str, uid: int, node: str) -> str:
    """In the environment of all processes that a user has on a lent node."""
    return f"{runtime}/{uid}/{node}"


def read_lease(place: Place, node: str) -> Lease | None:
    """Raises ValueError: the record is damaged."""
    content = place.read(lease_file(node))
    if content is None:
        return None
    if not _is_made_of(content, _LEASE) or not _is_made_of(content["keeper"], _IDENTITY):
        raise ValueError(f"{lease_file(node)}: something is missing in it")
    if content["keeper"]["pid"] <= 1:
        raise ValueError(f"{lease_file(node)}: does not say who keeps the lease")
    check_name(content["tag"])
    lease: Lease = content  # type: ignore[assignment]
    return lease


def read_call(place: Place, node: str, tag: str) -> Call | None:
    """The call for the end of this very lease."""
    try:
        content = place.read(call_file(node))
    except ValueError:
        return None
    if content is None or not _is_made_of(content, _CALL):
        return None
    if content["tag"] not in ("", tag):
        return None
    call: Call = content  # type: ignore[assignment]
    return call


def _is_made_of(content: dict[str, Any], kinds: dict[str, type]) -> bool:
    return all(isinstance(content.get(name), kind) for name, kind in kinds.items())


def end_of_call(call: Call) -> dict[str, Any]:
    """The content of the end note of a lease that was called back, now that nothing of it lives."""
    took = max(0.0, time.time() - call["since"])
    if call["cause"] == CANCELLED:
        return end("cancelled", yielded=took)
    whom = f" for local job {call['job']}" if call["job"] else ""
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


def close(place: Place, node: str, lease: Lease, content: dict[str, Any]) -> None:
    """For a keeper that could not do it: write the end down and forget the lease. Raises OSError."""
    try:
        write_once(note_path(Path(lease["notes"]), lease["tag"], END), content)
    except FileExistsError:
        pass  # the keeper had come so far
    finally:
        place.remove(lease_file(node))
