"""The data of the page, as frozen types: JSON by sections, of which only those that changed are sent.

Times are epoch seconds, durations seconds, areas processor-seconds. Field names are read by static/*.js.
"""

from __future__ import annotations

import msgspec

from adaptor import api
from adaptor.api import AttemptUse


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The age of the page."""

    now: float
    live: bool  # whether the daemon has just told all this
    journal: bool = False  # whether the journal did, after the daemon's end
    silent_since: float | None = None
    """Time of the daemon's last answer to this page; None: it answers now, or never has."""
    static: bool = False  # whether the page is a report that will not change
    title: str
    daemon: api.DaemonView | None = None
    problem: str = ""  # empty, or why neither the daemon nor the journal can be read


class BagRow(msgspec.Struct, frozen=True, kw_only=True):
    bag: api.BagView
    credits: api.CreditLine | None
    first_forecast: api.FirstForecastView | None = None


class PilotBox(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot in the picture of a queue: from `bottom` upwards, `p` processors high."""

    pilot: int
    start: float
    end: float
    bottom: int = 0
    p: int
    fits: bool = True
    """True if it fits next to the jobs of others and other pilots; not always so right after a change."""
    state: str
    latest: float | None = None  # of a queued pilot: its start if it is as late as pilots lately were
    used: float
    wasted: float


class SitePicture(msgspec.Struct, frozen=True, kw_only=True):
    """Time × processors at a site."""

    site: str  # with its partition where it has several: `hpc/short`
    observed: float | None
    processors: int
    begin: float
    end: float
    past: list[tuple[float, int]]  # processors of others, as this page saw them: `(time, processors)`
    steps: list[api.QueueStep]
    boxes: list[PilotBox]


class Strip(msgspec.Struct, frozen=True, kw_only=True):
    """The work in a pilot: attempts in lanes, or processors by use over time."""

    pilot: int
    spans: list[tuple[int, int, float, float | None, AttemptUse, int, int]]
    """Lane, processors, start, end, use, bag and task."""
    busy: list[tuple[AttemptUse, float, float, list[float]]]
    """Use, begin, seconds of a part, mean processors by part."""


class FailureRow(msgspec.Struct, frozen=True, kw_only=True):
    words: str
    count: int
    task: int
    node: str | None
    ended: float | None
    stderr: str  # the last lines of the newest one


class BagDetails(msgspec.Struct, frozen=True, kw_only=True):
    bag: int
    runtimes: list[api.RuntimeBin]
    progress: list[api.DoneStep]
    failures: list[FailureRow]
    other_failures: int
    learned: list[api.LearnedRuntime]
    walltime: int | None  # seconds that the newest request for it asked for


class Page(msgspec.Struct, frozen=True, kw_only=True):
    head: Head
    sites: list[api.SiteView]
    bags: list[BagRow]
    left_out: api.BagCounts = api.BagCounts()  # bags that are not shown
    totals: api.Totals | None = None  # of a report
    queues: list[SitePicture]
    pilots: list[api.PilotRecord]
    strips: list[Strip]
    details: list[BagDetails]
    why: list[api.Explanation]
    credits: api.CreditsView


def sections(page: Page) -> dict[str, bytes]:
    """The page as JSON by section."""
    fields = page.__struct_fields__
    return {name: msgspec.json.encode(getattr(page, name)) for name in fields}


def joined(parts: dict[str, bytes]) -> bytes:
    """Sections as one JSON object."""
    return b"{" + b",".join(b'"%s":%s' % (name.encode(), part) for name, part in parts.items()) + b"}"
