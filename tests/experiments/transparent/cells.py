"""Cells of the experiment by hand."""

from __future__ import annotations

from adaptor_experiments.bootstrap import Interval
from adaptor_experiments.transparent.cells import Cell, Share
from adaptor_experiments.transparent.design import DONATED, STRATEGIES


def share(**more) -> Share:
    plain = {"held": 0.0, "used": 10.0, "lost": 1.0, "reclaims": 2.0, "local_jobs": 9.0, "later": 0.0}
    even = Interval(1.0, 1.0, 1.0)
    return Share(
        **{
            "turnaround": even,
            "cost": even,
            "delay": 0.0,
            "slower": 1.0,
            "slower_per_processor": 1.0,
            **plain,
            **more,
        }
    )


def cell(
    explicit, *, offered=0.5, tasks=10_000, mean=100, samples=3, cheaper=(1, 1, 1), **strategies
) -> Cell:
    by = {name: share() for name in STRATEGIES} | strategies
    return Cell(
        trace="sdsc-sp2", load=1.0, offered=offered, tasks=tasks, mean=mean, samples=samples, by=by,
        explicit=dict.fromkeys(DONATED, Interval(*explicit)), mixed=Interval(1.0, 1.0, 1.0),
        cheaper=Interval(*cheaper),
    )  # fmt: skip
