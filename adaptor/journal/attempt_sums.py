"""What attempts held of their pilots, in sum."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

import msgspec

from adaptor.bag_spec import BagSpec


def processor_seconds(
    db: sqlite3.Connection, where: str, arguments: Sequence[object]
) -> Iterator[tuple[int, str, float]]:
    """By bag and outcome: the processor-seconds of attempts that were started and have ended.

    `where`: an SQL condition of our own making on `attempt` and `pilot`.
    """
    rows = db.execute(
        "SELECT attempt.bag, bag.spec, attempt.outcome,"  # noqa: S608
        " SUM(COALESCE(attempt.wall, MAX(0, attempt.ended - attempt.started)))"
        " FROM attempt JOIN pilot ON pilot.id = attempt.pilot JOIN bag ON bag.id = attempt.bag"
        f" WHERE attempt.started IS NOT NULL AND attempt.outcome IS NOT NULL AND {where}"
        " GROUP BY attempt.bag, attempt.outcome",
        arguments,
    )
    for bag, spec, outcome, seconds in rows:
        yield bag, outcome, (seconds or 0.0) * msgspec.msgpack.decode(spec, type=BagSpec).cpus
