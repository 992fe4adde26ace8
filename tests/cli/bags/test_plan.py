"""`adaptor plan`: what would become of a bag, through the daemon and without one."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from adaptor import api
from adaptor.api import PlannedRequest, PlanView
from adaptor.budget.provisioning.menu_line import Line
from adaptor.model import Estimate
from adaptor.resources import OwnNeeds
from tests.cli.invoking import Cli, Serve

NOW = 1_700_000_000.0
PLAN = PlanView(
    now=NOW,
    tasks=2,
    requests=[PlannedRequest(site="hpc", p=2, tr=600, start=NOW, reason="a hole")],
    withheld={"far": "4 requests are in the system"},
    end=Estimate(NOW + 1800, NOW + 3600, NOW + 7200),
    work=Estimate(3600.0, 7200.0, 10_800.0),
    credits=None,
    problems={"dead": "squeue hangs\x1b[31m"},
)


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")


@pytest.fixture
def bag(tmp_path: Path) -> str:
    file = tmp_path / "two.bag"
    file.write_text("true\ntrue\n", encoding="utf-8")
    return str(file)


def test_a_plan_is_told_and_nothing_is_submitted(cli: Cli, serve: Serve, bag: str) -> None:
    daemon = serve({api.GetPlan: PLAN})
    outcome = cli("plan", bag, "--time", "30m", "--site", "hpc")
    assert outcome.code == 0
    (asked,) = daemon.asked(api.GetPlan)
    assert (asked.tasks, asked.spec.time, asked.spec.sites, asked.budget) == (2, 1800.0, ("hpc",), None)
    assert asked.spec.environment == {}, "it need not travel"
    assert daemon.asked(api.Open) == []
    assert "\x1b" not in outcome.out
    assert [line.split() for line in outcome.lines[2:4]] == [
        ["site", "processors", "walltime", "start"],
        ["hpc", "2", "10m", "now"],
    ]
    assert "far: no request now: 4 requests are in the system" in outcome.lines
    assert "2 tasks: 1h to 3h of processor time" in outcome.lines
    assert any(line.startswith("done ") and " to " in line for line in outcome.lines)


@pytest.mark.parametrize(("time", "hinted"), [("", True), (', "time": "10m"', False)])
def test_who_says_no_times_is_told_that_they_help(
    cli: Cli, serve: Serve, tmp_path: Path, time: str, hinted: bool
) -> None:
    file = tmp_path / "two.jsonl"
    file.write_text(f'{{"command": "a", "time": "9m"}}\n{{"command": "b"{time}}}\n', encoding="utf-8")
    serve({api.GetPlan: PLAN})
    assert ("how long a task takes is not known" in cli("plan", str(file)).out) == hinted


def test_tasks_that_nothing_can_run_are_named_by_their_lines(cli: Cli, serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "two.jsonl"
    file.write_text('{"command": "a"}\n\n{"command": "b", "cpus": 99}\n', encoding="utf-8")
    plan = msgspec.structs.replace(PLAN, tasks=1, refused=1, reasons={1: "no node can run it"})
    daemon = serve({api.GetPlan: plan})
    outcome = cli("plan", str(file))
    assert daemon.asked(api.GetPlan)[0].needs == {1: OwnNeeds(cpus=99)}
    assert outcome.err.splitlines() == [
        "adaptor: 1 task can never run, and would fail at once:",
        f"  {file}:3: no node can run it",
    ]


def test_equal_requests_are_one_line(cli: Cli, serve: Serve, bag: str) -> None:
    pilot = PlannedRequest(site="hpc", p=1, tr=600, start=NOW, reason="a hole")
    queued = msgspec.structs.replace(pilot, start=None, tr=3600)
    serve({api.GetPlan: msgspec.structs.replace(PLAN, requests=[*[pilot] * 30, *[queued] * 4])})
    outcome = cli("plan", bag)
    rows = [line.split() for line in outcome.lines if line.startswith("hpc ")]
    assert rows == [["hpc", "30", "×", "1", "10m", "now"], ["hpc", "4", "×", "1", "1h", "-"]]


def test_where_nobody_knows_how_long_a_task_takes_an_option_for_it_is_named(
    cli: Cli, serve: Serve, bag: str
) -> None:
    daemon = serve({api.GetPlan: PLAN})
    assert "--time DURATION" in cli("plan", bag).lines[-1]
    assert "--time" not in cli("plan", bag, "--time", "30m").out
    daemon.answers[api.GetPlan] = msgspec.structs.replace(PLAN, earlier=["3 earlier tasks of fit took 4m"])
    assert "--time" not in cli("plan", bag).out


def test_credits_are_told_only_where_somebody_has_set_a_price(cli: Cli, serve: Serve, bag: str) -> None:
    priced = msgspec.structs.replace(PLAN, credits=Estimate(1.0, 2.0, 3.0))
    serve({api.GetPlan: priced})
    assert "1 to 3 credits" in cli("plan", bag).out


def line(name: str, processors: dict[str, int], seconds: float, cost: float) -> Line:
    return Line(
        name=name,
        budget=cost,
        processors=processors,
        seconds=Estimate(seconds, seconds, seconds),
        cost=Estimate(cost, cost, cost),
    )


def test_the_slots_that_a_quote_would_offer_are_told_from_cheapest_to_fastest(
    cli: Cli, serve: Serve, bag: str
) -> None:
    cheapest = line("cheapest", {"near": 2}, 48.0, 0.25)
    fastest = line("fastest", {"near": 2, "far": 4}, 17.0, 0.5)
    daemon = serve({api.GetPlan: msgspec.structs.replace(PLAN, choices=[cheapest, fastest])})
    lines = cli("plan", bag, "--time", "1s").lines
    title = lines.index("slots that a quote would offer, without their wait in the queue:")
    assert [line.split(maxsplit=3) for line in lines[title + 1 : title + 4]] == [
        ["choice", "credits", "time", "processors"],
        ["cheapest", "0.25", "48s", "2 at near"],
        ["fastest", "0.5", "17s", "2 at near, 4 at far"],
    ]
    daemon.answers[api.GetPlan] = msgspec.structs.replace(PLAN, choices=[cheapest])
    assert any(line.split()[:1] == ["only"] for line in cli("plan", bag, "--time", "1s").lines)


CONFIG = """
sites:
  near:
    backend: local
    processors: 2
    limits: {max_proc: 2, max_tr: 1h, max_pending_requests: 2}
    price: {explicit: 10}
  far:
    backend: local
    processors: 4
    limits: {max_proc: 4, max_tr: 1h, max_pending_requests: 2}
    price: {explicit: 40}
"""


def test_a_budget_below_the_cheapest_choice_is_said_to_be_too_little(
    cli: Cli, serve: Serve, bag: str
) -> None:
    only = line("cheapest", {"near": 4}, 600.0, 2.0)
    serve({api.GetPlan: msgspec.structs.replace(PLAN, choices=[only])})
    said = "with --budget 1 the bag is likely to pause before its last tasks: the cheapest choice costs 2"
    lines = cli("plan", bag, "--budget", "1").lines
    assert any(line.startswith(said) for line in lines)
    assert not any(line.startswith("done") for line in lines)
    assert cli("plan", bag, "--budget", "2").lines[-2].startswith("done")
    serve({api.GetPlan: msgspec.structs.replace(PLAN, credits=Estimate(1.5, 2.0, 3.0))})
    said = "with --budget 1 the bag is likely to pause before its last tasks: their work costs at least 1.5"
    assert said in cli("plan", bag, "--budget", "1").lines


def test_they_need_prices_and_the_time_of_a_task_and_no_daemon(cli: Cli, tmp_path: Path) -> None:
    config, many = tmp_path / "config.yaml", tmp_path / "many.bag"
    config.write_text(CONFIG, encoding="utf-8")
    many.write_text("true\n" * 60, encoding="utf-8")
    asked = ("plan", str(many), "--config", str(config), "--json")
    lines = cli(*asked, "--time", "1m").value["choices"]
    cheapest, fastest = lines[0], lines[-1]
    assert cheapest["processors"] == {"near": 1} or "far" not in cheapest["processors"]
    assert sum(fastest["processors"].values()) == 6
    assert cheapest["cost"]["value"] < fastest["cost"]["value"]
    assert cheapest["seconds"]["value"] > fastest["seconds"]["value"]
    assert cli(*asked).value["choices"] == [], "nobody knows how long a task takes"
    assert cli(*asked, "--time", "1m", "--allocation", "transparent").value["choices"] == []
    config.write_text(CONFIG.replace("price:", "# price:"), encoding="utf-8")
    assert cli(*asked, "--time", "1m").value["choices"] == []


def test_without_a_daemon_the_scheduler_is_asked_from_here(cli: Cli, bag: str, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "sites:\n  here:\n    backend: local\n    processors: 2\n"
        "    limits: {max_proc: 2, max_tr: 1h, max_pending_requests: 2}\n",
        encoding="utf-8",
    )
    outcome = cli("plan", bag, "--time", "1m", "--config", str(config), "--json")
    assert "no daemon is running" in outcome.err
    found = outcome.value
    (request,) = found["requests"]
    assert (request["site"], request["p"]) == ("here", 2)
    assert found["end"]["low"] <= found["end"]["value"] <= found["end"]["high"]
    assert found["credits"] is None
    unknown = cli("plan", bag, "--site", "nowhere", "--config", str(config))
    assert unknown.code == 2
    assert "no site 'nowhere'" in unknown.err
    assert "backend: local" not in unknown.err
    local = cli("plan", bag, "--site", "local", "--config", str(config))
    assert "to run tasks on this machine, add to its `sites`: `local: {backend: local}`" in local.err


@pytest.mark.parametrize(
    ("arguments", "commands"),
    [
        (["gzip", "-k", "{}", ":::", "a", "b c"], ["gzip -k a", "gzip -k 'b c'"]),
        (["--template", "gzip {/}", ":::", "x/a"], ["gzip a"]),
        (["-N", "2", "cmp {1} {2}", ":::", "a", "b"], ["cmp a b"]),
        (["--", "echo", "{}", ":::", "a"], ["echo a"]),
        (["--", "./prog", "a b"], ["./prog 'a b'"]),
    ],
)
def test_the_commands_are_shown_and_nobody_is_asked(
    cli: Cli, arguments: list[str], commands: list[str]
) -> None:
    assert cli("plan", "--commands", *arguments).lines == commands
    assert cli("plan", "--commands", "--json", *arguments).value == commands


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([":::", "a"], "write a command before it"),
        (["--template", "x {}", "y", ":::", "a"], "write a command before it"),
        (["--template", "x", "-N", "2"], "for values behind ':::'"),
        (["-P", "a=1", "x", ":::", "a"], "give one of both"),
        (["x", ":::"], "no values"),
    ],
)
def test_values_without_their_command(cli: Cli, arguments: list[str], problem: str) -> None:
    outcome = cli("plan", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert problem in outcome.err
