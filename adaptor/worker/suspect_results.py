"""Failures wait a moment for their cause to show before they are believed.

A scheduler that ends a pilot signals the tasks together with the worker. A task may then be gone
before the worker has seen its own SIGTERM; that must not pass for a failure of the task.
"""

from __future__ import annotations

import msgspec

from adaptor.protocol.messages import AttemptKey, Ending, Result

MOMENT = 1.0
"""Seconds for which a failure is held back; on a busy node the signals come that far apart."""


class Doubts:
    """Failures that may yet turn out to be the end of the pilot. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._held: dict[AttemptKey, tuple[float, Result]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: AttemptKey) -> bool:
        return key in self._held

    def keys(self) -> list[AttemptKey]:
        return list(self._held)

    def add(self, result: Result, now: float) -> None:
        self._held[result.key] = (now + MOMENT, result)

    def due(self) -> float:
        """When the oldest may be believed."""
        return next((until for until, _ in self._held.values()), float("inf"))

    def believed(self, now: float) -> list[Result]:
        """Take out those that were failures of their own."""
        results = [result for until, result in self._held.values() if until <= now]
        for result in results:
            del self._held[result.key]
        return results

    def explained(self) -> list[Result]:
        """Take out all: the pilot is being ended, and so were they."""
        results = [as_ended(result) for _, result in self._held.values()]
        self._held.clear()
        return results


def doubtful(result: Result) -> bool:
    """Whether it is a failure that the end of the pilot could have caused."""
    failed = result.ending is Ending.EXITED and result.exit_code != 0
    return failed or result.ending is Ending.SIGNALLED


def as_ended(result: Result) -> Result:
    return msgspec.structs.replace(result, ending=Ending.ENDED)
