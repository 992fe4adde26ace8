"""`why`: the reasons of decisions, line by line."""

from __future__ import annotations

import time

import pytest

from adaptor import api
from adaptor.api import Explanation
from tests.cli.fake_control import bag_view, running_bag
from tests.cli.invoking import Cli, Serve


def test_why(cli: Cli, serve: Serve) -> None:
    lines = [
        Explanation(time=1_700_000_000.0, site="hpc", subject="pilot 2", kind="issued", text="asks 4 × 10m"),
        Explanation(time=1_700_000_001.0, site="hpc", subject="hpc", kind="withheld", text="3 requests"),
    ]
    server = serve({api.GetWhy: api.Why(lines), api.GetBags: api.Bags([bag_view()])})
    outcome = cli("why", "last", "--limit", "5")
    assert outcome.lines[0].endswith("hpc pilot 2: issued: asks 4 × 10m")
    assert outcome.lines[1].endswith("hpc: withheld: 3 requests")
    assert server.asked(api.GetWhy) == [api.GetWhy(7, None, 5)]
    assert cli("why", "--pilot", "2", "--json").value[0]["time"] == "2023-11-14T22:13:20.000Z"
    server.answers[api.GetBags] = api.Bags([bag_view(), bag_view(8)])
    assert "selects 2 bags; select one" in cli("why", "all").err


@pytest.mark.parametrize(("zone", "said"), [("UTC", True), ("CET-1", False)])
def test_the_clock_of_a_daemon_in_another_zone_is_named(
    cli: Cli, serve: Serve, monkeypatch: pytest.MonkeyPatch, zone: str, said: bool
) -> None:
    """A text has the time of its daemon, a line that of its reader."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        line = Explanation(time=1.7e9, site="hpc", subject="hpc", kind="issued", text="done about 23:20:00")
        serve({api.GetWhy: api.Why([line], 1, 3600), api.GetBags: api.Bags([bag_view()])})
        told = cli("why", "last").err
    finally:
        monkeypatch.undo()
        time.tzset()
    words = "are those of the daemon, UTC+01:00; the first one of each line is yours, UTC+00:00"
    assert (words in told) is said


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (("why", "--kind", "witheld"), "no such word 'witheld' (did you mean 'withheld'?)"),
        (
            ("results", "--state", "xyz"),
            "no such word 'xyz' (known are waiting, running, done, failed, cancelled)",
        ),
    ],
)
def test_a_mistyped_word_names_the_nearest(cli: Cli, args: tuple[str, ...], hint: str) -> None:
    outcome = cli(*args)
    assert outcome.code == 2
    assert hint in outcome.err


def test_new_lines_are_followed_to_the_end_of_the_bag(
    cli: Cli, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adaptor.cli.bags.why.PAUSE", 0.0)
    looks = 0

    def told(question: api.GetWhy) -> api.Why:
        number = question.after + 1
        line = Explanation(time=1.7e9, site="hpc", subject="hpc", kind="withheld", text=f"reason {number}")
        return api.Why([line], number)

    def bags(_question: api.GetBags) -> api.Bags:
        nonlocal looks
        looks += 1
        return api.Bags([running_bag() if looks < 4 else bag_view()])

    server = serve({api.GetWhy: told, api.GetBags: bags})
    outcome = cli("why", "7", "--kind", "withheld", "--kind", "issued", "--follow")
    assert [line.rsplit(" ", 1)[1] for line in outcome.lines] == ["1", "2", "3", "4"]
    assert {tuple(each.kinds) for each in server.asked(api.GetWhy)} == {("withheld", "issued")}
    assert cli("why", "--follow", "--json").code == 2
