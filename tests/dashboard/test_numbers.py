"""The numbers behind the metrics over scrapes, restarts and late news."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics

from adaptor import api
from adaptor.api import PilotRecord
from adaptor.dashboard.numbers import EndedPilots, NumbersReader
from adaptor.dashboard.openmetrics import encoded, families
from tests.cli.fake_control import pilot_view
from tests.dashboard.told import NOW, PILOTS, Told

GRAFANA = Path(__file__).parents[2] / "docs" / "grafana-dashboard.json"


def test_an_ended_pilot_counts_once_however_late_its_end_is_learned() -> None:
    """Pilot 1 runs at the first scrape; its end, an hour ago, is learned at the second one."""
    running = pilot_view(1, state="running", submitted=1000.0, ended=None)
    over = pilot_view(
        1, state="walltime", submitted=1000.0, predicted_start=1050.0, started=1100.0, ended=2000.0
    )
    earlier = pilot_view(2, state="completed", submitted=0.0, started=None, ended=500.0)
    ended = EndedPilots()

    def scrape(journal: list[PilotRecord], now: float) -> None:
        ended.add([each for each in journal if each.ended is None or each.ended >= ended.since], now)

    scrape([running, earlier], 5600.0)
    for now in (5700.0, 5800.0, 5900.0):
        scrape([over, earlier], now)
    assert ended.since == 5900.0
    data, _ = encoded(NumbersReader(Told(), lambda: NOW).read(), ended, "application/openmetrics-text")
    told = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in openmetrics(data.decode())
        for sample in family.samples
    }
    assert told["adaptor_pilots_ended_total", "hpc", "walltime"] == 1
    assert told["adaptor_pilots_ended_total", "completed", "hpc"] == 1
    assert told["adaptor_start_lateness_sum_seconds", "hpc"] == 50.0
    assert told["adaptor_start_lateness_seconds_bucket", "+Inf", "hpc"] == 1


def test_a_scrape_asks_only_for_what_is_new() -> None:
    told = Told()
    asked: list[float] = []

    def pilots(question: api.GetPilots) -> list[api.PilotRecord]:
        asked.append(question.since)
        return PILOTS

    told.answers[api.GetPilots] = pilots
    reader = NumbersReader(told, lambda: NOW)
    reader.read()
    reader.read()
    assert asked == [0.0, min(pilot.submitted for pilot in PILOTS)]


def test_the_processors_of_a_queue_are_told_once_by_who_has_them() -> None:
    reader = NumbersReader(Told(), lambda: NOW)
    data, _ = encoded(reader.read(), reader.ended, "application/openmetrics-text")
    held = {
        sample.labels["holder"]: sample.value
        for family in openmetrics(data.decode())
        for sample in family.samples
        if family.name == "adaptor_queue_processors"
    }
    assert held == {"others": 8, "planned": 0, "own": 6, "free": 2}


def test_without_a_daemon_the_journal_gives_what_it_has() -> None:
    told = Told()
    told.live_now = False
    reader = NumbersReader(told, lambda: NOW)
    text = encoded(reader.read(), reader.ended, "text/plain")[0].decode()
    assert "\nadaptor_up 0.0\n" in text
    assert 'adaptor_tasks{state="done"} 4.0' in text
    assert "adaptor_queue_processors{" not in text


@pytest.mark.parametrize("panel", json.loads(GRAFANA.read_text())["panels"], ids=lambda panel: panel["title"])
def test_grafana_asks_only_for_metrics_that_there_are(panel: dict[str, object]) -> None:
    told = Told()
    reader = NumbersReader(told, lambda: NOW)
    known = set()
    for family in families(reader.read(), reader.ended):
        known |= {family.name, *(f"{family.name}{end}" for end in _ENDS.get(family.type, ()))}
    targets = panel["targets"]
    assert isinstance(targets, list)
    names = {name for target in targets for name in re.findall(r"adaptor_\w+", target["expr"])}
    assert names
    assert names <= known


_ENDS = {"counter": ("_total",), "histogram": ("_bucket",)}
