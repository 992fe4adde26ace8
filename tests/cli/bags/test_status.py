"""`status`: bags, pilots and what stalls the daemon; as text and as JSON."""

from __future__ import annotations

from pathlib import Path

from adaptor import api
from adaptor.api import ErrorExample, ForecastView
from adaptor.model import Estimate
from tests.cli.fake_control import bag_view, daemon_view, pilot_view, running_bag
from tests.cli.invoking import Cli, Serve
from tests.cli.test_sentences import record


def test_status(cli: Cli, serve: Serve) -> None:
    serve(
        {
            api.GetBags: api.Bags([bag_view(), running_bag(8, name="bad\x1b[2Jname", sites=["hpc"])]),
            api.GetPilots: [pilot_view(state="running", note="no worker yet")],
        }
    )
    outcome = cli("status")
    assert outcome.code == 0
    assert outcome.lines[0].split()[:4] == ["bag", "name", "state", "done"]
    assert outcome.lines[1].split()[:4] == ["7", "render", "done", "10/10"]
    assert "\x1b" not in outcome.lines[2]
    assert outcome.lines[3].endswith("1 pilot: 1 running (6 processors)")
    assert outcome.lines[4] == "pilot 1: no worker yet"


def test_a_bag_of_which_nothing_runs_waits_and_a_reason_of_several_is_said_once(
    cli: Cli, serve: Serve
) -> None:
    refused = "hpc refuses requests: invalid account"
    bags = [running_bag(number, running=0, held_off=refused) for number in (3, 4)]
    serve({api.GetBags: api.Bags([*bags, running_bag(5, running=2)]), api.GetPilots: []})
    lines = cli("status").lines
    assert [line.split()[2] for line in lines[1:4]] == ["waiting", "waiting", "running"]
    assert [line for line in lines if refused in line] == [f"bags 3-4: {refused}"]


def test_a_bag_that_has_paused_says_why_and_what_its_task_wrote(
    cli: Cli, serve: Serve, tmp_path: Path
) -> None:
    wrote = tmp_path / "3.err"
    wrote.write_text("".join(f"line {number}\x1b[2J\n" for number in range(2000)))
    paused = running_bag(
        paused="bag 7 is paused: why",
        halted=True,
        evidence=ErrorExample(3, 1),
        output=str(tmp_path),
        running=0,
    )
    server = serve({api.GetBags: api.Bags([paused]), api.GetPilots: []})
    lines = cli("status").lines
    assert lines[1].split()[2] == "paused"
    assert lines[2] == "bag 7 is paused: why"
    assert [line.rstrip("J2[·") for line in lines[3:8]] == [
        f"  | line {number}" for number in range(1995, 2000)
    ]
    wrote.unlink()
    assert cli("status").lines[2] == "bag 7 is paused: why", "the file may be gone"
    outcome = cli("watch", "--quiet", "7")
    assert (outcome.code, outcome.out) == (4, "")
    assert outcome.err == "bag 7 is paused: why\n"
    assert cli("watch", "7").code == 4
    server.answers[api.GetBags] = api.Bags([bag_view()])
    assert cli("watch", "--quiet", "7").code == 0


def test_blocked_tasks_are_not_waiting_ones_and_the_bags_that_end_before_are_named(
    cli: Cli, serve: Serve
) -> None:
    after = running_bag(8, running=0, waiting=0, blocked=6, awaits=[5, 7])
    serve({api.GetBags: api.Bags([bag_view(), after]), api.GetPilots: []})
    title, _, row, awaits, *_ = cli("status").lines
    told = dict(zip(title.split(), row.split(), strict=False))
    assert (told["waiting"], told["blocked"]) == ("0", "6")
    assert awaits == "bag 8 waits for bags 5 and 7"
    assert cli("status", "--json").value["bags"][1]["awaits"] == [5, 7]


def test_status_as_json(cli: Cli, serve: Serve) -> None:
    serve({api.GetBags: api.Bags([bag_view()]), api.GetPilots: [pilot_view(predicted_start=None)]})
    value = cli("status", "--json").value
    assert value["bags"][0]["submitted"] == "2023-11-14T22:13:20.000Z"
    assert value["bags"][0]["running"] == 0
    assert value["pilots"][0]["tr"] == 600.0
    assert isinstance(value["pilots"][0]["tr"], float)
    assert value["pilots"][0]["predicted_start"] is None
    assert value["daemon"]["workers"] == 2


AHEAD = ForecastView(cost=Estimate(0.9, 1.0, 1.2), end=Estimate(1.7e9, 1.7e9, 1.7e9 + 60), deadline=None)


def test_a_forecast_is_shown_and_its_record_is_for_programs(cli: Cli, serve: Serve) -> None:
    found = api.Bags([bag_view(), running_bag(8, forecast=AHEAD)], record())
    server = serve({api.GetBags: found, api.GetPilots: []})
    outcome = cli("status")
    assert outcome.lines[3].startswith("bag 8: done ")
    assert ", will cost about 1 credits (0.9 to 1.2)" in outcome.lines[3]
    assert "forecast accuracy" not in outcome.out
    assert server.asked(api.GetBags) == [api.GetBags("recent", record=False)]
    value = cli("status", "--json").value
    assert value["forecast_record"]["bags"] == 23
    assert value["forecast_record"]["cost"]["held"] == 21
    assert value["forecast_record"]["not_counted"] == {}


def test_a_paused_bag_says_why_and_has_no_forecast(cli: Cli, serve: Serve) -> None:
    paused = running_bag(8, forecast=AHEAD, paused="bag 8 is paused: 0.1 credits are left")
    serve({api.GetBags: api.Bags([paused], None), api.GetPilots: []})
    lines = cli("status").lines
    assert "bag 8 is paused: 0.1 credits are left" in lines
    assert not any(line.startswith("bag 8: done") for line in lines)


def test_an_open_bag_without_tasks_says_what_ends_it(cli: Cli, serve: Serve) -> None:
    idle = {"open": True, "running": 0, "waiting": 0}
    bags = [
        running_bag(7, **idle),
        running_bag(8, **idle, close_idle=300.0),
        running_bag(9, **{**idle, "waiting": 1}),
    ]
    serve({api.GetBags: api.Bags(bags, None), api.GetPilots: []})
    assert [line for line in cli("status").lines if " is open" in line] == [
        "bag 7 is open: adaptor append 7 --close ends it",
        "bag 8 is open: it ends 5m after its program has left",
    ]


def test_one_list_at_a_time(cli: Cli) -> None:
    outcome = cli("status", "--sites", "--daemon")
    assert outcome.code == 2
    assert "--pilots, --sites and --daemon exclude each other" in outcome.err


def test_status_where_nothing_was_ever_submitted(cli: Cli) -> None:
    outcome = cli("status")
    assert outcome.code == 0
    assert "no bags" in outcome.out
    assert "no daemon is running" in outcome.err
    nothing = {"bags": [], "forecast_record": None, "daemon": None, "pilots": []}
    assert cli("status", "--json").value == nothing
    assert cli("status", "--pilots", "--json").value == []
    assert cli("why", "--json").value == []


def test_status_of_a_daemon_that_stalls(cli: Cli, serve: Serve) -> None:
    view = daemon_view()
    stalled = type(view)(**{**{f: getattr(view, f) for f in view.__struct_fields__}, "stalled": "disk full"})
    serve({api.GetBags: api.Bags([]), api.GetPilots: [], api.GetDaemon: stalled})
    assert "daemon stalled: disk full" in cli("status").out
    assert "stalled: disk full" in cli("status", "--daemon").out
