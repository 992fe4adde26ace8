"""`adaptor credits`, and what status and report say of credits."""

from __future__ import annotations

import json
import time
from datetime import datetime
from pathlib import Path

from adaptor import api
from adaptor.api import BagReport, CreditLine, CreditsView, RemovedPilotView, SitePrice, Totals
from adaptor.units import format_instant
from tests.cli.fake_control import bag_view
from tests.cli.invoking import Cli, Serve

LINE = CreditLine(bag=7, budget=10.0, used=1.25, wasted=0.35, reserved=0.5, left=8.25)
SITES = [
    CreditLine(site="hpc", used=3.5, wasted=0.5, reserved=1.0),
    CreditLine(site="hpc", period="2026-11", budget=1000.0, used=2.5, reserved=1.0, left=996.5),
]
PRICE = SitePrice(site="hpc", explicit=2.0, donated=0.5, charging_unit=600)
ALL = CreditsView(sites=SITES, bags=[LINE], prices=[PRICE])


def test_credits_of_sites_and_bags(cli: Cli, serve: Serve) -> None:
    serve({api.GetCredits: ALL})
    lines = cli("credits").lines
    assert lines[0].split() == ["of", "period", "budget", "used", "wasted", "reserved", "left"]
    assert lines[1].split() == ["site", "hpc", "-", "3.5", "0.5", "1", "-"]
    assert lines[2].split() == ["site", "hpc", "2026-11", "1,000", "2.5", "-", "1", "996.5"]
    assert lines[3].split() == ["bag", "7", "10", "1.25", "0.35", "0.5", "8.25"]
    assert lines[4] == "hpc: 2 a processor-hour, 0.5 on donated nodes, charged in units of 10m"


def test_credits_as_json(cli: Cli, serve: Serve) -> None:
    served = serve({api.GetCredits: ALL})
    told = json.loads(cli("credits", "7", "--json").out)
    assert told["bags"][0]["left"] == 8.25
    assert told["sites"][1]["period"] == "2026-11"
    assert served.asked(api.GetCredits)[0].bags == "7"


def test_nothing_was_ever_paid(cli: Cli) -> None:
    assert "no credits used yet" in cli("credits").out


def test_a_report_splits_what_was_spent(cli: Cli, serve: Serve) -> None:
    sums = Totals(requests=0, paid=0, used=0, wasted=0, turnaround=None, first_result=None)
    report = BagReport(bag=bag_view(), requests=[], totals=sums, credits=LINE)
    serve({api.GetBags: api.Bags([bag_view()]), api.GetReport: report})
    assert cli("report", "7").lines[-1].startswith("credits: used 1.25 (0.9 for results, 0.35 wasted)")


def test_a_new_bag_says_what_it_wants(cli: Cli, serve: Serve, tmp_path: Path) -> None:
    served = serve({api.Publish: api.Submitted(1)})
    file = tmp_path / "b.bag"
    file.write_text("#ADAPTOR budget=500 prefer=cheap\ntrue\n")
    before = time.time()
    assert cli("submit", str(file), "--deadline", "12h").code == 0
    (asked,) = served.submitted()
    assert (asked.bag.budget, asked.bag.spec.prefer) == (500.0, "cheap")
    assert before + 12 * 3600 <= asked.bag.spec.deadline <= time.time() + 12 * 3600
    for wrong in (["--deadline", "soon"], ["--prefer", "somehow"], ["--budget", "0"]):
        assert cli("submit", str(file), *wrong).code == 2


REMOVED = RemovedPilotView(pilot=3, site="old", reserved=0.5, submitted=0.0, started=60.0, due=3660.0)


def test_pilots_of_a_site_that_left_the_configuration_are_told(cli: Cli, serve: Serve) -> None:
    view = CreditsView(sites=SITES, bags=[LINE], prices=[PRICE], removed=[REMOVED])
    serve({api.GetCredits: view})
    last = cli("credits").lines[-1]
    assert last.startswith("pilot 3: its site old left the configuration; started ")
    assert last.endswith(f"it reserves 0.5 until {format_instant(3660.0)}")


def test_a_site_that_left_is_settled(cli: Cli, serve: Serve) -> None:
    served = serve({api.SettleSite: 2, api.GetCredits: ALL})
    told = cli("credits", "--settle", "old", "--ended", "2026-11-20T08:00")
    assert told.err.strip() == "2 pilots of site old settled"
    assert served.asked(api.SettleSite) == [api.SettleSite("old", datetime(2026, 11, 20, 8).timestamp())]
    assert "site hpc" in told.out


def test_an_end_without_a_site(cli: Cli, serve: Serve) -> None:
    serve({api.GetCredits: ALL})
    told = cli("credits", "--ended", "2026-11-20T08:00")
    assert told.code == 2
    assert "--settle" in told.err
