"""`python -m bench`: all measurements, each with the target beside it. Nothing here passes or fails."""

from __future__ import annotations

from bench import crowd, donation, planning, replay, throughput, worker_start
from bench.table import show


def main() -> None:
    show("Many short tasks", throughput.rows())
    show("Many waiting tasks", crowd.rows())
    show("A worker", worker_start.rows())
    print("One planning step with 1,000 jobs in the queue (target: ≤ 50 ms)")
    planning.main()
    show("Donation", donation.rows())
    replay.main()


if __name__ == "__main__":
    main()
