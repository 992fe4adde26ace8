"""The page's server: its files, its data, its events and its metrics."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import AsyncIterator, Mapping

import msgspec
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus
from starlette.testclient import TestClient

from adaptor.api import StartView
from adaptor.dashboard.document import ASSETS
from adaptor.dashboard.feed import Feed
from adaptor.dashboard.gathering import Gatherer
from adaptor.dashboard.listening import application
from adaptor.dashboard.numbers import NumbersReader
from adaptor.dashboard.openmetrics import encoded
from adaptor.dashboard.page import Page, sections
from adaptor.errors import UnknownBagError, UsageError
from adaptor.model import Estimate
from tests.cli.fake_control import DEADLINE
from tests.dashboard.told import NOW, Told


def gather(told: Told) -> Gatherer:
    return Gatherer(told, lambda: NOW, lambda: NOW, "a title")


def report(bag: int) -> Page:
    if bag != 7:
        raise UnknownBagError(bag)
    page = gather(Told()).gather()
    return msgspec.structs.replace(page, head=msgspec.structs.replace(page.head, title="</script>bag 7"))


def when(form: Mapping[str, str]) -> list[StartView]:
    if "p" not in form:
        raise UsageError("say how many <b>processors</b>")
    return [
        StartView(site="hpc", observed=NOW, start=Estimate(NOW, NOW, math.inf), processors=int(form["p"]))
    ]


@pytest.fixture
def client() -> TestClient:
    told = Told()
    reader = NumbersReader(told, lambda: NOW)
    app = application(
        Feed(gather(told).gather),
        lambda accept: encoded(reader.read(), reader.ended, accept),
        report,
        when,
        token=None,
    )
    return TestClient(app, base_url="http://localhost:1")


def test_the_document_names_only_files_that_are_there(client: TestClient) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    for name in ASSETS - {"icon.svg"}:
        assert f'"static/{name}"' in page.text, "relative, whatever a proxy puts before it"
    assert "//" not in page.text.replace("<!doctype", ""), "no other host"
    for name in ASSETS:
        assert client.get(f"/static/{name}").status_code == 200
    for name in ("skeleton.html", "uplot.LICENSE", "..%2Fserver.py", "%2e%2e/server.py"):
        assert client.get(f"/static/{name}").status_code == 404


def test_the_data_are_the_page(client: TestClient) -> None:
    told = client.get("/page.json").json()
    assert set(told) == set(Page.__struct_fields__)
    assert told["bags"][0]["bag"]["done"] == 4


def test_each_bag_has_a_page_with_its_data_inside(client: TestClient) -> None:
    found = client.get("/bag/7")
    assert "unsafe-inline" not in found.headers["content-security-policy"]
    assert "</script>bag 7" not in found.text, "a name is data"
    assert re.findall(r'(?:src|href)="(.*?)"', found.text.replace('href="#bags"', "")), "its files"
    for name in re.findall(r'(?:src|href)="\.\./(.*?)"', found.text):
        assert client.get(f"/{name}").status_code == 200
    (data,) = re.findall(r'id="data">(.*?)</script>', found.text, re.DOTALL)
    assert json.loads(data)["bags"][0]["bag"]["id"] == 7
    unknown = client.get("/bag/8")
    assert (unknown.status_code, unknown.headers["content-type"][:10]) == (404, "text/plain")
    assert client.get("/bag/x").status_code == 404


def test_the_metrics_are_what_both_parsers_read(client: TestClient) -> None:
    plain = client.get("/metrics")
    families = {family.name: family for family in prometheus(plain.text)}
    accept = {"accept": "application/openmetrics-text; version=1.0.0"}
    modern = client.get("/metrics", headers=accept)
    assert "openmetrics" in modern.headers["content-type"]
    assert {family.name for family in openmetrics(modern.text)} <= {*families, "adaptor_pilots_ended"}
    values = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in families.values()
        for sample in family.samples
    }
    assert values["adaptor_up",] == 1
    assert values["adaptor_tasks", "done"] == 4
    assert values["adaptor_pilots", "hpc", "queued"] == 1
    assert values["adaptor_queue_processors", "hpc", "others"] == 8
    assert values["adaptor_queue_processors", "hpc", "own"] == 6
    assert values["adaptor_queue_processors", "free", "hpc"] == 2
    assert values["adaptor_credits", "hpc", "wasted"] == 0.25
    assert values["adaptor_bag_credits", "7", "left"] == 8


def test_a_form_is_answered_and_an_error_is_text(client: TestClient) -> None:
    (view,) = client.get("/when.json", params={"p": "4"}).json()
    assert (view["processors"], view["start"]) == (4, {"low": NOW, "value": NOW, "high": None})
    wrong = client.get("/when.json")
    assert (wrong.status_code, wrong.text) == (400, "say how many <b>processors</b>")
    assert wrong.headers["content-type"].startswith("text/plain")


async def first(stream: AsyncIterator[dict[str, bytes]], count: int) -> list[dict[str, bytes]]:
    found = []
    async for changed in stream:
        found.append(changed)
        if len(found) == count:
            break
    return found


def test_events_bring_the_whole_page_and_then_what_changes() -> None:
    told = Told()
    gatherer = gather(told)
    page = gatherer.gather()
    shown: list[dict[str, bytes]] = []

    def next_page() -> Page:
        return msgspec.structs.replace(page, bags=[]) if shown else page

    async def follow() -> dict[str, bytes]:
        stream = Feed(next_page, pause=0.001).follow()
        shown.extend(await asyncio.wait_for(first(stream, 1), DEADLINE))
        (change,) = await asyncio.wait_for(first(stream, 1), DEADLINE)
        await stream.aclose()
        return change

    assert asyncio.run(follow()) == {"bags": b"[]"}
    assert shown == [sections(page)]


def test_nothing_is_gathered_while_nobody_looks() -> None:
    calls: list[int] = []
    told = Told()
    gatherer = gather(told)

    def counted() -> Page:
        calls.append(1)
        return gatherer.gather()

    async def look_and_leave() -> int:
        feed = Feed(counted, pause=0.001)
        stream = feed.follow()
        await asyncio.wait_for(first(stream, 1), DEADLINE)
        await stream.aclose()
        while feed.busy:
            await asyncio.sleep(0.001)
        seen = len(calls)
        await asyncio.sleep(0.02)
        return seen

    assert asyncio.run(look_and_leave()) == len(calls)


def test_a_page_that_cannot_be_gathered_once_is_gathered_again(caplog: pytest.LogCaptureFixture) -> None:
    told = Told()
    gatherer = gather(told)
    calls: list[int] = []

    def sometimes() -> Page:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("a bug")
        return gatherer.gather()

    async def look() -> list[dict[str, bytes]]:
        stream = Feed(sometimes, pause=0.001).follow()
        found = await asyncio.wait_for(first(stream, 1), DEADLINE)
        await stream.aclose()
        return found

    (whole,) = asyncio.run(look())
    assert set(whole) == set(Page.__struct_fields__)
    assert "a bug" in caplog.text
