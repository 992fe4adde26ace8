"""What a worker got less of, in words."""

from __future__ import annotations

from adaptor.shortfalls import Shortfall, gave_less


def test_all_that_is_less_is_named() -> None:
    processors = Shortfall("processors", 6, 2, "affinity")
    memory = Shortfall("memory", 3 << 30, 1 << 30, "cgroup")
    gpus = Shortfall("gpus", 1, 0, "devices")
    assert gave_less("n2", [processors]) == "n2 gave 2 of 6 processors (affinity): tasks use only these"
    assert gave_less("n2", [processors, memory, gpus]) == (
        "n2 gave 2 of 6 processors (affinity), 1G of 3G of memory (cgroup) and 0 of 1 GPU (devices): "
        "tasks use only these"
    )
