"""The live page in a browser, beside a real Slurm: its numbers, its hole, its silence, and who gets it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from adaptor.units import format_duration
from tests.clusters.slurm import ThrowawaySlurm
from tests.dashboard.browser import chromium
from tests.e2e.lab import Lab, site
from tests.living import until
from tests.security.world import as_mallory

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.slurm, pytest.mark.browser]

SITE = site("slurm", (1, 8, "4h"), initial_tr="5m", poll_interval=1)
BAG = 1
PATIENCE = 60_000.0
"""Milliseconds."""


@pytest.fixture
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def known(page: Page) -> dict[str, Any]:
    """What the page was told last."""
    told: dict[str, Any] = page.evaluate("() => Page.known")
    return told


def status_without_token(address: str) -> int:
    try:
        urllib.request.urlopen(address, timeout=60).close()
    except urllib.error.HTTPError as error:
        return error.code
    return 200


def test_the_page_beside_a_real_scheduler(slurm: ThrowawaySlurm, lab: Lab, browser: Browser) -> None:
    running = slurm.occupy(2, 15, name="theirs-alone")
    until(lambda: slurm.run(["squeue", "-h", "-j", running, "-t", "R"]), "the foreign job runs")
    planned = slurm.occupy(4, 30, name="theirs-alone")
    until(
        lambda: slurm.run(["squeue", "-h", "-j", planned, "-o", "%S"]).strip() not in ("", "N/A"),
        "the second foreign job is planned",
    )
    lab.configure(SITE)
    lab.bag([*[lab.hold()] * 15, "echo the cause >&2; exit 3"])
    lab.submit("tasks.bag", "--retries", "0", "--name", "waves")
    served = lab.start("dashboard", "--port", "0")
    try:
        assert served.stdout is not None
        served.stdout.readline()
        address = served.stdout.readline().strip()
        page = browser.new_context(color_scheme="light").new_page()
        requests: list[str] = []
        faults: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda line: faults.append(line.text) if line.type == "error" else None)
        page.goto(address)

        origin = address.partition("?")[0]
        assert page.url.startswith(f"{origin}page-"), "the browser's cookie is for this path alone"
        assert "token" not in page.url, "the token does not stay in the address"
        see_the_hole(page)
        ask_when(page)
        refuse_strangers(origin)
        fall_silent_and_return(lab, page)
        lab.release()
        lab.wait(BAG, expect=3)
        agree_with_the_report(lab, page)
        assert not faults
        assert {url.partition("?")[0][: len(origin)] for url in requests} == {origin}, (
            "no other host is asked"
        )
        assert "theirs-alone" not in page.content() + json.dumps(known(page))
    finally:
        served.terminate()
        served.wait(20)
    static_report(lab, browser)


def see_the_hole(page: Page) -> None:
    """Our pilot lies above what others run, below the upper edge, and ends before what is planned."""
    page.wait_for_function(
        "() => { const seen = Page.known.queues?.[0];"
        " return seen && seen.steps.length && seen.boxes.some(box => box.state === 'running'); }",
        timeout=PATIENCE,
    )
    (picture,) = known(page)["queues"]
    assert picture["processors"] == 16
    (box,) = (box for box in picture["boxes"] if box["state"] == "running")
    steps = picture["steps"]
    assert box["p"] == 8
    assert any(planned == 16 for _, _, planned in steps), "the planned job of others"
    ends = [time for time, _, _ in steps[1:]] + [float("inf")]
    for (time, held, planned), end in zip(steps, ends, strict=True):
        if time < box["end"] and box["start"] < end:
            assert held + planned <= box["bottom"], "the box stands on what others hold"
    assert box["bottom"] + box["p"] <= picture["processors"]
    assert box["fits"]
    row = page.locator(f'#pilots tr[data-pilot="{box["pilot"]}"]')
    row.focus()
    page.wait_for_selector("canvas[aria-label^='Queue of hpc: 1 pilot']")
    page.locator("canvas").first.focus()
    page.keyboard.press("ArrowRight")
    assert f"pilot {box['pilot']}" in (page.text_content("#tip") or "")
    assert "8 × 13m now: no end is known" in (page.text_content("#tip") or ""), "the sentence of why"


def ask_when(page: Page) -> None:
    """The answer stands below the picture, and is drawn in it: its colour is there only then."""
    green = (
        "() => { const canvas = document.querySelector('canvas'), wanted = [0, 158, 115];"
        " const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;"
        " for (let at = 0; at < data.length; at += 4)"
        "   if (wanted.every((value, place) => data[at + place] === value)) return true;"
        " return false; }"
    )
    assert not page.evaluate(green)
    page.fill("#when input[name=p]", "16")
    page.fill("#when input[name=t]", "10m")
    page.keyboard.press("Enter")
    page.wait_for_function(
        "() => document.getElementById('when-answer').textContent.includes('would start about')",
        timeout=PATIENCE,
    )
    assert "comes first" in page.inner_text("#when-answer")
    page.wait_for_function(green, timeout=PATIENCE)


def refuse_strangers(origin: str) -> None:
    for path in (
        "",
        "page.json",
        "when.json?p=1&t=1h",
        "events",
        "metrics",
        "static/page.js",
        "?token=guess",
    ):
        assert status_without_token(origin + path) == 401
    assert as_mallory(lambda: status_without_token(origin + "page.json")) == 401


def fall_silent_and_return(lab: Lab, page: Page) -> None:
    lab.kill_daemon()
    page.wait_for_selector("#state[data-state=silent]", timeout=PATIENCE)
    assert "silent since" in (page.text_content("#state") or "")
    assert page.text_content('[data-bag="1"] [data-field="done"]'), "the journal's numbers stay"
    lab.run("daemon", "start")
    page.wait_for_selector("#state[data-state=live]", timeout=PATIENCE)


def agree_with_the_report(lab: Lab, page: Page) -> None:
    until(lambda: not [each for each in lab.pilots() if each["ended"] is None], "all pilots have ended")
    report = lab.ask("report", str(BAG))
    page.wait_for_function(
        "count => Page.known.pilots.length === count"
        " && Page.known.pilots.every(pilot => pilot.ended !== null)",
        arg=len(report["requests"]),
        timeout=PATIENCE,
    )
    page.wait_for_selector("#tasks pre", state="attached", timeout=PATIENCE)
    bag = '[data-bag="1"]'
    assert page.text_content(f'{bag} [data-field="done"]') == str(report["bag"]["done"]) == "15"
    assert page.text_content(f'{bag} [data-field="failed"]') == str(report["bag"]["failed"]) == "1"
    for request in report["requests"]:
        row = page.locator(f'#pilots tr[data-pilot="{request["id"]}"]')
        assert row.get_attribute("data-state") == request["state"]
        for field in ("used", "wasted"):
            assert row.locator(f'[data-field="{field}"]').text_content() == format_duration(request[field])
    assert (page.text_content("#tasks pre") or "").strip() == "the cause"
    assert "exit 3" in (page.text_content("#tasks summary") or "")


def static_report(lab: Lab, browser: Browser) -> None:
    """The same as one file, which asks nobody."""
    lab.run("report", str(BAG), "--html", "bag.html")
    totals = lab.ask("report", str(BAG))["totals"]
    page = browser.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(f"file://{lab.work / 'bag.html'}")
    page.wait_for_selector("html[data-shown]", timeout=PATIENCE)
    assert page.text_content('#totals [data-field="requests"]') == str(totals["requests"])
    assert (page.text_content('#totals [data-field="wasted"]') or "") == format_duration(totals["wasted"])
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    assert (lab.work / "bag.html").stat().st_mode & 0o077 == 0
