"""A local job takes a node, and leaves it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from adaptor.node_agent.marks import mark, unmark
from adaptor.node_agent.place import Place
from adaptor.node_agent.runtime import ROOT, Runtime, UnsafeError, open_runtime, own_place, place_of_root


def take(path: str, node: str, job: str, lenders: Sequence[int]) -> list[str]:
    """Mark the node as taken by a local job; what went wrong, in sentences.

    Args:
        lenders: who lends nodes; root makes their folders in a runtime folder of its own.
    """
    try:
        runtime, place = _place(path)
        with runtime, place:
            if os.geteuid() == ROOT and runtime.is_roots:
                for uid in lenders:
                    runtime.make_place(uid)
            mark(place, node, job)
    except (UnsafeError, OSError) as error:
        return [f"{node} could not be marked as taken by job {job}: {error}"]
    return []


def offer(path: str, node: str, job: str) -> None:
    """Remove the mark of a job, or all that we have made where `job` is empty.

    Raises:
        UnsafeError, OSError: they cannot be looked at or removed.
    """
    with contextlib.suppress(FileNotFoundError), open_runtime(path) as runtime:
        place = runtime.place(os.geteuid())
        if place is not None:
            with place:
                unmark(place, node, job)


def _place(path: str) -> tuple[Runtime, Place]:
    return place_of_root(path) if os.geteuid() == ROOT else own_place(path)
