"""`adaptor when`: the words, JSON, wrong input, through the daemon and without one."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from adaptor import api
from adaptor.api import StartChoice, StartMap, StartRecord, StartView
from adaptor.cli.operating.when import map_lines
from adaptor.client import when as client
from adaptor.config.schema import SiteConfig
from adaptor.daemon import start_view
from adaptor.forecast.asked import AskedRequest
from adaptor.model import Estimate
from backends import registry
from tests.cli.invoking import Cli, Serve

NOW = 1_700_000_000.0
"""22:13:20 UTC."""
LATER = StartView(
    site="hpc",
    partition="batch",
    observed=NOW,
    at=NOW,
    processors=64,
    tr=10_800.0,
    planned=NOW + 4000,
    start=Estimate(NOW + 600, NOW + 1800, NOW + 4500),
    reason="12 jobs that wait come first",
    choices=[
        StartChoice(processors=64, tr=7200.0, planned=NOW, start=Estimate(NOW, NOW, NOW + 30)),
        StartChoice(processors=32, tr=10_800.0, planned=NOW + 9, start=Estimate(NOW, NOW + 300, NOW + 900)),
    ],
    remarks=["jobs that come later with a higher priority"],
    record=StartRecord(starts=20, held=18, error=120.0),
)
NEVER = StartView(
    site="far", observed=NOW, at=NOW, processors=64, tr=10_800.0, never="1h is the most (MaxTime)"
)
DOWN = StartView(site="away", observed=None, problem="squeue hangs\x1b[31m")


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")


def test_the_earliest_place_in_full_and_a_line_for_the_others(cli: Cli, serve: Serve) -> None:
    daemon = serve({api.GetStart: [LATER, NEVER]})
    outcome = cli("when", "-p", "64", "-t", "3h")
    assert outcome.code == 0
    assert daemon.asked(api.GetStart) == [api.GetStart(request=AskedRequest(tr=10_800.0, processors=64))]
    assert outcome.lines == [
        "hpc/batch: 64 processors for 3h would start about 22:43 (22:23 to 23:28)",
        "  because 12 jobs that wait come first",
        "  sooner: 64 processors for 2h: now; 32 processors for 3h: about 22:18 (22:13 to 22:28)",
        "  if all jobs run to their limits: 23:20:00",
        "  record: 18 of 20 jobs started within their intervals, the median 2m off",
        "  not known: jobs that come later with a higher priority",
        "far: never: 1h is the most (MaxTime)",
    ]


def test_all_that_can_be_asked(cli: Cli, serve: Serve) -> None:
    daemon = serve({api.GetStart: [LATER]})
    cli(
        *("when", "-p", "8", "-t", "1h", "--nodes", "2", "--mem", "4G", "--gpus", "a100:2", "--site", "hpc"),
        *("--partition", "batch", "--at", "2030-01-01T08:00"),
    )
    assert daemon.asked(api.GetStart) == [
        api.GetStart(
            request=AskedRequest(tr=3600.0, processors=8, nodes=2, memory=4 * 2**30, gpus=2, gpu_type="a100"),
            site="hpc",
            partition="batch",
            at=1_893_484_800.0,
        )
    ]


def test_a_queue_that_could_not_be_read_is_said(cli: Cli, serve: Serve) -> None:
    serve({api.GetStart: [LATER, DOWN]})
    outcome = cli("when", "-p", "1", "-t", "1h")
    assert outcome.code == 1
    assert outcome.lines[-1] == "away: squeue hangs·[31m"


@pytest.mark.parametrize(
    ("view", "line"),
    [
        ({"start": Estimate(NOW, NOW, NOW + 30)}, "hpc/batch: 64 processors for 3h would start now"),
        ({"start": Estimate(NOW, NOW, NOW + 600)},
         "hpc/batch: 64 processors for 3h would start now (or by 22:23)"),
        ({"at": NOW + 86_400, "start": Estimate(NOW + 86_400, NOW + 86_400, NOW + 86_430)},
         "hpc/batch: 64 processors for 3h would start at once, at 11-15 22:13"),
        ({"start": None, "reason": "hidden jobs hold it"},
         "hpc/batch: 64 processors for 3h: no start can be foreseen: hidden jobs hold it"),
        ({"job": "17", "at": None, "standing": "waits"},
         "hpc/batch: job 17 starts about 22:43 (22:23 to 23:28)"),
        ({"job": "17", "start": None, "standing": "running", "started": NOW - 60},
         "hpc/batch: job 17 has run since 22:12:20"),
        ({"job": "17", "start": None, "standing": "ended"}, "hpc/batch: job 17 has ended"),
        ({"job": "17", "start": None, "standing": "held", "reason": "its account is not valid"},
         "hpc/batch: job 17: no start can be foreseen: its account is not valid"),
    ],
)  # fmt: skip
def test_each_answer_in_words(cli: Cli, serve: Serve, view: dict[str, object], line: str) -> None:
    serve({api.GetStart: [msgspec.structs.replace(LATER, **view)]})
    assert cli("when", "--job", "17").lines[0] == line


def test_the_schedulers_own_estimate_is_named_as_such(cli: Cli, serve: Serve) -> None:
    serve({api.GetStart: [msgspec.structs.replace(LATER, job="17", scheduler=NOW + 60, record=None)]})
    lines = cli("when", "--job", "17").lines
    assert "  the scheduler's own estimate: 22:14:20" in lines
    assert any(line.startswith("  record: too little known") for line in lines)


def test_json(cli: Cli, serve: Serve) -> None:
    serve({api.GetStart: [LATER, DOWN]})
    outcome = cli("when", "-p", "64", "-t", "3h", "--json")
    first, down = outcome.value
    assert outcome.code == 1
    assert first["start"] == {
        "low": "2023-11-14T22:23:20.000Z",
        "value": "2023-11-14T22:43:20.000Z",
        "high": "2023-11-14T23:28:20.000Z",
    }
    assert (first["tr"], first["choices"][0]["tr"]) == (10_800.0, 7200.0)
    assert down["problem"].startswith("squeue")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-p", "8"], "-t 3h"),
        (["-p", "0", "-t", "1h"], "-p"),
        (["-p", "1", "-t", "soon"], "-t"),
        (["-p", "1", "-t", "0"], "above 0"),
        (["-p", "1", "-t", "1h", "--gpus", "0.5"], "whole GPUs"),
        (["-p", "1", "-t", "1h", "--at", "never"], "is not a time: write 12h (from now)"),
        (["-p", "1", "-t", "1h", "--mem", "much"], "--mem"),
        (["-p", "5", "-t", "1h", "--nodes", "2"], "do not lie evenly"),
    ],
)
def test_wrong_words(cli: Cli, words: list[str], said: str) -> None:
    outcome = cli("when", *words)
    assert outcome.code == 2
    assert said in outcome.err


def configured(tmp_path: Path) -> str:
    path = tmp_path / "c.yaml"
    path.write_text("sites:\n  here:\n    backend: local\n    processors: 3\n")
    return str(path)


def test_without_a_daemon_the_queue_is_read_once(cli: Cli, tmp_path: Path) -> None:
    config = configured(tmp_path)
    outcome = cli("when", "-p", "2", "-t", "1h", "--config", config)
    assert "no daemon is running" in outcome.err
    assert outcome.lines[0] == "here: 2 processors for 1h would start now"
    assert cli("when", "-p", "2", "-t", "1h", "--config", config, "--at", "tomorrow").code == 0
    for words, said in (
        (["-p", "4", "-t", "1h"], "it needs 4 processors"),
        (["-p", "1", "-t", "1h", "--site", "far"], "there is no site 'far'"),
        (["--job", "77"], "job 77 is not known"),
    ):
        outcome = cli("when", *words, "--config", config)
        assert outcome.code == 2
        assert said in outcome.err


def test_without_a_configuration_the_scheduler_here_is_asked(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = "sites:\n  batch:\n    backend: local\n    processors: 5\n"
    monkeypatch.setattr(registry, "described_here", lambda: found)
    outcome = cli("when", "-p", "5", "-t", "1h")
    assert outcome.lines[0] == "batch: 5 processors for 1h would start now"


def test_without_a_configuration_all_partitions_are_asked_or_the_one_that_is_named(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = "sites:\n  batch:\n    backend: slurm\n    partition: batch\n"
    found += "    # partitions: {batch: {}, short: {}}\n"
    monkeypatch.setattr(registry, "described_here", lambda: found)
    asked: list[tuple[str, SiteConfig]] = []

    def read_start(name: str, site: SiteConfig, question: api.GetStart) -> list[StartView]:
        asked.append((name, site))
        return [msgspec.structs.replace(LATER, partition=question.partition)]

    monkeypatch.setattr(start_view, "read_start", read_start)
    for partition in ("", "short", "scavenger"):
        assert cli("when", "-p", "5", "-t", "1h", "--partition", partition).code == 0
    (_, every), (_, short), (name, other) = asked
    assert list(every.partitions) == list(short.partitions) == ["batch", "short"]
    assert (name, other.partition, other.partitions) == ("batch", "scavenger", {})


def test_for_programs(serve: Serve) -> None:
    daemon = serve({api.GetStart: [LATER]})
    assert client.when(processors=4, time="1h 30m", memory="2G") == [LATER]
    assert client.when(job="17") == [LATER]
    assert daemon.asked(api.GetStart) == [
        api.GetStart(request=AskedRequest(tr=5400.0, processors=4, memory=2 * 2**30)),
        api.GetStart(job="17"),
    ]
    with pytest.raises(client.UsageError):
        client.when(processors=4, time="soon")


def test_for_the_form_of_the_page(serve: Serve) -> None:
    daemon = serve({api.GetStart: [LATER]})
    form = {"p": " 4 ", "t": "1h", "nodes": "2", "mem": "2G", "gpus": "a100:1", "job": ""}
    assert client.in_words(form) == [LATER]
    asked = AskedRequest(tr=3600.0, processors=4, nodes=2, memory=2 * 2**30, gpus=1, gpu_type="a100")
    assert daemon.asked(api.GetStart) == [api.GetStart(request=asked)]
    for wrong, said in (
        ({"p": "4"}, "how long"),
        ({"p": "x", "t": "1h"}, "not a number"),
        ({"t": "x"}, "'x'"),
    ):
        with pytest.raises(client.UsageError, match=said):
            client.in_words(wrong)


def test_the_record_of_own_requests_compares_plans(cli: Cli, serve: Serve) -> None:
    record = StartRecord(starts=9, held=8, error=60.0, own=True)
    serve({api.GetStart: [msgspec.structs.replace(LATER, record=record)]})
    said = "  record: 8 of 9 requests of yours started within 10m of their plan, the median 1m off"
    assert said in cli("when", "-p", "1", "-t", "1h").lines


def _in(wait: float) -> Estimate:
    return Estimate(NOW, NOW + wait, NOW + 2 * wait)


MAP = StartView(
    site="hpc",
    partition="batch",
    observed=NOW,
    at=NOW,
    map=StartMap(
        processors=[1, 64, 1024],
        walltimes=[900.0, 86400.0],
        starts=[[_in(0), _in(90), _in(7200)], [_in(30), _in(200_000), None]],
    ),
    remarks=["jobs that come later with a higher priority"],
)


def test_a_map_of_all_sizes_and_walltimes(cli: Cli, serve: Serve) -> None:
    daemon = serve({api.GetStart: [MAP, DOWN]})
    outcome = cli("when", "--map", "--partition", "batch")
    assert outcome.lines[:4] == [
        "hpc/batch: wait by processors and walltime, read at 22:13:20",
        "          1     64  1,024 ",
        " 15m    now     2m     2h ",
        "  1d    30s  2d 7h      - ",
    ]
    assert outcome.lines[4].startswith("  record: too little known")
    assert outcome.lines[6] == "away: squeue hangs\N{MIDDLE DOT}[31m"
    assert outcome.lines[-1].startswith("wait up to  1m   10m ")
    assert outcome.code == 1, "one queue could not be read"
    assert daemon.asked(api.GetStart) == [api.GetStart(map=True, partition="batch")]
    assert client.start_map(site="hpc") == [MAP, DOWN]
    assert client.in_words({"map": "1", "p": ""}) == [MAP, DOWN]
    assert daemon.asked(api.GetStart)[1:] == [api.GetStart(map=True, site="hpc"), api.GetStart(map=True)]


def test_a_map_has_colours_on_a_terminal_unless_they_are_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[38;5;16m\x1b[48;5;157m" in "".join(map_lines([MAP]))
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in "".join(map_lines([MAP]))


def test_a_map_is_of_no_one_request(cli: Cli) -> None:
    assert "leave out -p" in cli("when", "--map", "-p", "4").err
    assert cli("when", "--map", "--job", "4").code == 2


def test_a_map_for_programs_has_all_intervals(cli: Cli, serve: Serve) -> None:
    serve({api.GetStart: [MAP]})
    (view,) = cli("when", "--map", "--json").value
    assert view["map"]["processors"] == [1, 64, 1024]
    assert view["map"]["starts"][0][1] == {
        "low": "2023-11-14T22:13:20.000Z",
        "value": "2023-11-14T22:14:50.000Z",
        "high": "2023-11-14T22:16:20.000Z",
    }
    assert view["map"]["starts"][1][2] is None


def test_a_record_that_is_not_right_says_so(cli: Cli, serve: Serve) -> None:
    record = StartRecord(starts=40, held=22, error=1200.0, right=False)
    serve({api.GetStart: [msgspec.structs.replace(LATER, record=record)]})
    told = "  record: too little known yet: 22 of 40 jobs started within their intervals, the median 20m off"
    assert told in cli("when", "-p", "64", "-t", "3h").lines
