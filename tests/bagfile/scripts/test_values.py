from __future__ import annotations

import pytest

from adaptor.bagfile.scripts.values import pbs_size, pbs_time, slurm_size, slurm_time


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 5400),
        ("90:30", 5430),
        ("1:30:00", 5400),
        ("2-0", 172800),
        ("2-", 172800),
        ("1-2:30", 95400),
        ("1-2:30:15", 95415),
        ("0", None),
        ("UNLIMITED", None),
    ],
)
def test_times_of_slurm(text: str, seconds: float | None) -> None:
    assert slurm_time(text) == seconds


def test_other_values() -> None:
    assert [pbs_time(text) for text in ("90", "48:0:0", "10:30")] == [90, 172800, 630]
    assert [slurm_size(text) for text in ("100", "2G", "5K", "1GB")] == [
        100 * 1024**2,
        2 * 1024**3,
        5120,
        1024**3,
    ]
    assert [pbs_size(text) for text in ("100", "8gb", "2kw", "3M")] == [100, 8 * 1024**3, 16384, 3 * 1024**2]


@pytest.mark.parametrize("text", ["", "1:2:3:4", "soon", ":5", "-5", "1:"])
def test_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="is no time"):
        slurm_time(text)
    with pytest.raises(ValueError, match="is no time"):
        pbs_time(text)
