"""Claim a donated node: one use at a time for each user, and none while a local job has the node."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from adaptor.node_agent.marks import taken_by
from adaptor.node_agent.order import Order
from adaptor.node_agent.runtime_folder import RuntimeFolder, UnsafeError, own_folder
from adaptor.node_agent.use import (
    Use,
    close,
    end,
    end_request_file,
    lock_file,
    marker,
    read_use,
    use_file,
)
from adaptor.node_agent.user_folder import UserFolder
from adaptor.processes.identity import own_identity
from adaptor.processes.notes import END, START, note_path, write_once
from adaptor.processes.trees import end_trees


class RefusedError(Exception):
    """The node cannot be used now; the message says why."""


class Claim(NamedTuple):
    """A node that this process may use until it ends or leaves `folder`."""

    folder: UserFolder
    use: Use
    marker: str


def claim(order: Order, notes: Path, started: float) -> Claim:
    """Record the use, on the node and in the shared folder `notes`.

    Raises:
        RefusedError: the node is in use already, a local job has it, or its runtime folder is not safe.
        OSError: a record cannot be written; the node is not claimed then.
    """
    node = order["node"]
    try:
        runtime, folder = own_folder(order["runtime"])
    except UnsafeError as error:
        raise RefusedError(str(error)) from error
    with runtime:
        if folder.lock(lock_file(node)) is None:
            raise RefusedError(f"{node} is in use already")
        sign = marker(order["runtime"], os.geteuid(), node)
        _clean_up(folder, node, sign)
        use = Use(tag=order["tag"], keeper=own_identity(), notes=str(notes), since=started)
        # First write the record, then look at the marks. A prolog marks first and then looks for records,
        # so one of the two sees the other.
        folder.write(use_file(node), dict(use))
        try:
            _refuse_taken(runtime, folder, node)
            _write_start(notes, order["tag"], use)
        except (RefusedError, OSError):
            folder.remove(use_file(node))
            raise
    return Claim(folder, use, sign)


def _refuse_taken(runtime: RuntimeFolder, folder: UserFolder, node: str) -> None:
    job = taken_by(runtime, folder, node)
    if job:
        raise RefusedError(
            f"{node} is taken by local job {job}; if that job ended without its epilog, run: "
            f"adaptor reclaim {node} --offer --job {job}"
        )


def _write_start(notes: Path, tag: str, use: Use) -> None:
    if note_path(notes, tag, END).exists():
        raise RefusedError(f"{tag} was withdrawn before it began")
    try:
        write_once(note_path(notes, tag, START), {"started": use["since"], "keeper": use["keeper"]})
    except FileExistsError as error:
        raise RefusedError(f"{tag} was started already") from error


def _clean_up(folder: UserFolder, node: str, sign: str) -> None:
    """Remove what an earlier keeper left that was killed."""
    folder.remove(end_request_file(node))
    try:
        use = read_use(folder, node)
    except ValueError:
        use = None
    if use is None and not folder.has(use_file(node)):
        return
    end_trees(sign)
    if use is not None:
        close(folder, node, use, end("node_failed", "its keeper was killed"))
