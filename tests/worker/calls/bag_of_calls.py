"""A bag of calls at a real worker, for tests."""

from __future__ import annotations

import contextlib
import pickle
import sys
from itertools import count
from typing import Any

import cloudpickle

from adaptor.bag_spec import Interpreter
from adaptor.protocol.messages import VALUE, Ending, Lease, Result
from tests.worker.fake_daemon import Harness, key

VERSION = ".".join(map(str, sys.version_info[:2]))
HERE = Interpreter((sys.executable,), VERSION, tuple(sys.path))


class Calls:
    """A bag of calls at a worker."""

    def __init__(self, harness: Harness, bag: int, **change: Any) -> None:
        """`change`: of the bag's context."""
        self.harness, self.bag, self._change = harness, bag, change
        self.output = harness.folder / f"out-{bag}"

    def lease(
        self, *calls: tuple[Any, ...] | bytes, interpreter: Interpreter = HERE, first: int = 1, **more: Any
    ) -> None:
        """Each is a function with its arguments, or a payload; the first of them is this task.

        `more`: of their leases.
        """
        leases = [
            Lease(
                key(number, bag=self.bag),
                "a call",
                0.0,
                call=each if isinstance(each, bytes) else b"v" + cloudpickle.dumps((each[0], each[1:], {})),
                **more,
            )
            for number, each in enumerate(calls, start=first)
        ]
        context = self.harness.bag(self.bag, interpreter=interpreter, output=str(self.output), **self._change)
        self.harness.lease(*leases, bags=[context])

    def result(self, number: int) -> Result:
        return self.harness.result(key(number, bag=self.bag))

    def value(self, number: int) -> Any:
        result = self.result(number)
        assert (result.ending, result.exit_code) == (Ending.EXITED, 0), result
        assert result.answer[:1] == VALUE
        return pickle.loads(result.answer[1:])

    def texts(self) -> dict[str, str]:
        """The outputs that have names, by these."""
        texts = {}
        for path in self.output.glob("[!.]*"):
            with contextlib.suppress(FileNotFoundError):  # it had its name for a while, and is empty
                texts[path.name] = path.read_text()
        return texts


bags = count(1)
"""Numbers that no other bag has."""
