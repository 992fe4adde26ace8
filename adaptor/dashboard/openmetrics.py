"""The numbers as metrics: OpenMetrics or Prometheus' text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from adaptor.dashboard.numbers import EndedPilots, Numbers

NOTHING: tuple[()] = ()


class _Given(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        return self._families


def encoded(numbers: Numbers, ended: EndedPilots, accept: str) -> tuple[bytes, str]:
    """The metrics in the form that a scraper accepts, and its content type."""
    encode, kind = choose_encoder(accept)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Given(families(numbers, ended)))
    return encode(registry), kind


def families(numbers: Numbers, ended: EndedPilots) -> Iterator[Metric]:
    """All metrics; what only a running daemon knows is left out while none runs."""
    yield GaugeMetricFamily("adaptor_up", "Whether the daemon answered: 1, or 0.", float(numbers.live))
    running = [bag for bag in numbers.bags if bag.ended is None]
    states = ("waiting", "blocked", "running", "done", "failed", "cancelled")
    yield _gauge(
        "adaptor_tasks",
        "Tasks of the bags that have not ended.",
        ["state"],
        (((state,), sum(getattr(bag, state) for bag in running)) for state in states),
    )
    yield GaugeMetricFamily("adaptor_bags", "Bags that have not ended.", len(running))
    yield from _pilots(numbers)
    yield from ended.over.collect()
    yield from ended.seconds.collect()
    yield from _starts(numbers)
    for family in ended.late.collect():  # with negative values it has no sum, and so may have no count
        family.samples = [each for each in family.samples if not each.name.endswith("_count")]
        yield family
    yield from ended.all_late.collect()
    yield from _sites(numbers)
    yield from _credits(numbers)
    yield from _forecasts(numbers)


def _gauge(
    name: str, words: str, labels: Sequence[str], rows: Iterable[tuple[Sequence[str], float]], unit: str = ""
) -> Metric:
    family = GaugeMetricFamily(name, words, labels=labels, unit=unit)
    for of, value in rows:
        family.add_metric(of, value)
    return family


def _pilots(numbers: Numbers) -> Iterator[Metric]:
    labels = ["site", "state"]
    held: dict[tuple[str, str], list[int]] = {
        (site, state): []
        for site in sorted({site.name for site in numbers.sites} | {pilot.site for pilot in numbers.pilots})
        for state in ("submitting", "queued", "running")
    }
    for pilot in numbers.pilots:
        held[pilot.site, pilot.state].append(pilot.holds)
    counts = ((place, len(found)) for place, found in held.items())
    yield _gauge("adaptor_pilots", "Pilots in the system.", labels, counts)
    sums = ((place, sum(found)) for place, found in held.items())
    yield _gauge("adaptor_pilot_processors", "Processors of the pilots in the system.", labels, sums)


def _starts(numbers: Numbers) -> Iterator[Metric]:
    for name, words, field in (
        ("predicted_start", "When a pilot in the system was predicted to start.", "predicted_start"),
        ("start", "When a running pilot started.", "started"),
    ):
        known = [(pilot, getattr(pilot, field)) for pilot in numbers.pilots]
        yield _gauge(
            f"adaptor_pilot_{name}_timestamp_seconds",
            words,
            ["site", "pilot"],
            (((pilot.site, str(pilot.id)), time) for pilot, time in known if time is not None),
            "seconds",
        )


def _sites(numbers: Numbers) -> Iterator[Metric]:
    answers = (((site.name,), float(not site.problem)) for site in numbers.sites)
    yield _gauge("adaptor_site_up", "Whether a site's scheduler answers.", ["site"], answers)
    donated = (((site.name,), site.donation.nodes) for site in numbers.sites if site.donation is not None)
    yield _gauge("adaptor_donated_nodes", "Nodes that are donated now.", ["site"], donated)
    own = Counter[str]()
    for pilot in numbers.pilots:
        own[pilot.site] += pilot.holds if pilot.state == "running" else 0
    held: list[tuple[Sequence[str], float]] = []
    observed: list[tuple[Sequence[str], float]] = []
    for queue in numbers.queues:
        if queue.observed is None or not queue.steps:
            continue
        site, first = queue.site, queue.steps[0]
        held += [((site, "others"), first.running), ((site, "planned"), first.planned)]
        free = queue.processors - first.running - first.planned - own[site]
        held += [((site, "own"), own[site]), ((site, "free"), max(0, free))]
        observed.append(((site,), queue.observed))
    words = "Processors of a site as last observed, by who has them."
    yield _gauge("adaptor_queue_processors", words, ["site", "holder"], held)
    words = "When a site's queue was last observed."
    yield _gauge("adaptor_queue_observed_timestamp_seconds", words, ["site"], observed, "seconds")


def _credits(numbers: Numbers) -> Iterator[Metric]:
    running = {str(bag.id) for bag in numbers.bags if bag.ended is None}
    credits = numbers.credits
    of_sites = [(line.site or "", line) for line in credits.sites if not line.period]
    of_bags = [(str(line.bag), line) for line in credits.bags if not line.period and str(line.bag) in running]
    for name, words, label, lines in (
        ("adaptor_credits", "Credits of a site since the journal began.", "site", of_sites),
        ("adaptor_bag_credits", "Credits of a bag that has not ended.", "bag", of_bags),
    ):
        values = (
            ((whose, account), value)
            for whose, line in lines
            for account in ("used", "wasted", "reserved", "left", "budget")
            if (value := getattr(line, account)) is not None
        )
        yield _gauge(name, words, [label, "account"], values)


def _forecasts(numbers: Numbers) -> Iterator[Metric]:
    firsts = sorted(numbers.forecasts.items())
    yield _gauge(
        "adaptor_forecast_end_error_seconds",
        "Real less forecast end of the last bags that have ended, by their first forecast.",
        ["bag"],
        (
            ((str(bag),), first.final_end - first.end.value)
            for bag, first in firsts
            if first.final_end is not None
        ),
        "seconds",
    )
    yield _gauge(
        "adaptor_forecast_cost_error_credits",
        "Real less forecast cost of the last bags that have ended, by their first forecast.",
        ["bag"],
        (
            ((str(bag),), first.final_cost - first.cost.value)
            for bag, first in firsts
            if first.final_cost is not None and first.cost is not None
        ),
        "credits",
    )
    record = numbers.record
    judged = [] if record is None else [(NOTHING, record.bags)]
    yield _gauge("adaptor_forecasts", "Bags whose first forecast is judged.", NOTHING, judged)
    shares = {} if record is None else {"end": record.end, "cost": record.cost}
    held = (((what,), share.held) for what, share in shares.items() if share is not None)
    yield _gauge("adaptor_forecasts_held", "Of those, how many intervals held what came.", ["what"], held)
