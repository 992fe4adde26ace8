"""Claim a node for a lease: one at a time for each user, and none where a local job is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from adaptor.node_agent.lease import (
    Lease,
    call_file,
    close,
    end,
    lease_file,
    lock_file,
    marker,
    read_lease,
)
from adaptor.node_agent.marks import taken_by
from adaptor.node_agent.order import Order
from adaptor.node_agent.place import Place
from adaptor.node_agent.runtime import Runtime, UnsafeError, own_place
from adaptor.processes.identity import own_identity
from adaptor.processes.notes import END, START, note_path, write_once
from adaptor.processes.trees import end_trees


class RefusedError(Exception):
    """The node cannot be lent now; the message says why."""


class Claim(NamedTuple):
    """A node that is ours until the process ends or `place` is left."""

    place: Place
    lease: Lease
    marker: str


def claim(order: Order, notes: Path, started: float) -> Claim:
    """Write the lease down, on the node and in the shared folder `notes`.

    Raises:
        RefusedError: the node is lent already, a local job has it, or its runtime folder is not safe.
        OSError: something cannot be written; nothing is claimed then.
    """
    node = order["node"]
    try:
        runtime, place = own_place(order["runtime"])
    except UnsafeError as error:
        raise RefusedError(str(error)) from error
    with runtime:
        if place.lock(lock_file(node)) is None:
            raise RefusedError(f"{node} is lent already")
        sign = marker(order["runtime"], os.geteuid(), node)
        _clear_away(place, node, sign)
        lease = Lease(tag=order["tag"], keeper=own_identity(), notes=str(notes), since=started)
        # First the record, then the look at the marks. A prolog marks first and looks for records then,
        # so that one of both sees the other.
        place.write(lease_file(node), dict(lease))
        try:
            _refuse_taken(runtime, place, node)
            _write_start(notes, order["tag"], lease)
        except (RefusedError, OSError):
            place.remove(lease_file(node))
            raise
    return Claim(place, lease, sign)


def _refuse_taken(runtime: Runtime, place: Place, node: str) -> None:
    job = taken_by(runtime, place, node)
    if job:
        raise RefusedError(
            f"{node} is taken by local job {job}; if that has ended without its epilog: "
            f"adaptor reclaim {node} --offer --job {job}"
        )


def _write_start(notes: Path, tag: str, lease: Lease) -> None:
    if note_path(notes, tag, END).exists():
        raise RefusedError(f"{tag} was given up before it began")
    try:
        write_once(note_path(notes, tag, START), {"started": lease["since"], "keeper": lease["keeper"]})
    except FileExistsError as error:
        raise RefusedError(f"{tag} was started already") from error


def _clear_away(place: Place, node: str, sign: str) -> None:
    """What an earlier keeper has left that was killed."""
    place.remove(call_file(node))
    try:
        lease = read_lease(place, node)
    except ValueError:
        lease = None
    if lease is None and not place.has(lease_file(node)):
        return
    end_trees(sign)
    if lease is not None:
        close(place, node, lease, end("node_failed", "its keeper was killed"))
