"""What `adaptor replay budget-check` says."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from adaptor.errors import UsageError
from adaptor_experiments.commands.replay import replay
from adaptor_experiments.forecasts import coverage, paid_bags
from adaptor_experiments.resumable import all_rows
from tests.simulation.invoking_replay import call

TWO = ("sorted", "demo")


@pytest.mark.parametrize(("least", "exit_code"), [(0.0, 0), (1.1, 1)])
def test_a_promise_that_is_not_kept_fails_the_check(monkeypatch, tmp_path, least, exit_code):
    monkeypatch.chdir(tmp_path)  # nothing is looked for in the folder of the source
    monkeypatch.setattr(coverage, "LEAST", least)
    result = call(
        replay, "budget-check", "--orders", 4, "--bags", "sorted,demo", "--output", "out", "--processes", 1
    )
    assert result.exit_code == exit_code, result.output
    assert ("NOT KEPT" in result.output) is bool(exit_code)
    assert result.output.count("sorted") >= len(paid_bags.WAYS)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/svg+xml;base64,") == 1
    assert ("NOT KEPT" in page.partition("</section>")[0]) is bool(exit_code)
    assert len((tmp_path / "out" / "coverage.csv").read_text().splitlines()) == 1 + len(TWO) * len(
        paid_bags.WAYS
    )


@pytest.mark.parametrize(
    ("given", "orders", "bags"),
    [((), 20, tuple(paid_bags.BAG)), (("--orders", 6, "--bags", "demo,sorted"), 6, TWO)],
)
def test_quick_is_a_few_orders_where_no_number_is_given(monkeypatch, tmp_path, given, orders, bags):
    asked = []
    recording = replace(coverage.EXPERIMENT, run=lambda piece: asked.append(piece) or [])
    monkeypatch.setattr(coverage, "EXPERIMENT", recording)
    with pytest.raises(IndexError):  # there is no row
        call(replay, "budget-check", "--quick", *given, "--output", tmp_path / "out", "--processes", 1)
    found = [(piece.bag, order) for piece in asked for order in piece.orders]
    assert found == [(bag, order) for bag in bags for order in range(orders)]


@pytest.mark.parametrize("wrong", ["", "sorted,unknown"])
def test_kinds_that_there_are_none_of(tmp_path, wrong):
    with pytest.raises(UsageError, match="is none of sorted, sorted-file, shuffled"):
        call(replay, "budget-check", "--bags", wrong, "--output", tmp_path / "out")


def test_two_processes_find_the_same_as_one():
    settings = paid_bags.Settings(seed=4, orders=2, bags=TWO)
    one, two = (all_rows(paid_bags.run_piece, paid_bags.pieces(settings), processes) for processes in (1, 2))
    assert str(one) == str(two), "of which some figures are NaN"
