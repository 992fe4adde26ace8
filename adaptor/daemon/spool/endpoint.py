"""The daemon's end of a mailbox: it looks for what workers have written, and writes what they are told."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Collection

from adaptor.daemon.server import Message
from adaptor.daemon.spool.box import Correspondence
from adaptor.protocol.spool.exchange import Errand, Letter, MailRoom, MailRoomError, Outcome, Post
from adaptor.protocol.spool.flow import Verdict
from adaptor.protocol.spool.layout import Box, address_of, parse_letter
from adaptor.protocol.spool.pace import QUICKEST, SLOWEST, Pace
from adaptor.protocol.spool.seal import Seal, SealError

log = logging.getLogger(__name__)

_SLOWEST_ALONE = 5.0
"""Seconds between two looks, at most, while no worker is known."""
_SWEEP = 30.0
"""Seconds between two sweeps."""
_LONGEST_PAUSE = 30.0
"""Seconds until a mailbox that cannot be used is tried again, at most."""


class Postman:
    """One site's mailbox. Its workers are known by the names that their sealed files bear."""

    def __init__(
        self,
        room: MailRoom,
        seal: Seal,
        *,
        hear: Callable[[list[Message]], Awaitable[None]],
        pilots: Callable[[], Collection[int]],
        complain: Callable[[str], None],
    ) -> None:
        """
        Args:
            hear: takes in what workers say, in order.
            pilots: those of the site that are in the system.
            complain: is told once why the mailbox cannot be used.
        """
        self.heard_until = time.time()
        """Epoch seconds up to which all that was written is heard."""
        self._room = room
        self._seal = seal
        self._hear = hear
        self._pilots = pilots
        self._complain = complain
        self._life = secrets.token_hex(4)
        self._boxes: dict[Box, Correspondence] = {}
        self._current: dict[bytes, Correspondence] = {}
        """By worker: the newest of its boxes."""
        self._done: list[str] = []
        self._pace = Pace(_SLOWEST_ALONE)
        self._problem = ""
        self._failures = 0
        self._next_sweep = 0.0
        self._news = asyncio.Event()
        self._busy = asyncio.Lock()

    def post(self, worker: bytes, data: bytes) -> bool:
        """Whether the worker is reached by mail; then it will get this with the next errand."""
        correspondence = self._current.get(worker)
        if correspondence is None:
            return False
        if not correspondence.outgoing.add(data):
            log.warning("worker %s does not read: something for it is dropped", worker.decode())
        self._news.set()
        return True

    async def locate(self) -> str:
        """The address for the workers' access file. Raises MailRoomError."""
        async with self._busy:
            return address_of(await asyncio.to_thread(self._room.locate))

    async def run(self, may_listen: Callable[[], bool]) -> None:
        """Go to the mailbox again and again, until cancelled."""
        while True:
            try:
                if may_listen():
                    await self.exchange()
            except Exception:
                log.exception("an error of the adaptor's own at a mailbox; it is tried again")
                self._failures += 1
            await self._rest()

    async def exchange(self) -> None:
        """Bring what there is, have it heard, and leave the answers."""
        async with self._busy:
            began = time.time()
            outcome = await self._run(self._errand(collect=True))
            if outcome is None:
                return
            messages = self._take(outcome.letters)
            if messages:
                await self._hear(messages)
            if self._done or self._news.is_set():  # so that answers do not wait for the next look
                await self._run(self._errand(collect=False))
            if not outcome.more:
                self.heard_until = began
            self._set_pace(busy=bool(messages) or outcome.more)

    async def close(self) -> None:
        await asyncio.to_thread(self._room.close)

    async def _rest(self) -> None:
        """Until the next look is due, or there is something to write."""
        if self._failures:
            await asyncio.sleep(min(_LONGEST_PAUSE, 2.0 ** min(self._failures, 10)))
            return
        await asyncio.sleep(QUICKEST)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._news.wait(), self._pace.pause - QUICKEST)

    def _set_pace(self, *, busy: bool) -> None:
        self._pace.slowest = SLOWEST if self._current else _SLOWEST_ALONE
        if busy:
            self._pace.hurry()
        else:
            self._pace.tire()

    def _errand(self, *, collect: bool) -> Errand:
        self._news.clear()
        pilots = None
        if collect and time.monotonic() >= self._next_sweep:
            self._next_sweep = time.monotonic() + _SWEEP
            pilots = list(self._pilots())
            self._forget([box for box in self._boxes if box.pilot not in set(pilots)])
        posts = [post for each in self._boxes.values() if (post := each.post(self._life, self._seal))]
        return Errand(done=self._done, posts=posts, pilots=pilots, collect=collect)

    async def _run(self, errand: Errand) -> Outcome | None:
        try:
            outcome = await asyncio.to_thread(self._room.run, errand)
        except MailRoomError as error:
            self._failed(str(error))
            return None
        if self._problem:
            log.info("the mailbox can be used again")
        self._problem, self._failures = "", 0
        self._done = []
        self._posted(errand.posts, frozenset(outcome.gone))
        for remark in outcome.remarks:
            log.warning("%s", remark)
        return outcome

    def _posted(self, posts: list[Post], gone: frozenset[str]) -> None:
        by_name = {box.name: each for box, each in self._boxes.items()}
        for post in posts:
            correspondence = by_name.get(post.box)
            if correspondence is not None and post.box not in gone:
                correspondence.outgoing.written()
                if correspondence.due:
                    self._news.set()
        self._forget([box for box in self._boxes if box.name in gone])

    def _failed(self, problem: str) -> None:
        self._failures += 1
        if problem != self._problem:
            self._problem = problem
            log.warning("the mailbox cannot be used: %s", problem)
            self._complain(f"its mailbox cannot be used: {problem}")

    def _forget(self, boxes: list[Box]) -> None:
        for box in boxes:
            correspondence = self._boxes.pop(box)
            if self._current.get(correspondence.worker) is correspondence:
                del self._current[correspondence.worker]

    def _take(self, letters: list[Letter]) -> list[Message]:
        """What the letters say, worker by worker in order; they are done with the next errand."""
        messages: list[Message] = []
        for letter in letters:
            parsed = parse_letter(letter.name)
            if parsed is not None:
                messages += self._open(*parsed, letter)
        return messages

    def _open(self, box: Box, number: int, letter: Letter) -> list[Message]:
        try:
            envelope = self._seal.open(f"in/{letter.name}", letter.data)
        except SealError as error:
            log.warning("passed over and removed: %s", error)
            self._done.append(letter.name)
            return []
        correspondence = self._boxes.setdefault(box, Correspondence(box))
        verdict = correspondence.judge(number, envelope, time.monotonic())
        if verdict is Verdict.EARLY:
            return []
        self._done.append(letter.name)
        if verdict is Verdict.PAST:
            return []
        correspondence.take(number, envelope, self._life)
        if not self._is_current(correspondence):
            return []
        return [(correspondence.worker, message) for message in envelope.messages]

    def _is_current(self, correspondence: Correspondence) -> bool:
        """Whether the worker has not opened another box since; from now on it is answered here."""
        now = self._current.get(correspondence.worker)
        if now is not None and now is not correspondence:
            if now.box.token == correspondence.box.token and now.box.n > correspondence.box.n:
                return False
            self._forget([now.box])
        self._current[correspondence.worker] = correspondence
        return True
