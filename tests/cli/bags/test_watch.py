"""The live display on a terminal of ordinary width."""

from __future__ import annotations

import pytest

from adaptor import api
from adaptor.api.fields import Estimate
from adaptor.cli.bags.watch import display
from adaptor.cli.follow import Overview
from tests.cli.fake_control import running_bag

AHEAD = api.ForecastView(cost=None, end=Estimate(1030.0, 1060.0, 1090.0), deadline=None)


def test_a_forecast_leaves_room_for_the_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "112")
    list(display([Overview(1000.0, [running_bag(8, forecast=AHEAD)], [])]))
    lines = capsys.readouterr().out.splitlines()
    assert any("━━━━" in line for line in lines)
    assert any(line.startswith("bag 8: done ") for line in lines)
