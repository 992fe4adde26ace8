"""The running daemon as its clients meet it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from adaptor import api
from adaptor.api import BagEvents, BagInput, TaskInput
from adaptor.api.question import A
from adaptor.bag_spec import BagSpec
from adaptor.daemon.client.commands import serve
from adaptor.daemon.upkeep.retention import Retention
from adaptor.errors import UsageError
from adaptor.protocol.messages import AttemptKey, Ending, Result
from tests.daemon.fake_site import FakeSite
from tests.daemon.lived_bags import hello
from tests.living import PATIENCE
from tests.new_bag import NewBag, questions

TRUE = TaskInput(["true"])
SPEC = BagSpec(name="b", cwd="/", output="/nowhere/{bag}", environment={})


class Daemon:
    """The running daemon as its clients meet it, and one worker."""

    def __init__(self, directory: Path) -> None:
        self.fake = FakeSite(directory)
        self.woken = 0

    @property
    def core(self) -> Any:
        return self.fake.state.core

    async def ask(self, question: api.Question[A]) -> A:
        """Raises UsageError, AdaptorError: the answer is a failure."""
        return api.decode_answer(question, api.encode_answer(await self.serve(question)))

    async def submit(self, new: NewBag, part: int = 1_000_000) -> api.Submitted:
        """Raises UsageError: it is refused. `part`: tasks in one message."""
        answer = await self.submission(new, part)
        if isinstance(answer, api.Failure):
            raise UsageError(answer.message)
        assert isinstance(answer, api.Submitted)
        return answer

    async def submission(self, new: NewBag, part: int = 1_000_000) -> object:
        """The answer to the last question, or a Failure."""
        steps = questions(new, part)
        answer = None
        while True:
            try:
                answer = await self.serve(steps.send(answer))
            except StopIteration as end:
                return end.value
            if isinstance(answer, api.Failure):
                return answer

    async def serve(self, question: api.Question[Any]) -> object:
        def wake() -> None:
            self.woken += 1

        running = SimpleNamespace(
            core=self.core,
            sites={"here": self.fake.state},
            notifier=SimpleNamespace(check=lambda _: None),
            retention=Retention(self.core, None),
            stalled="",
            wake_sites=wake,
        )
        return await serve(running, api.decode_question(api.encode_question(question)))  # type: ignore[arg-type]

    async def failure(self, question: api.Question[Any] | NewBag) -> api.Failure:
        new = isinstance(question, NewBag)
        answer = await (self.submission(question) if new else self.serve(question))
        assert isinstance(answer, api.Failure)
        return answer

    async def open(self, tasks: int = 0, key: str = "", after: tuple[int, ...] = ()) -> int:
        bag = BagInput(spec=msgspec.structs.replace(SPEC, after=after), tasks=[TRUE] * tasks)
        return (await self.submit(NewBag(bag, open=True, key=key))).bag

    async def append(self, bag: int, key: str, tasks: int = 1, first: int = 0) -> api.Added:
        return await self.ask(api.Add(bag, key, first, [TRUE] * tasks))

    async def events(self, bag: int, since: int = 0, wait: float = 0.0, most: int = 1000) -> BagEvents:
        (told,) = await self.ask(api.GetEvents({bag: since}, wait, most))
        return told

    async def run(self, bag: int, *tasks: int, exit_code: int = 0) -> None:
        """A worker has run these tasks."""
        broker, now = self.core.broker, self.core.now()
        for task in tasks:
            known = broker.state.bags[bag]
            known.lines.of(task).remove(task)
            broker.hello(f"w{task}", hello(processors=1), "here", now)
            worker = broker.state.workers[f"w{task}"]
            key: AttemptKey = broker.state.lease([worker], known, task, 1.0, now)
            result = Result(key=key, ending=Ending.EXITED, started=now, wall=1.0, exit_code=exit_code)
            broker.left_behind(1, "here", [result], now)
        await self.core.commit()


def play(scene: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scene(), PATIENCE))  # type: ignore[arg-type]
