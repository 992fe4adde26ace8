"""What is known of one agent, in the words common to all schedulers. Pure."""

from __future__ import annotations

from adaptor.reports import JobReport, JobState
from backends.agents.notes import Ended, Entry

PREFIX = "agent:"
_SLACK = 60.0
"""Seconds after its time limit for which an agent without an end is given the benefit of the doubt."""


def is_agent(id: str) -> bool:
    """Whether it is the id of an agent, and not one of the scheduler's."""
    return id.startswith(PREFIX)


def id_of(node: str, tag: str) -> str:
    return f"{PREFIX}{node}:{tag}"


def node_and_tag(id: str) -> tuple[str, str]:
    node, _, tag = id.removeprefix(PREFIX).partition(":")
    return node, tag


def report(entry: Entry, lost: Ended | None, now: float) -> JobReport | None:
    """None: it has not started, and perhaps never will.

    Args:
        lost: how it ended as far as is known without a note of its keeper.
    """
    ordered, end = entry.ordered, entry.end or lost or _overdue(entry, now)
    if entry.start is None and end is None:
        return None
    return JobReport(
        id=id_of(ordered.node, ordered.tag),
        tag=ordered.tag,
        state=JobState.RUNNING if end is None else end.state,
        start=None if entry.start is None else entry.start.started,
        end=None if end is None else end.ended,
        nodes=(ordered.node,),
        yielded=None if end is None else end.yielded,
        reason="" if end is None else end.reason,
    )


def _overdue(entry: Entry, now: float) -> Ended | None:
    """Nothing can be seen of a node's processes from here, but none outlives its time limit there."""
    if entry.start is None:
        return None
    limit = entry.start.started + entry.ordered.tr
    if now <= limit + entry.ordered.grace + _SLACK:
        return None
    reason = f"its end on {entry.ordered.node} was never written down"
    return Ended(ended=limit, state=JobState.NODE_FAILED, reason=reason)
