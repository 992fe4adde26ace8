"""Marks of nodes that a local job has taken: no use starts between the job's prolog and its epilog.

Only the marks of root and of the user count. Marks of an earlier boot are void: their jobs died with it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence

from adaptor.processes.identity import boot
from adaptor_donation_agents.folders import (
    ROOT,
    RuntimeFolder,
    UnsafeError,
    UserFolder,
    folder_of_root,
    open_runtime,
    own_folder,
)


def mark(folder: UserFolder, node: str, job: str) -> None:
    """Raises OSError."""
    folder.write(f"{_beginning(node)}{job}", {"boot": boot(), "since": time.time()}, 0o644)


def unmark(folder: UserFolder, node: str, job: str) -> None:
    """Remove the mark of a job, or all marks if `job` is empty. Raises OSError."""
    for name in _names(folder, node):
        if not job or name == f"{_beginning(node)}{job}":
            folder.remove(name)


def taken_by(runtime: RuntimeFolder, own: UserFolder, node: str) -> str:
    """A local job that has the node; empty: none."""
    for job in _jobs(own, node):
        return job
    roots = runtime.user_folder(ROOT)
    if roots is None:
        return ""
    with roots:
        return next(iter(_jobs(roots, node)), "")


def take_node(path: str, node: str, job: str, users: Sequence[int]) -> list[str]:
    """Mark the node as taken by a local job. Returns what went wrong, in sentences.

    `users`: who may use the node; root makes their folders in a runtime folder of its own.
    """
    try:
        runtime, folder = folder_of_root(path) if os.geteuid() == ROOT else own_folder(path)
        with runtime, folder:
            if os.geteuid() == ROOT and runtime.is_roots:
                for uid in users:
                    runtime.make_user_folder(uid)
            mark(folder, node, job)
    except (UnsafeError, OSError) as error:
        return [f"{node} could not be marked as taken by job {job}: {error}"]
    return []


def offer_node(path: str, node: str, job: str) -> None:
    """Remove this user's mark of a job, or all its marks if `job` is empty.

    Raises UnsafeError, OSError: the marks cannot be read or removed.
    """
    with contextlib.suppress(FileNotFoundError), open_runtime(path) as runtime:
        folder = runtime.user_folder(os.geteuid())
        if folder is not None:
            with folder:
                unmark(folder, node, job)


def _jobs(folder: UserFolder, node: str) -> list[str]:
    jobs = []
    for name in _names(folder, node):
        try:
            content = folder.read(name)
        except ValueError:  # a damaged mark counts: an idle node does less harm than a disturbed local job
            content = {"boot": boot()}
        if content is not None and content.get("boot") == boot():
            jobs.append(name[len(_beginning(node)) :])
    return jobs


def _names(folder: UserFolder, node: str) -> list[str]:
    return sorted(name for name in folder.names() if name.startswith(_beginning(node)))


def _beginning(node: str) -> str:
    return f"taken@{node}@"  # no name holds an '@'
