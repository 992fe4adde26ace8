"""What jobs and partitions do not share, in the words of each release."""

from __future__ import annotations

import pytest

from backends.slurm.placing.exclusivity import jobs_on_a_processor, of_job, of_partition


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("OverSubscribe=NO", "NODE"),
        ("OverSubscribe=OK", ""),
        ("OverSubscribe=YES", ""),
        ("OverSubscribe=USER", "USER"),
        ("OverSubscribe=MCS", "MCS"),
        ("OverSubscribe=TOPO", "TOPO"),
        ("OverSubscribe=NO Exclusive=NO", ""),
        ("OverSubscribe=YES Exclusive=NO", ""),
        ("OverSubscribe=NO Exclusive=NODE", "NODE"),
        ("OverSubscribe=NO Exclusive=USER", "USER"),
        ("OverSubscribe=NO Exclusive=TOPO", "TOPO"),
        ("OverSubscribe=NO Exclusive=RACK", "RACK"),
        ("OverSubscribe=PERHAPS", "PERHAPS"),
        ("Licenses=x", "no answer"),
    ],
)
def test_jobs(words: str, expected: str) -> None:
    assert of_job(dict(word.split("=") for word in words.split())) == expected


@pytest.mark.parametrize(
    ("words", "expected", "on_a_processor"),
    [
        ("ExclusiveUser=NO OverSubscribe=NO", "", 1),
        ("ExclusiveUser=NO OverSubscribe=EXCLUSIVE", "NODE", 1),
        ("ExclusiveUser=YES OverSubscribe=NO", "USER", 1),
        ("ExclusiveUser=NO ExclusiveTopo=YES OverSubscribe=NO", "TOPO", 1),
        ("ExclusiveUser=NO OverSubscribe=YES:4", "", 1),
        ("ExclusiveUser=NO OverSubscribe=FORCE:2", "", 2),
        ("ExclusiveUser=NO OverSubscribe=FORCE:1", "", 1),
        ("ExclusiveUser=NO OverSubscribe=FORCE", "", 4),
        ("Exclusive=NO OverSubscribe=NO", "", 1),
        ("Exclusive=NODE OverSubscribe=NO", "NODE", 1),
        ("Exclusive=USER OverSubscribe=FORCE:4", "USER", 4),
        ("Exclusive=TOPO OverSubscribe=NO", "TOPO", 1),
        ("Exclusive=RACK OverSubscribe=NO", "RACK", 1),
    ],
)
def test_partitions(words: str, expected: str, on_a_processor: int) -> None:
    values = dict(word.split("=") for word in words.split())
    assert of_partition(values) == expected
    assert jobs_on_a_processor(values) == on_a_processor
