"""From when licences are free."""

from __future__ import annotations

import math

import pytest

from backends.base import SchedulerError
from backends.slurm.placing.gres import License, free_from, parse_license_rows

TEXT = "LicenseName=matlab Total=4 Used=3 Free=1 Reserved=0 Remote=no\n"


def test_rows() -> None:
    assert parse_license_rows(TEXT) == {"matlab": License(total=4, free=1)}
    assert parse_license_rows("No licenses configured in Slurm.\n") == {}
    with pytest.raises(SchedulerError, match="scontrol show license printed a line"):
        parse_license_rows("Segmentation fault")


def test_a_licence_is_free_when_enough_jobs_have_ended() -> None:
    there = parse_license_rows(TEXT)
    held = [(300.0, {"matlab": 2}), (200.0, {"fluent": 9}), (100.0, {"matlab": 1})]
    assert free_from(10.0, {"matlab": 1}, there, held) == {}
    assert free_from(10.0, {"matlab": 2}, there, held) == {"matlab": 100.0}
    assert free_from(10.0, {"matlab": 3}, there, held) == {"matlab": 300.0}
    assert free_from(10.0, {"matlab": 5}, there, held) == {"matlab": math.inf}
    assert free_from(10.0, {"gold": 1}, there, held) == {"gold": math.inf}
