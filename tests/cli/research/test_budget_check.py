"""What `adaptor replay budget-check` says."""

from __future__ import annotations

import pytest

from adaptor.cli.research.replay import replay
from adaptor.experiments.forecasts import campaign, coverage, design, report
from tests.simulation.invoking_replay import call


@pytest.fixture
def two_bags(monkeypatch):
    for module in (design, coverage, report):
        monkeypatch.setattr(module, "BAGS", (design.IMAGE, design.DEMO))


@pytest.mark.parametrize(("least", "exit_code"), [(0.0, 0), (1.1, 1)])
def test_a_promise_that_is_not_kept_fails_the_check(two_bags, monkeypatch, tmp_path, least, exit_code):
    monkeypatch.chdir(tmp_path)  # nothing is looked for in the folder of the source
    monkeypatch.setattr(coverage, "LEAST", least)
    result = call(replay, "budget-check", "--orders", 2, "--output", "out", "--processes", 1)
    assert result.exit_code == exit_code, result.output
    assert ("NOT KEPT" in result.output) is bool(exit_code)
    assert result.output.count("image rendering") >= len(design.PREFERENCES) * len(design.UNITS)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/svg+xml;base64,") == 1
    assert ("NOT KEPT" in page.partition("</section>")[0]) is bool(exit_code)
    assert len((tmp_path / "out" / "coverage.csv").read_text().splitlines()) == 1 + 2 * 2 * 2


def test_quick_is_a_few_orders(two_bags, monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(campaign, "in_processes", lambda run, pieces, _: asked.extend(pieces) or [])
    with pytest.raises(ValueError, match="zip"):
        call(replay, "budget-check", "--quick", "--output", tmp_path / "out")
    assert {len(piece.orders) for piece in asked} == {5}


def test_two_processes_find_the_same_as_one(two_bags):
    settings = design.Settings(seed=4, orders=2)
    one, two = (campaign.run_all(settings, processes, lambda count: None) for processes in (1, 2))
    assert one == two
