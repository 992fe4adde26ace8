"""The numbers that the papers print."""

from __future__ import annotations

import msgspec

TABLE_1 = {"image": (19, 4, 25, 3), "normal": (14, 3, 7, 1), "testing": (38, 8, 12, 8)}
"""2011, of each bag: charged hours, interrupted tasks, wasted minutes, continued hosts."""


class Long(msgspec.Struct, frozen=True):
    """A line of Table 2 of 2011: means, each with its standard deviation."""

    hosts: tuple[float, float]
    hours: tuple[float, float]
    speedup: tuple[float, float]
    payment: tuple[float, float]
    """Hours."""


SERIAL = Long((1, 0), (384, 5), (1, 0), (384, 5))
OPTIMAL = Long((159, 8.5), (2.43, 0.14), (158, 8.5), (384, 5))
TABLE_2 = {
    256: Long((256, 0), (2.43, 0.14), (158, 8.5), (512, 5.8)),
    100: Long((179, 2.9), (3.70, 0.16), (104, 4.2), (463, 6.3)),
    50: Long((154, 0), (3.90, 0.15), (99, 3.7), (452, 6.6)),
    1: Long((129, 5.9), (4.14, 0.17), (93, 3.6), (450, 5.9)),
}
"""By the hosts at the beginning."""
EXCESS = {
    ("grid-2011", "image"): "20 %",
    ("grid-2011", "testing"): "35 %",
    ("grid-2008", "image"): "≤ 12 %",
    ("grid-2008", "normal"): "≤ 12 %",
}
"""Hosts above the optimum, with suitable ratios (2011, §4.1; 2008, §5)."""
FEW_HOSTS = 13
"""The example of both papers for speedups (2011, §4.2; 2008, §5)."""
FEW_SPEEDUPS = {2011: (9, 10), 2008: (11, 12)}
