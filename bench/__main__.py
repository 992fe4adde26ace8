"""`python -m bench`: all measurements, each with the target beside it. Nothing here passes or fails.

Processors differ: beside each time stands that of a fixed work in the same minute (the calibration), and the
time as it would be where the calibration takes 75 ms. The targets are for such a processor.
"""

from __future__ import annotations

from bench import (
    crowd,
    donation,
    host_estimator,
    limits,
    nodes,
    open_bags,
    page,
    planning,
    replay,
    submitting,
    throughput,
    worker_start,
)
from bench.table import show


def main() -> None:
    show("Many short tasks", throughput.rows())
    show("Submitting", submitting.rows(submitting.SIZES))
    show("Open bags", open_bags.rows())
    show("Many waiting tasks", crowd.rows())
    show("A million tasks", limits.rows(*limits.SHORTER))
    show("The live page", page.rows())
    show("A worker", worker_start.rows())
    show("One planning step with 1,000 jobs in the queue", planning.rows())
    show("The profile of 1,000 nodes", nodes.rows())
    show("One step of the host estimators", host_estimator.rows())
    show("Donation", donation.rows())
    replay.main()


if __name__ == "__main__":
    main()
