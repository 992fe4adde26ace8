"""`pilot list`: one line for each pilot."""

from __future__ import annotations

from adaptor import api
from tests.cli.fake_control import pilot_view
from tests.cli.invoking import Cli, Serve


def test_pilot_list(cli: Cli, serve: Serve) -> None:
    server = serve({api.GetPilots: [pilot_view(state="running", note="slow")]})
    outcome = cli("pilot", "list", "--all")
    assert outcome.lines[1].split()[:4] == ["1", "hpc", "4711", "running"]
    assert outcome.lines[2].strip() == "note: slow"
    assert server.asked(api.GetPilots) == [api.GetPilots(ended=True)]
    server.answers[api.GetPilots] = []
    assert "no pilots" in cli("pilot", "list").out
