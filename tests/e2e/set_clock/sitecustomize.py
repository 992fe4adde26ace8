"""A clock that tests can set: Python processes with this folder in PYTHONPATH read `$SET_CLOCK`.

The file has the seconds by which their time of day is ahead of the machine's. Their monotonic clock is the
machine's.
"""

from __future__ import annotations

import datetime
import os
import time
from pathlib import Path

_AHEAD = Path(os.environ["SET_CLOCK"])
_time = time.time


def _shifted_time() -> float:
    return _time() + float(_AHEAD.read_text(encoding="ascii") or 0.0)


class _ShiftedDatetime(datetime.datetime):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> _ShiftedDatetime:
        return cls.fromtimestamp(_shifted_time(), tz)


time.time = _shifted_time
datetime.datetime = _ShiftedDatetime  # type: ignore[misc]
