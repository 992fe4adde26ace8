"""`why`: the reasons of decisions, line by line."""

from __future__ import annotations

from adaptor.protocol import control
from adaptor.views import Explanation
from tests.cli.fake_control import bag_view
from tests.cli.invoking import Cli, Serve


def test_why(cli: Cli, serve: Serve) -> None:
    lines = [
        Explanation(time=1_700_000_000.0, site="hpc", subject="pilot 2", kind="issued", text="asks 4 × 10m"),
        Explanation(time=1_700_000_001.0, site="hpc", subject="hpc", kind="withheld", text="3 requests"),
    ]
    server = serve({control.GetWhy: control.Why(lines), control.GetBags: control.Bags([bag_view()])})
    outcome = cli("why", "last", "--limit", "5")
    assert outcome.lines[0].endswith("hpc pilot 2: issued: asks 4 × 10m")
    assert outcome.lines[1].endswith("hpc: withheld: 3 requests")
    assert server.asked(control.GetWhy) == [control.GetWhy(7, None, 5)]
    assert cli("why", "--pilot", "2", "--json").value[0]["time"] == "2023-11-14T22:13:20.000Z"
    server.answers[control.GetBags] = control.Bags([bag_view(), bag_view(8)])
    assert "selects 2 bags; select one" in cli("why", "all").err
