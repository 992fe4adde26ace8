"""The notes on agents, in a folder that the site's machine and its nodes share; what they say of an agent."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TypeVar

import msgspec

from adaptor.file_format import newer
from adaptor.processes.notes import END, FORMAT, JOB, START, note_path, numbered
from adaptor.protocol.decoding import decoded
from adaptor.reports import JobReport, JobState
from adaptor_donation_agents.records import Order
from backends.base import SchedulerError
from backends.donation import agent_id
from backends.machines.base import Machine

log = logging.getLogger(__name__)

_LARGEST = 2**20
_SLACK = 60.0
"""Seconds after its time limit for which an agent without an end is given the benefit of the doubt."""


class Ordered(msgspec.Struct, frozen=True):
    """The parts of an order that a report needs."""

    tag: str
    node: str
    tr: int
    grace: float


class AgentStart(msgspec.Struct, frozen=True):
    """Claim of a node."""

    started: float


class AgentEnd(msgspec.Struct, frozen=True, kw_only=True):
    ended: float
    state: JobState
    reason: str = ""
    yielded: float | None = None


class AgentNotes(msgspec.Struct, frozen=True):
    ordered: Ordered
    start: AgentStart | None
    end: AgentEnd | None


_Note = TypeVar("_Note", Ordered, AgentStart, AgentEnd)


class Notes:
    """Notes never change, so each is read once. Every method may raise SchedulerError."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        """`folder`: made (0700) where it is missing; relative to the home directory on a distant machine."""
        self._machine = machine
        self._named = folder
        self._folder: Path | None = None
        self._content: dict[str, bytes] = {}
        self._entries: dict[str, AgentNotes] = {}  # by tag; those that have ended

    @property
    def folder(self) -> Path:
        if self._folder is None:
            self._folder = self._machine.private_folder(self._named)
        return self._folder

    def order(self, order: Order) -> Path:
        """Write an order down; its path."""
        path = note_path(self.folder, order["tag"], JOB)
        self._machine.write_private(path, msgspec.json.encode(numbered(order)))
        return path

    def entries(self) -> list[AgentNotes]:
        """Entries of all agents, in order of their notes' names."""
        names = self._machine.names(self.folder)
        new = [name for name in names if name.endswith(_ENDINGS) and name not in self._content]
        if new:
            self._content.update(self._machine.read_files(self.folder, new, _LARGEST))
        tags = [name[: -len(_JOB)] for name in names if name.endswith(_JOB)]
        return [entry for tag in tags if (entry := self._entry(tag)) is not None]

    def forget(self, tags: list[str]) -> None:
        names = [note_path(self.folder, tag, kind).name for tag in tags for kind in (JOB, START, END)]
        self._machine.remove([self.folder / name for name in names])
        for name in names:
            self._content.pop(name, None)
        for tag in tags:
            self._entries.pop(tag, None)

    def _entry(self, tag: str) -> AgentNotes | None:
        if tag in self._entries:
            return self._entries[tag]
        ordered = self._note(tag, JOB, Ordered)
        if ordered is None:
            return None
        entry = AgentNotes(ordered, self._note(tag, START, AgentStart), self._note(tag, END, AgentEnd))
        if entry.end is not None:
            self._entries[tag] = entry
        return entry

    def _note(self, tag: str, kind: str, form: type[_Note]) -> _Note | None:
        name = note_path(self.folder, tag, kind).name
        data = self._content.get(name)
        if not data:
            return None
        if problem := newer(data, FORMAT):
            raise SchedulerError(f"{self.folder}/{name}: {problem}")
        try:
            return decoded(msgspec.json.Decoder(form).decode, data)
        except msgspec.DecodeError as error:
            log.warning("%s/%s: a damaged note was left out: %s", self.folder, name, error)
            self._content[name] = b""
            return None


_JOB = f".{JOB}.json"
_ENDINGS = (_JOB, f".{START}.json", f".{END}.json")


def report(entry: AgentNotes, lost: AgentEnd | None, now: float) -> JobReport | None:
    """The report on an agent; None: it has not started, and perhaps never will.

    `lost`: how it ended, by what is known without a note of its keeper.
    """
    ordered, end = entry.ordered, entry.end or lost or _overdue(entry, now)
    if entry.start is None and end is None:
        return None
    return JobReport(
        id=agent_id(ordered.node, ordered.tag),
        tag=ordered.tag,
        state=JobState.RUNNING if end is None else end.state,
        start=None if entry.start is None else entry.start.started,
        end=None if end is None else end.ended,
        nodes=(ordered.node,),
        yielded=None if end is None else end.yielded,
        reason="" if end is None else end.reason,
    )


def _overdue(entry: AgentNotes, now: float) -> AgentEnd | None:
    """Nothing can be seen of a node's processes from here, but none outlives its time limit there."""
    if entry.start is None:
        return None
    limit = entry.start.started + entry.ordered.tr
    if now <= limit + entry.ordered.grace + _SLACK:
        return None
    reason = f"its end on {entry.ordered.node} was never written down"
    return AgentEnd(ended=limit, state=JobState.NODE_FAILED, reason=reason)
