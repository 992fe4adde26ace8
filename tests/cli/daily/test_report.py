"""`report`: the requests of a bag and their sums."""

from __future__ import annotations

from adaptor.cli.forecast_words import first_forecast_lines, record_line
from adaptor.protocol import control
from adaptor.views import BagReport, Totals
from tests.cli.fake_control import bag_view, pilot_view
from tests.cli.invoking import Cli, Serve
from tests.cli.test_forecast_words import first, record

TOTALS = Totals(requests=0, paid=0.0, used=0.0, wasted=0.0, turnaround=None, first_result=None)


def test_a_report_tells_what_was_forecast_and_what_came(cli: Cli, serve: Serve) -> None:
    forecast = first(final_cost=0.2, final_end=1.7e9 + 50, cost_held=True, end_held=True)
    found = BagReport(
        bag=bag_view(), requests=[], totals=TOTALS, first_forecast=forecast, forecast_record=record()
    )
    serve({control.GetBags: control.Bags([bag_view()]), control.GetReport: control.Report(found)})
    lines = cli("report").lines
    assert lines[-3:] == [*first_forecast_lines(forecast), record_line(record())]
    value = cli("report", "--json").value
    assert value["first_forecast"]["made"] == "2023-11-14T22:13:20.000Z"
    assert value["first_forecast"]["final_end"] == "2023-11-14T22:14:10.000Z"
    assert value["first_forecast"]["cost_held"] is True
    assert value["forecast_record"]["end"]["high"] == 0.955


def test_a_bag_without_a_forecast_has_no_lines_of_one(cli: Cli, serve: Serve) -> None:
    found = BagReport(bag=bag_view(), requests=[], totals=TOTALS)
    serve({control.GetBags: control.Bags([bag_view()]), control.GetReport: control.Report(found)})
    assert "forecast" not in cli("report").out


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
