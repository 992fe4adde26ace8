"""A new bag with its tasks, as tests submit it: the questions by which a client does."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator
from typing import Any

import msgspec

from adaptor import api
from adaptor.api import BagInput


class NewBag(msgspec.Struct, frozen=True):
    bag: BagInput
    open: bool = False
    key: str = ""
    resume: bool = False
    owner: str = ""


def questions(new: NewBag, part: int = 1_000_000) -> Generator[api.Question[Any], Any, api.Submitted]:
    """Yields each question, and gets its answer; returns the last one. `part`: tasks in one message."""
    key, bag = new.key or secrets.token_hex(8), new.bag
    if known := (yield api.Open(key, bag.spec, bag.budget, owner=new.owner, file=bag.file)):
        return api.Submitted(known)
    for begin in range(0, len(bag.tasks), part):
        yield api.Add(0, key, begin, bag.tasks[begin : begin + part], bag.file)
    answer: api.Submitted = yield api.Publish(key, new.open, new.resume)
    return answer


def submitted(ask: Callable[[api.Question[Any]], Any], new: NewBag, part: int = 1_000_000) -> Any:
    """The answer; `ask` may return a Failure, which ends it."""
    steps = questions(new, part)
    answer = None
    while True:
        try:
            answer = ask(steps.send(answer))
        except StopIteration as end:
            return end.value
        if isinstance(answer, api.Failure):
            return answer
