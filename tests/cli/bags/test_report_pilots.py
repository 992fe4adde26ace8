"""`status --pilots`: one line for each pilot."""

from __future__ import annotations

from adaptor import api
from tests.cli.fake_control import pilot_view
from tests.cli.invoking import Cli, Serve


def test_pilots_are_listed(cli: Cli, serve: Serve) -> None:
    server = serve({api.GetPilots: [pilot_view(state="running", note="slow")]})
    outcome = cli("status", "--pilots", "--all")
    assert outcome.lines[1].split()[:4] == ["1", "hpc", "4711", "running"]
    assert outcome.lines[2].strip() == "note: slow"
    assert server.asked(api.GetPilots) == [api.GetPilots(ended=True)]
    server.answers[api.GetPilots] = []
    assert "no pilots" in cli("status", "--pilots").out
    assert "adaptor status all" in cli("status", "--all").err
