"""`report`: the requests of a bag and their sums."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec

from adaptor import api
from adaptor.api import AttemptSpan, BagReport, TaskSums, Totals
from adaptor.cli.bags.report import totals
from adaptor.cli.sentences import first_forecast_lines, record_lines
from tests.cli.fake_control import NO_ADVICE, bag_view, pilot_view
from tests.cli.invoking import Cli, Serve
from tests.cli.test_sentences import first, record

TOTALS = Totals(requests=0, paid=0.0, used=0.0, wasted=0.0, turnaround=None, first_result=None)


def test_a_report_tells_what_was_forecast_and_what_came(cli: Cli, serve: Serve) -> None:
    forecast = first(final_cost=0.2, final_end=1.7e9 + 50, cost_held=True, end_held=True)
    found = BagReport(
        bag=bag_view(), requests=[], totals=TOTALS, first_forecast=forecast, forecast_record=record()
    )
    serve({api.GetBags: api.Bags([bag_view()]), api.GetReport: found})
    lines = cli("report").lines
    assert lines[-3:] == [*first_forecast_lines(forecast), *record_lines(record())]
    value = cli("report", "--json").value
    assert value["first_forecast"]["made"] == "2023-11-14T22:13:20.000Z"
    assert value["first_forecast"]["final_end"] == "2023-11-14T22:14:10.000Z"
    assert value["first_forecast"]["cost_held"] is True
    assert value["forecast_record"]["end"]["high"] == 0.955


def test_a_bag_without_a_forecast_has_no_lines_of_one(cli: Cli, serve: Serve) -> None:
    found = BagReport(bag=bag_view(), requests=[], totals=TOTALS)
    serve({api.GetBags: api.Bags([bag_view()]), api.GetReport: found})
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
            api.GetBags: api.Bags([bag_view()]),
            api.GetReport: BagReport(bag=bag_view(), requests=requests, totals=totals),
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


def test_the_use_of_other_bags_is_told_apart() -> None:
    shared = msgspec.structs.replace(
        TOTALS, requests=2, paid=824.0, used=3.0, used_by_others=574.0, others=[5, 7], wasted=247.0
    )
    told = "paid 13m 44s of processor time, used 3s (0 %), 9m 34s by bags 5 and 7, wasted 4m 7s"
    assert totals(shared)[0] == f"2 requests: {told}"
    assert "used 3, 574 by bags 5 and 7, wasted 247" in totals(shared)[1]
    forgotten = msgspec.structs.replace(shared, others=[])
    assert "(0 %), 9m 34s by other bags, wasted" in totals(forgotten)[0]


def test_tasks_that_run_are_told_apart() -> None:
    sums = msgspec.structs.replace(TOTALS, requests=1, paid=100.0, used=20.0, running=70.0, wasted=10.0)
    assert totals(sums)[0].endswith("used 20s (20 %), 1m 10s of tasks that run, wasted 10s")
    assert totals(sums)[1].endswith("used 20, 70 of tasks that run, wasted 10")


def test_gpu_time_is_told_where_there_is_any() -> None:
    assert not any("GPU" in line for line in totals(TOTALS))
    (line,) = [each for each in totals(msgspec.structs.replace(TOTALS, gpu_paid=7200.0)) if "GPU" in each]
    assert line == "paid 2h of GPU time (7,200 GPU-seconds)"


def test_the_page_of_a_bag_is_one_private_file(cli: Cli, serve: Serve, tmp_path: Path) -> None:
    totals = Totals(requests=1, paid=30.0, used=20.0, wasted=10.0, turnaround=250.0, first_result=12.0)
    sums = TaskSums(bag=7, runtimes=[], progress=[], failures=[], other_failures=0)
    report = BagReport(bag=bag_view(), requests=[pilot_view(3)], totals=totals)
    serve(
        {
            api.GetBags: api.Bags([bag_view()]),
            api.GetReport: report,
            api.GetActivity: api.Activity([AttemptSpan(3, 7, 0, 1, 1.7e9 + 10, 1.7e9 + 30, "result")], []),
            api.GetTaskSums: sums,
            api.GetWhy: api.Why([]),
        }
    )
    path = tmp_path / "bag.html"
    assert cli("report", "7", "--html", str(path)).out.startswith(f"{path}: ")
    assert path.stat().st_mode & 0o777 == 0o600
    (data,) = re.findall(r'id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    told = json.loads(data)
    assert told["head"]["static"] is True
    assert told["totals"]["wasted"] == 10.0
    assert told["strips"] == [
        {"pilot": 3, "spans": [[0, 1, 1.7e9 + 10, 1.7e9 + 30, "result", 7, 0]], "busy": []}
    ]
    failed = cli("report", "7", "--html", str(tmp_path / "nowhere" / "bag.html"))
    assert failed.code == 1
    assert "cannot be written: No such file or directory" in failed.err


def test_a_report_ends_with_advice(cli: Cli, serve: Serve) -> None:
    told = msgspec.structs.replace(NO_ADVICE, lines=["asked 4G of memory, used at most 600M"])
    serve(
        {
            api.GetBags: api.Bags([bag_view()]),
            api.GetReport: BagReport(bag=bag_view(), requests=[], totals=TOTALS),
            api.GetAdvice: told,
        }
    )
    assert cli("report").lines[-1] == "advice: asked 4G of memory, used at most 600M"
    assert cli("report", "--json").value["advice"] == told.lines


def test_the_list_of_requests_is_short_unless_all_are_asked_for(cli: Cli, serve: Serve) -> None:
    requests = [pilot_view(number, reason="") for number in range(1, 31)]
    report = BagReport(bag=bag_view(), requests=requests, totals=TOTALS)
    serve({api.GetBags: api.Bags([bag_view()]), api.GetReport: report})
    lines = cli("report").lines
    assert lines[2].split()[0] == "11"
    assert lines[22] == "10 earlier requests: --all lists them"
    assert cli("report", "--all").lines[2].split()[0] == "1"
    assert len(cli("report", "--json").value["requests"]) == 30


def test_pilots_are_listed(cli: Cli, serve: Serve) -> None:
    server = serve({api.GetPilots: [pilot_view(state="running", note="slow")]})
    outcome = cli("status", "--pilots", "--all")
    assert outcome.lines[1].split()[:4] == ["1", "hpc", "4711", "running"]
    assert outcome.lines[2].strip() == "note: slow"
    assert server.asked(api.GetPilots) == [api.GetPilots(ended=True)]
    server.answers[api.GetPilots] = []
    assert "no pilots" in cli("status", "--pilots").out
    assert "adaptor status all" in cli("status", "--all").err
