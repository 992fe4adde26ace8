"""`pilot list`: one line for each pilot."""

from __future__ import annotations

from adaptor.protocol import control
from tests.cli.fake_control import pilot_view
from tests.cli.invoking import Cli, Serve


def test_pilot_list(cli: Cli, serve: Serve) -> None:
    server = serve({control.GetPilots: control.Pilots([pilot_view(state="running", note="slow")])})
    outcome = cli("pilot", "list", "--all")
    assert outcome.lines[1].split()[:4] == ["1", "hpc", "4711", "running"]
    assert outcome.lines[2].strip() == "note: slow"
    assert server.asked(control.GetPilots) == [control.GetPilots(ended=True)]
    server.answers[control.GetPilots] = control.Pilots([])
    assert "no pilots" in cli("pilot", "list").out
