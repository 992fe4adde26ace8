"""Marks of nodes that a local job has taken: between its prolog and its epilog nothing is lent there.

Only root's marks count, and one's own. Those of an earlier boot are void: their jobs died with it.
"""

from __future__ import annotations

import time

from adaptor.node_agent.place import Place
from adaptor.node_agent.runtime import ROOT, Runtime
from adaptor.processes.identity import boot


def mark(place: Place, node: str, job: str) -> None:
    """Raises OSError."""
    place.write(f"{_beginning(node)}{job}", {"boot": boot(), "since": time.time()}, 0o644)


def unmark(place: Place, node: str, job: str) -> None:
    """Remove the marks of a job, or of all jobs where it is empty. Raises OSError."""
    for name in _names(place, node):
        if not job or name == f"{_beginning(node)}{job}":
            place.remove(name)


def taken_by(runtime: Runtime, own: Place, node: str) -> str:
    """A job that has the node; empty: none has."""
    for job in _jobs(own, node):
        return job
    roots = runtime.place(ROOT)
    if roots is None:
        return ""
    with roots:
        return next(iter(_jobs(roots, node)), "")


def _jobs(place: Place, node: str) -> list[str]:
    jobs = []
    for name in _names(place, node):
        try:
            content = place.read(name)
        except ValueError:  # better one idle node too many than a local job that is disturbed
            content = {"boot": boot()}
        if content is not None and content.get("boot") == boot():
            jobs.append(name[len(_beginning(node)) :])
    return jobs


def _names(place: Place, node: str) -> list[str]:
    return sorted(name for name in place.names() if name.startswith(_beginning(node)))


def _beginning(node: str) -> str:
    return f"taken@{node}@"  # no name holds an '@'
