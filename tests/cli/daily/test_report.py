"""`report`: the requests of a bag and their sums."""

from __future__ import annotations

from adaptor.protocol import control
from adaptor.views import BagReport, Totals
from tests.cli.fake_control import bag_view, pilot_view
from tests.cli.invoking import Cli, Serve


def test_report_fits_a_terminal_of_120_columns(cli: Cli, serve: Serve) -> None:
    reason = (
        "asks 4 × 12m for 8 of 120 tasks of 6m: " + "the slot free from now gives the best throughput " * 4
    )
    requests = [
        pilot_view(number, site="a-long-site-name", job="1234567890.server", p=1024, tr=359999, reason=reason)
        for number in (1, 1000)
    ]
    requests.append(pilot_view(3, state="node_failed", end_reason="node n3 failed", used=1e7, wasted=1e9))
    totals = Totals(requests=3, paid=4000.0, used=3000.0, wasted=1000.0, turnaround=250.0, first_result=12.0)
    serve(
        {
            control.GetBags: control.Bags([bag_view()]),
            control.GetReport: control.Report(BagReport(bag=bag_view(), requests=requests, totals=totals)),
        }
    )
    outcome = cli("report")
    assert max(map(len, outcome.lines)) <= 120
    assert outcome.out.count("why: ") == 3
    assert "end: node n3 failed" in outcome.out
    assert outcome.lines[-3].endswith("used 50m (75 %), wasted 16m 40s")
    assert outcome.lines[-2].endswith("paid 4,000, used 3,000, wasted 1,000")
    assert outcome.lines[-1] == "first result after 12s, last result after 4m 10s"
    value = cli("report", "7", "--json").value
    assert value["totals"]["turnaround"] == 250.0
    assert value["requests"][0]["reason"] == reason
