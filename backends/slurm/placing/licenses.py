"""When enough licences are free for a request of a site that takes some. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from backends.base import SchedulerError
from backends.numbers import whole


class License(msgspec.Struct, frozen=True, kw_only=True):
    total: int
    free: int


def parse_license_rows(text: str) -> dict[str, License]:
    """`scontrol show license -o`, by name.

    Raises:
        SchedulerError: a line is not what that command prints.
    """
    found = {}
    for line in text.splitlines():
        if not line.strip() or "No licenses" in line:
            continue
        values = dict(word.split("=", 1) for word in line.split() if "=" in word)
        try:
            total, free = whole(values["Total"]), whole(values["Free"])
            found[values["LicenseName"]] = License(total=total, free=max(0, free))
        except (ValueError, KeyError) as error:
            raise SchedulerError(
                f"scontrol show license printed a line that the adaptor cannot read: {line[:200]!r}"
            ) from error
    return found


def free_from(
    now: float,
    wanted: Mapping[str, int],
    there: Mapping[str, License],
    held: Iterable[tuple[float, Mapping[str, int]]],
) -> dict[str, float]:
    """From when there are enough of each licence that is scarce now; `math.inf`: no end of a job will do.

    Args:
        held: of each running job its end and what it takes.
    """
    ends = sorted(held, key=lambda job: job[0])
    late = {name: _from(name, count, there, ends) for name, count in wanted.items()}
    return {name: time for name, time in late.items() if time > now}


def _from(
    name: str, count: int, there: Mapping[str, License], ends: Iterable[tuple[float, Mapping[str, int]]]
) -> float:
    free = there[name].free if name in there else 0
    if free >= count:
        return 0.0
    for end, taken in ends:
        free += taken.get(name, 0)
        if free >= count:
            return end
    return float("inf")
