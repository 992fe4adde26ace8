"""The command line as a function, and a fake daemon on demand: what the fixtures of this folder give."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.cli.fake_control import Answers, FakeControl


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        """The one JSON value that stdout is."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Cli = Callable[..., Outcome]
Serve = Callable[[Answers], FakeControl]
