"""Known runtimes, by means instead of sums."""

from __future__ import annotations

from typing import Any

from adaptor.runtimes.known import KnownRuntimes


def known_runtimes(
    *,
    finished: int = 0,
    mean: float = 0.0,
    cut: int = 0,
    cut_after: float = 0.0,
    mean_start: float | None = None,
    **other: Any,
) -> KnownRuntimes:
    """`mean_start`: mean start of the tasks that run, which count as one; None: none runs."""
    running = mean_start is not None
    return KnownRuntimes(
        finished=finished,
        total=finished * mean,
        cut=cut,
        cut_for=cut * cut_after,
        running=int(running),
        starts=mean_start or 0.0,
        **other,
    )
