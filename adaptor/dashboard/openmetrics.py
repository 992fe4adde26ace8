"""The numbers as metrics: OpenMetrics or Prometheus' text for a scraper, text for node_exporter's files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder, generate_latest
from prometheus_client.registry import Collector

from adaptor.dashboard.numbers import LATENESS, EndedPilots, Lateness, Numbers

NOTHING: tuple[()] = ()


class _Given(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        return self._families


def encoded(numbers: Numbers, ended: EndedPilots, accept: str) -> tuple[bytes, str]:
    """The metrics in the form that a scraper accepts, and its content type."""
    encode, kind = choose_encoder(accept)
    return encode(_registry(numbers, ended)), kind


def textfile(numbers: Numbers, ended: EndedPilots) -> bytes:
    """As node_exporter's textfile collector reads them."""
    return generate_latest(_registry(numbers, ended))


def _registry(numbers: Numbers, ended: EndedPilots) -> CollectorRegistry:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Given(families(numbers, ended)))
    return registry


def families(numbers: Numbers, ended: EndedPilots) -> Iterator[Metric]:
    """All metrics; what only a running daemon knows is left out while none runs."""
    yield _gauge("adaptor_up", "Whether the daemon answered: 1, or 0.", float(numbers.live))
    yield from _tasks(numbers)
    yield from _pilots(numbers, ended)
    yield from _starts(numbers, ended)
    yield from _sites(numbers)
    yield from _credits(numbers)
    yield from _forecasts(numbers)


def _gauge(name: str, words: str, value: float) -> Metric:
    return GaugeMetricFamily(name, words, value=value)


def _tasks(numbers: Numbers) -> Iterator[Metric]:
    running = [bag for bag in numbers.bags if bag.ended is None]
    tasks = GaugeMetricFamily("adaptor_tasks", "Tasks of the bags that have not ended.", labels=["state"])
    for state in ("waiting", "blocked", "running", "done", "failed", "cancelled"):
        tasks.add_metric([state], sum(getattr(bag, state) for bag in running))
    yield tasks
    yield _gauge("adaptor_bags", "Bags that have not ended.", len(running))


def _pilots(numbers: Numbers, ended: EndedPilots) -> Iterator[Metric]:
    labels = ["site", "state"]
    pilots = GaugeMetricFamily("adaptor_pilots", "Pilots in the system.", labels=labels)
    held = GaugeMetricFamily(
        "adaptor_pilot_processors", "Processors of the pilots in the system.", labels=labels
    )
    counts = Counter((pilot.site, pilot.state) for pilot in numbers.pilots)
    for site in sorted({site.name for site in numbers.sites} | {pilot.site for pilot in numbers.pilots}):
        for state in ("submitting", "queued", "running"):
            there = [pilot.p for pilot in numbers.pilots if (pilot.site, pilot.state) == (site, state)]
            pilots.add_metric([site, state], counts[site, state])
            held.add_metric([site, state], sum(there))
    yield from (pilots, held)
    over = CounterMetricFamily("adaptor_pilots_ended", "Pilots that have ended.", labels=labels)
    for (site, state), count in sorted(ended.by_state.items()):
        over.add_metric([site, state], count)
    yield over
    seconds = CounterMetricFamily(
        "adaptor_processor_seconds",
        "Processor time that ended pilots held: used for results, or wasted.",
        labels=["site", "use"],
        unit="seconds",
    )
    for site in sorted(ended.used):
        seconds.add_metric([site, "used"], ended.used[site])
        seconds.add_metric([site, "wasted"], ended.wasted[site])
    yield seconds


def _starts(numbers: Numbers, ended: EndedPilots) -> Iterator[Metric]:
    predicted = GaugeMetricFamily(
        "adaptor_pilot_predicted_start_timestamp_seconds",
        "When a pilot in the system was predicted to start.",
        labels=["site", "pilot"],
        unit="seconds",
    )
    real = GaugeMetricFamily(
        "adaptor_pilot_start_timestamp_seconds",
        "When a running pilot started.",
        labels=["site", "pilot"],
        unit="seconds",
    )
    for pilot in numbers.pilots:
        if pilot.predicted_start is not None:
            predicted.add_metric([pilot.site, str(pilot.id)], pilot.predicted_start)
        if pilot.started is not None:
            real.add_metric([pilot.site, str(pilot.id)], pilot.started)
    yield from (predicted, real)
    late = HistogramMetricFamily(
        "adaptor_start_lateness_seconds",
        "Real less predicted starts of the formal requests that have ended.",
        labels=["site"],
        unit="seconds",
    )
    for site, known in sorted(ended.lateness.items()):
        late.add_metric([site], _buckets(known), sum_value=None)
    yield late
    total = GaugeMetricFamily(
        "adaptor_start_lateness_sum_seconds",
        "Sum of the real less the predicted starts; a histogram with negative values has none.",
        labels=["site"],
        unit="seconds",
    )
    for site, known in sorted(ended.lateness.items()):
        total.add_metric([site], known.total)
    yield total


def _buckets(known: Lateness) -> list[tuple[str, float]]:
    found, total = [], 0
    for bound, count in zip((*LATENESS, math.inf), known.counts, strict=True):
        total += count
        found.append(("+Inf" if math.isinf(bound) else str(bound), float(total)))
    return found


def _sites(numbers: Numbers) -> Iterator[Metric]:
    answers = GaugeMetricFamily("adaptor_site_up", "Whether a site's scheduler answers.", labels=["site"])
    donated = GaugeMetricFamily("adaptor_donated_nodes", "Nodes that are donated now.", labels=["site"])
    for site in numbers.sites:
        answers.add_metric([site.name], float(not site.problem))
        if site.donation is not None:
            donated.add_metric([site.name], site.donation.nodes)
    slots = GaugeMetricFamily(
        "adaptor_queue_processors",
        "Processors of a site as last observed, by who has them.",
        labels=["site", "holder"],
    )
    observed = GaugeMetricFamily(
        "adaptor_queue_observed_timestamp_seconds",
        "When a site's queue was last observed.",
        labels=["site"],
        unit="seconds",
    )
    own = Counter[str]()
    for pilot in numbers.pilots:
        own[pilot.site] += pilot.p if pilot.state == "running" else 0
    for queue in numbers.queues:
        if queue.observed is None or not queue.steps:
            continue
        first = queue.steps[0]
        free = queue.processors - first.running - first.planned - own[queue.site]
        for holder, held in (
            ("others", first.running),
            ("planned", first.planned),
            ("own", own[queue.site]),
            ("free", max(0, free)),
        ):
            slots.add_metric([queue.site, holder], held)
        observed.add_metric([queue.site], queue.observed)
    yield from (answers, donated, slots, observed)


def _credits(numbers: Numbers) -> Iterator[Metric]:
    credits = GaugeMetricFamily(
        "adaptor_credits", "Credits of a site since the journal began.", labels=["site", "account"]
    )
    bags = GaugeMetricFamily(
        "adaptor_bag_credits", "Credits of a bag that has not ended.", labels=["bag", "account"]
    )
    running = {bag.id for bag in numbers.bags if bag.ended is None}
    for line in (*numbers.credits.sites, *numbers.credits.bags):
        if line.period or (line.bag is not None and line.bag not in running):
            continue
        family, name = (credits, line.site or "") if line.bag is None else (bags, str(line.bag))
        for account in ("used", "wasted", "reserved", "left", "budget"):
            value = getattr(line, account)
            if value is not None:
                family.add_metric([name, account], value)
    yield from (credits, bags)


def _forecasts(numbers: Numbers) -> Iterator[Metric]:
    errors = GaugeMetricFamily(
        "adaptor_forecast_end_error_seconds",
        "Real less forecast end of the last bags that have ended, by their first forecast.",
        labels=["bag"],
        unit="seconds",
    )
    costs = GaugeMetricFamily(
        "adaptor_forecast_cost_error_credits",
        "Real less forecast cost of the last bags that have ended, by their first forecast.",
        labels=["bag"],
        unit="credits",
    )
    for bag, first in sorted(numbers.forecasts.items()):
        if first.final_end is not None:
            errors.add_metric([str(bag)], first.final_end - first.end.value)
        if first.final_cost is not None and first.cost is not None:
            costs.add_metric([str(bag)], first.final_cost - first.cost.value)
    yield from (errors, costs)
    counted = GaugeMetricFamily("adaptor_forecasts", "Bags whose first forecast is judged.")
    held = GaugeMetricFamily(
        "adaptor_forecasts_held", "Of those, how many intervals held what came.", labels=["what"]
    )
    if numbers.record is not None:
        counted.add_metric(NOTHING, numbers.record.bags)
        for what, share in (("end", numbers.record.end), ("cost", numbers.record.cost)):
            if share is not None:
                held.add_metric([what], share.held)
    yield from (counted, held)
