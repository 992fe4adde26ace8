"""Events of bags: notices written in the same transaction, their texts, and clients that wait for events."""

from __future__ import annotations

import asyncio
import math
import sqlite3
from collections.abc import Callable, Iterator, Mapping

from adaptor import api
from adaptor.api import BagView
from adaptor.bag_spec import BagSpec
from adaptor.config.schema import NoticeEvent, NotifyConfig
from adaptor.journal.bag_rows import spec_of
from adaptor.journal.notice_rows import HOOK, Notice, add_notice, may_end_again
from adaptor.journal.views import tasks
from adaptor.scheduling.changes import Changes
from adaptor.units import counted, format_duration


class NotableEvents:
    def __init__(self, notify: NotifyConfig | None = None, *, hook: bool = False) -> None:
        """`hook`: whether a program is run when a bag ends."""
        self._notify = notify or NotifyConfig()
        self._hook = hook

    def writer(self, changes: Changes, now: float) -> Callable[[sqlite3.Connection], None] | None:
        """A function that notes messages about the changes, called in their transaction; None: none."""
        ended = [bag for bag, tally in changes.tallies.items() if tally.ended]
        failing = [bag for bag, tally in changes.tallies.items() if tally.failed]
        retried = [bag for bag, change in changes.by_user.items() if change == "retried"]
        if not ended and not failing and not retried:
            return None

        def write(db: sqlite3.Connection) -> None:
            for bag in retried:
                may_end_again(db, bag)
            for bag in failing:
                self.note(db, bag, "failure", "", now)
            for bag in ended:
                self.note(db, bag, "end", "", now)

        return write

    def note(self, db: sqlite3.Connection, bag: int, event: NoticeEvent, text: str, now: float) -> None:
        """Add a notice for each channel that listens to an event; the caller has begun a transaction."""
        for channel in self._listeners(spec_of(db, bag), event):
            add_notice(db, Notice(bag, event, channel, text), now)

    def _listeners(self, spec: BagSpec, event: NoticeEvent) -> Iterator[str]:
        for name in spec.notify or self._notify.default:
            channel = self._notify.channel(name)
            if channel is not None and event in channel.events:
                yield name
        if self._hook and event == "end":
            yield HOOK


_STATES = {"done": "is done", "failed": "has ended, with failed tasks", "cancelled": "was cancelled"}


def title_and_body(db: sqlite3.Connection, bag: BagView, notice: Notice) -> tuple[str, str]:
    """The message about an event."""
    subject = f"bag {bag.id} ({bag.name})"
    if notice.event == "pause":
        return f"{subject} is paused", f"{notice.text}\n{_counts(bag)}"
    if notice.event == "failure":
        first = ""
        for task in tasks(db, api.GetTasks(bag.id, ["failed"], limit=1)):
            how = (
                f"exit code {task.exit_code}" if task.exit_code is not None else task.error or "it was ended"
            )
            see = f"see adaptor results {task.bag} --task {task.task} --stderr"
            first = f"Task {task.task} failed: {how}; {see}\n"
        return f"{subject}: a task failed", f"{first}{_counts(bag)}\nadaptor results {bag.id} --failed"
    took = f" It took {format_duration(bag.ended - bag.submitted)}." if bag.ended is not None else ""
    return f"{subject} {_STATES.get(bag.state, 'has ended')}", f"{_counts(bag)}{took}\nOutput: {bag.output}"


def _counts(bag: BagView) -> str:
    others = [
        f"{count} {word}"
        for count, word in ((bag.failed, "failed"), (bag.cancelled, "cancelled"), (bag.waiting, "waiting"))
        if count
    ]
    return f"{bag.done} of {counted(bag.tasks, 'task')} done{''.join(f', {each}' for each in others)}."


def variables(bag: BagView) -> dict[str, str]:
    """Environment variables of a hook. Times are epoch seconds."""
    return {
        "ADAPTOR_BAG": str(bag.id),
        "ADAPTOR_BAG_NAME": bag.name,
        "ADAPTOR_BAG_STATE": bag.state,
        "ADAPTOR_BAG_TASKS": str(bag.tasks),
        "ADAPTOR_BAG_DONE": str(bag.done),
        "ADAPTOR_BAG_FAILED": str(bag.failed),
        "ADAPTOR_BAG_CANCELLED": str(bag.cancelled),
        "ADAPTOR_BAG_OUTPUT": bag.output,
        "ADAPTOR_BAG_SUBMITTED": f"{bag.submitted:.0f}",
        "ADAPTOR_BAG_ENDED": f"{bag.ended or 0:.0f}",
    }


_WITHOUT_ROOM = 1.0  # seconds


class Listeners:
    """Clients that wait for events, by bag. Belongs to one event loop."""

    def __init__(self) -> None:
        self._waiting: dict[int, dict[asyncio.Future[bool], int]] = {}
        """Last event that each client knows, by bag."""
        self.room: float = math.inf
        """Number of clients that may wait for long: connections are left for those with other questions."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    async def wait(self, since: Mapping[int, int], seconds: float) -> bool:
        """Wait until a bag has an event after this one; False: none had in that time.

        Those who find no room wait a second at most.
        """
        loop = asyncio.get_running_loop()
        heard: asyncio.Future[bool] = loop.create_future()
        for bag, known in since.items():
            self._waiting.setdefault(bag, {})[heard] = known
        longest = seconds if self._count < self.room else min(seconds, _WITHOUT_ROOM)
        self._count += 1
        # `asyncio.wait` takes the loop another turn.
        too_long = loop.call_later(longest, _settle, heard, False)
        try:
            return await heard
        finally:
            too_long.cancel()
            self._count -= 1
            for bag in since:
                those = self._waiting.get(bag)
                if those is not None:
                    those.pop(heard, None)
                    if not those:
                        del self._waiting[bag]

    def tell(self, last: Mapping[int, int]) -> None:
        """Wake those who wait for these bags; `last`: by bag, the number of its last event."""
        if not self._waiting:
            return
        for bag, number in last.items():
            for heard, known in self._waiting.get(bag, {}).items():
                if number > known:
                    _settle(heard, True)

    def tell_all(self) -> None:
        """Wake all, after which they look for themselves."""
        for those in self._waiting.values():
            for heard in those:
                _settle(heard, True)


def _settle(heard: asyncio.Future[bool], told: bool) -> None:
    if not heard.done():
        heard.set_result(told)
