"""Outcomes as an experiment would leave them, with turnarounds as a test wants them."""

from __future__ import annotations

from adaptor_experiments.derose.sample import Outcome


def outcomes(
    turnarounds: dict[str, dict[int, list[int]]], held: dict[str, int] | None = None
) -> list[Outcome]:
    """By heuristic and mean runtime, the turnaround in each sample."""
    return [
        Outcome(
            trace="", sample=sample, tasks=100, mean=mean, heterogeneity=1, max_pending=1,
            heuristic=heuristic, submitted=0, turnaround=turnaround, bound=100, requests=4, withdrawn=1,
            reshaped=2, held=(held or {}).get(heuristic, 100), work=80, local_wait=20 * (1 + sample),
            decisions=2 + 2 * sample, planning=0.012 * (1 + sample), slowdown=3.0, slowdown_without=1.5,
            slowdown_per_processor=1.8, slowdown_per_processor_without=1.2,
        )
        for heuristic, by_mean in turnarounds.items()
        for mean, every in by_mean.items()
        for sample, turnaround in enumerate(every)
    ]  # fmt: skip
