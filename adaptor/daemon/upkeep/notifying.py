"""Send due notices and run the hook, each at most once, in the background."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from adaptor.api import BagView
from adaptor.config.schema import MAIL, ChannelConfig, HooksConfig, NotifyConfig
from adaptor.daemon.core import Core
from adaptor.daemon.evidence import last_line
from adaptor.daemon.notices import title_and_body, variables
from adaptor.errors import AdaptorError, JournalError, UsageError
from adaptor.journal import notice_rows
from adaptor.journal.views import bags
from adaptor.model import TaskState
from adaptor.notify.channels import mail, read_urls, require_apprise, sendmail
from adaptor.private_files import write_private
from adaptor.processes.commands import module_command
from adaptor.scheduling.bag import Bag
from adaptor.units import format_duration

log = logging.getLogger(__name__)

POLL = 2.0  # seconds between two looks for messages that are due
SENDING = 90.0  # seconds within which a message must be sent, its three tries included


class Notifier:
    def __init__(self, core: Core, notify: NotifyConfig, hooks: HooksConfig) -> None:
        """Raises UsageError: channels are configured, and the library that sends is not installed."""
        if notify.channels:
            require_apprise()
        self._core, self._notify, self._hooks = core, notify, hooks
        self._paused: set[int] = set()  # bags whose pause was noted
        self.busy = False  # whether a message is due or under way

    def check(self, names: tuple[str, ...]) -> None:
        """Raises UsageError: a new bag names a channel that is not there, or a file that cannot be read."""
        for name in names:
            channel = self._notify.channel(name)
            if channel is MAIL:
                sendmail()
            elif channel is not None and name not in self._notify.channels:
                require_apprise()
                _urls(channel)
            elif channel is None:
                known = ", ".join(self._notify.channels) or "none"
                raise UsageError(f"there is no channel {name!r} for --notify; the configuration has: {known}")

    async def run(self, may_write: Callable[[], bool], stall: Callable[[JournalError], None]) -> None:
        """Send what is due, until cancelled."""
        begun = False
        while True:
            try:
                if may_write():
                    if not begun:
                        self._tell_interrupted()
                        begun = True
                    self._note_pauses()
                    await self._send_all()
            except JournalError as error:
                stall(error)
            except Exception:
                log.exception("internal error while sending notifications")
            await asyncio.sleep(POLL)

    def _tell_interrupted(self) -> None:
        for left in self._core.directory.glob("message.*.json"):
            left.unlink(missing_ok=True)
        with self._core.journal.transaction() as db:
            for notice in notice_rows.interrupted_notices(db):
                log.warning("%s: the daemon ended while this was sent; it is not sent again", _named(notice))

    def _note_pauses(self) -> None:
        """Note bags that have paused, or for which no request is made any more."""
        core = self._core
        self._paused &= core.broker.state.bags.keys()
        for bag in list(core.broker.state.bags.values()):
            if bag.id in self._paused or not bag.count(TaskState.WAITING):
                continue
            text = self._why_paused(bag)
            if text:
                with core.journal.transaction() as db:
                    core.notable.note(db, bag.id, "pause", text, core.now())
                self._paused.add(bag.id)

    def _why_paused(self, bag: Bag) -> str:
        """Why the daemon has paused a bag; empty: it has not, or the user has paused it."""
        if bag.guard.paused:
            return bag.guard.paused if bag.guard.itself else ""
        return self._core.why_paused(bag.id, bag.spec.sites)

    async def _send_all(self) -> None:
        journal = self._core.journal
        due = journal.read(notice_rows.due_notices)
        self.busy = bool(due)
        for notice in due:
            found = journal.read(bags, f"{notice.bag}-{notice.bag}")
            if not found:
                continue
            with journal.transaction() as db:
                notice_rows.mark_notice(db, notice, "sending")
            state, why = await self._send(found[0], notice)
            with journal.transaction() as db:
                notice_rows.mark_notice(db, notice, state)
            if why:
                text = f"{_named(notice)}: {why}"
                log.warning("%s", text)
                journal.explain(self._core.now(), "", "problem", text, bags=[notice.bag])
        self.busy = False

    async def _send(self, bag: BagView, notice: notice_rows.Notice) -> tuple[notice_rows.NoticeState, str]:
        """Send one message; return its state, and why it was not sent."""
        try:
            if notice.channel == notice_rows.HOOK:
                environment = {**os.environ, **variables(bag)}
                await run_program(self._hooks.on_bag_end, environment, float(self._hooks.timeout))
            else:
                title, body = self._core.journal.read(title_and_body, bag, notice)
                channel = self._notify.channel(notice.channel)
                if channel is None:
                    self.check((notice.channel,))
                elif channel is MAIL:
                    await run_program(sendmail(), os.environ, SENDING, mail(title, body))
                else:
                    await self._post(_urls(channel), title, body)
        except JournalError:
            raise
        except (AdaptorError, OSError) as error:
            return "failed", str(error)
        return "sent", ""

    async def _post(self, urls: list[str], title: str, body: str) -> None:
        """Send a message by a process of its own, which finds the URLs in a private file and removes it."""
        path = self._core.directory / f"message.{os.getpid()}.json"
        write_private(path, msgspec.json.encode({"urls": urls, "title": title, "body": body}))
        try:
            await run_program(
                module_command(sys.executable, "adaptor.notify", str(path)), os.environ, SENDING
            )
        except AdaptorError:
            path.unlink(missing_ok=True)
            raise


def _urls(channel: ChannelConfig) -> list[str]:
    """URLs of a channel. Raises UsageError: its file cannot be read."""
    return [channel.url] if channel.url is not None else read_urls(Path(channel.file or "").expanduser())


def _named(notice: notice_rows.Notice) -> str:
    """Name of a message in the log, without the secrets of its address."""
    if notice.channel == notice_rows.HOOK:
        return f"bag {notice.bag}: the hook on_bag_end"
    return f"bag {notice.bag}: the notification of its {notice.event} to {notice.channel}"


_GRACE = 2.0  # seconds from SIGTERM to SIGKILL
_WORDS = 2000  # bytes of its output that are looked at, the last ones


async def run_program(
    command: Sequence[str], environment: Mapping[str, str], limit: float, content: bytes = b""
) -> None:
    """Run a program in a session of its own, with `content` as its input, for `limit` seconds at most.

    Raises AdaptorError: it cannot be started, fails, or was ended with all that it had started.
    """
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as output:
        given.write(content)
        given.seek(0)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                env=dict(environment),
                stdin=given,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except OSError as error:
            raise AdaptorError(f"{command[0]} cannot be run: {error.strerror}") from error
        try:
            status = await asyncio.wait_for(process.wait(), limit)
        except (TimeoutError, asyncio.TimeoutError) as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                await asyncio.wait_for(process.wait(), _GRACE)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            raise AdaptorError(f"it took longer than {format_duration(limit)} and was ended") from error
        if status:
            output.seek(max(0, output.seek(0, os.SEEK_END) - _WORDS))
            said = last_line(output.read().decode(errors="replace")) or "no message"
            raise AdaptorError(f"it ended with status {status}: {said}")
