"""What `adaptor replay budget-check` says."""

from __future__ import annotations

import pytest

from adaptor.cli.research.replay import replay
from adaptor.experiments.forecasts import campaign, coverage, design
from tests.simulation.invoking_replay import call


@pytest.fixture
def two_bags(monkeypatch):
    for module in (design, coverage):
        monkeypatch.setattr(module, "BAGS", (design.IMAGE, design.DEMO))


@pytest.mark.parametrize(("least", "exit_code"), [(0.0, 0), (1.1, 1)])
def test_a_promise_that_is_not_kept_fails_the_check(two_bags, monkeypatch, least, exit_code):
    monkeypatch.setattr(coverage, "LEAST", least)
    result = call(replay, "budget-check", "--orders", 2, "--processes", 1)
    assert result.exit_code == exit_code, result.output
    assert ("NOT KEPT" in result.output) is bool(exit_code)
    assert result.output.count("image rendering") >= len(design.PREFERENCES) * len(design.UNITS)


def test_two_processes_find_the_same_as_one(two_bags):
    settings = design.Settings(seed=4, orders=2)
    one, two = (campaign.run_all(settings, processes, lambda count: None) for processes in (1, 2))
    assert one == two
