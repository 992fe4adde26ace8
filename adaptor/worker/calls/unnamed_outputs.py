"""Running calls whose output files have no names of their own yet: they get them when a call takes longer."""

from __future__ import annotations

from adaptor.worker.slots import HeldTask

AFTER = 1.0
"""Seconds after its begin at which a call's output files get its names: people look at what runs for long."""


class UnnamedOutputs:
    """Times are monotonic seconds, passed in."""

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[float, HeldTask, tuple[str, str]]] = {}
        """By process id, the longest running one first: when its output gets its names, and those of now."""

    def began(self, pid: int, held: HeldTask, names: tuple[str, str], now: float) -> None:
        """A call has begun in a process. `names`: of the files that take its output."""
        self._waiting[pid] = (now + AFTER, held, names)

    def ended(self, pid: int) -> bool:
        """The call has ended. Returns whether its output has no names of its own."""
        return self._waiting.pop(pid, None) is not None

    def due(self) -> float:
        """When the next one gets its names."""
        return next((due for due, _, _ in self._waiting.values()), float("inf"))

    def take_due(self, now: float) -> list[tuple[HeldTask, tuple[str, str]]]:
        """Those that get their names now, with the present ones."""
        late = [(pid, held, names) for pid, (due, held, names) in self._waiting.items() if due <= now]
        for pid, _, _ in late:
            del self._waiting[pid]
        return [(held, names) for _, held, names in late]
