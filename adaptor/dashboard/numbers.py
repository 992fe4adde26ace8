"""The numbers behind the metrics, gathered so that a scrape stays cheap: ended pilots are counted once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

import msgspec
from prometheus_client import Counter, Gauge, Histogram, disable_created_metrics

from adaptor import api
from adaptor.api import QueuePicture
from adaptor.client.reading import Asker, Reader
from adaptor.errors import NoDaemonError
from adaptor.forecast.record import Record
from adaptor.model import IN_SYSTEM

disable_created_metrics()  # type: ignore[no-untyped-call]

_LATENESS = (-3600.0, -600.0, -60.0, 0.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0)
"""Upper bounds of the histogram of real less predicted starts, seconds."""
_ENDED_BAGS = 10
_IN_SYSTEM = {state.value for state in IN_SYSTEM}


class EndedPilots:
    """Metrics of all pilots that have ended, by site; these are asked for only as far as they are new."""

    def __init__(self) -> None:
        words = "Pilots that have ended."
        self.over = Counter("adaptor_pilots_ended", words, ["site", "state"], registry=None)
        words = "Processor time that ended pilots held: used for results, or wasted."
        name = "adaptor_processor_seconds"
        self.seconds = Counter(name, words, ["site", "use"], unit="seconds", registry=None)
        words = "Real less predicted starts of the formal requests that have ended."
        name = "adaptor_start_lateness_seconds"
        self.late = Histogram(name, words, ["site"], unit="seconds", buckets=_LATENESS, registry=None)
        words = "Sum of the real less the predicted starts; a histogram with negative values has none."
        name = "adaptor_start_lateness_sum_seconds"
        self.all_late = Gauge(name, words, ["site"], unit="seconds", registry=None)
        self.since = 0.0  # from when on ended pilots are to be asked for, epoch seconds
        self._counted: dict[int, float] = {}

    def add(self, pilots: Iterable[api.PilotRecord], now: float) -> None:
        """`pilots` are those in the system, and those that ended since `since`; `now` is of the question."""
        since = now
        for pilot in pilots:
            if pilot.state in _IN_SYSTEM:
                since = min(since, pilot.submitted)  # it ends later than that, however late that is learned
            elif pilot.id not in self._counted:
                self._counted[pilot.id] = pilot.ended if pilot.ended is not None else pilot.submitted
                self.over.labels(pilot.site, pilot.state).inc()
                self.seconds.labels(pilot.site, "used").inc(pilot.used)
                self.seconds.labels(pilot.site, "wasted").inc(pilot.wasted)
                if pilot.started is not None and pilot.predicted_start is not None and not pilot.node:
                    self.late.labels(pilot.site).observe(pilot.started - pilot.predicted_start)
                    self.all_late.labels(pilot.site).inc(pilot.started - pilot.predicted_start)
        self.since = since
        self._counted = {id: ended for id, ended in self._counted.items() if ended >= since}


class Numbers(msgspec.Struct, frozen=True, kw_only=True):
    live: bool  # whether the daemon answered
    bags: list[api.BagView]
    record: Record | None
    pilots: list[api.PilotRecord]  # pilots in the system
    sites: list[api.SiteView]
    queues: list[QueuePicture]
    credits: api.CreditsView
    forecasts: dict[int, api.FirstForecastView]  # the first forecasts of the last bags that have ended


class NumbersReader:
    def __init__(self, source: Reader, clock: Callable[[], float]) -> None:
        """`clock`: epoch seconds."""
        self._source = source
        self._clock = clock
        self._one = threading.Lock()
        self._forecasts: dict[int, api.FirstForecastView | None] = {}
        self.ended = EndedPilots()

    def read(self) -> Numbers:
        """The daemon's numbers, or the journal's where none runs. Raises AdaptorError: neither answers."""
        with self._one:
            try:
                return self._read(self._source.live, live=True)
            except NoDaemonError:
                return self._read(self._source.kept, live=False)

    def _read(self, ask: Asker, *, live: bool) -> Numbers:
        now = self._clock()
        bags = ask(api.GetLatestBags(running=10_000, ended=_ENDED_BAGS)).bags
        pilots = ask(api.GetPilots(ended=True, since=self.ended.since))
        self.ended.add(pilots, now)
        selector = ",".join(str(bag.id) for bag in bags)
        nothing = api.CreditsView(sites=[], bags=[], prices=[])
        ended = [bag.id for bag in bags if bag.ended is not None]
        return Numbers(
            live=live,
            bags=bags,
            record=ask(api.GetBags("last", record=True)).record,
            pilots=[pilot for pilot in pilots if pilot.state in _IN_SYSTEM],
            sites=ask(api.GetSites()) if live else [],
            queues=ask(api.GetPicture()).queues if live else [],
            credits=ask(api.GetCredits(selector)) if selector else nothing,
            forecasts={bag: first for bag in ended if (first := self._forecast(ask, bag)) is not None},
        )

    def _forecast(self, ask: Asker, bag: int) -> api.FirstForecastView | None:
        """First forecast of a bag that has ended; asked for once."""
        if bag not in self._forecasts:
            report = ask(api.GetReport(bag))
            if report.bag.ended is None:  # put back by `retry` since
                return None
            self._forecasts[bag] = report.first_forecast
        return self._forecasts[bag]
