"""When a mean agrees with a number of the paper."""

from __future__ import annotations

import pytest

from adaptor_experiments.a2ha import reasons
from adaptor_experiments.a2ha.lines import measured
from adaptor_experiments.a2ha.summary import Mean


@pytest.mark.parametrize(
    ("ours", "reason"),
    [
        (19.9, reasons.AGREES),  # within 5 %
        (18.1, reasons.AGREES),
        (20.1, reasons.HEAVY_FIRST),
        (17.9, reasons.HEAVY_FIRST),
    ],
)
def test_near_or_else_the_reason(ours, reason):
    line = measured("Table 1", "charged hours", 19, Mean(ours, 4.0), reasons.HEAVY_FIRST)
    assert line.reason is reason
    assert line.cells == ["Table 1", "charged hours", "19", f"{ours} ± 4.0", reason.short]


def test_small_numbers_agree_where_they_round_to_it():
    found = [measured("Table 1", "continued", 3, Mean(ours, 1.0), reasons.LOW_RATIOS) for ours in (2.6, 2.4)]
    assert [line.reason for line in found] == [reasons.AGREES, reasons.LOW_RATIOS]
