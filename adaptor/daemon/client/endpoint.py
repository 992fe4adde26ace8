"""Where the command line is answered; what takes long keeps nobody else waiting."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from adaptor import api
from adaptor.daemon.client.commands import serve, takes_time
from adaptor.daemon.client.running import RunningDaemon
from adaptor.daemon.ports.server import Message
from adaptor.errors import AdaptorError, JournalError

log = logging.getLogger(__name__)


class ClientEndpoint:
    def __init__(
        self,
        running: RunningDaemon,
        stall: Callable[[JournalError], None],
        send: Callable[[bytes, bytes], Awaitable[None]],
    ) -> None:
        self._running = running
        self._stall = stall
        self._send = send
        self._background: set[asyncio.Task[None]] = set()

    async def receive(self, batch: list[Message]) -> None:
        for identity, data in batch:
            if takes_time(data):
                task = asyncio.create_task(self._answer(identity, data))
                self._background.add(task)
                task.add_done_callback(self._background.discard)
            else:
                await self._answer(identity, data)

    async def _answer(self, identity: bytes, data: bytes) -> None:
        """Any failure is an answer too."""
        try:
            answer: object = await serve(self._running, data)
        except JournalError as error:
            self._stall(error)
            answer = api.Failure(str(error))
        except AdaptorError as error:
            answer = api.Failure(str(error))
        except Exception as error:
            log.exception("a question could not be served")
            answer = api.Failure(f"internal error in the daemon: {error!r}; see daemon.log")
        await self._send(identity, api.encode_answer(answer))
