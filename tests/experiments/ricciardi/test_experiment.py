"""The experiment of Ricciardi & Hwang, in small."""

from __future__ import annotations

import functools

import pytest
from msgspec.structs import replace

from adaptor_experiments.commands.replay import replay
from adaptor_experiments.ricciardi import experiment
from adaptor_experiments.ricciardi.design import FLAVOURS, STABLE, UNSTABLE, Cell, Runtimes, target
from adaptor_experiments.ricciardi.experiment import EXPERIMENT, Settings, cells, parameters, run_once
from adaptor_experiments.ricciardi.production import Production
from tests.experiments.leavings import rows_of, top_of
from tests.simulation.invoking_replay import call


class Constant:
    """Always the same processors; asked every ten seconds."""

    def __init__(self, counts):
        self.counts, self.ended, self.states = counts, [], []

    def finished(self, site, runtime):
        self.ended.append((site, runtime))

    def decide(self, state):
        self.states.append(state)
        return self.counts, state.now + 10.0


def produce(tasks=400, change="task"):
    controller = Constant([20, 10])
    outcome = Production(STABLE[:2], Runtimes(STABLE[:2], [1], change, 6.0), tasks).run(controller)
    return controller, outcome


def test_every_task_runs_once_and_is_paid_for():
    controller, outcome = produce()
    assert len(controller.ended) == 400
    paid = sum(runtime * STABLE[site].cost for site, runtime in controller.ended)
    assert outcome.credits == pytest.approx(paid)
    assert outcome.steps == len(controller.states)


def test_processors_are_never_more_than_wanted_and_states_add_up():
    controller, _ = produce()
    for state in controller.states[1:]:
        running = [sum(each.site == site for each in state.running) for site in (0, 1)]
        assert running[0] <= 20
        assert running[1] <= 10
        assert state.waiting <= 400 - sum(running)
    spent = [state.spent for state in controller.states]
    assert spent == sorted(spent)


def test_a_resource_that_changes_as_a_whole_shows_one_time_in_a_period():
    controller, _ = produce(change="period")
    assert len({runtime for site, runtime in controller.ended if site == 0}) < 20


def test_runtimes_do_not_depend_on_the_allocation():
    first, second = (Runtimes(STABLE[:count], [3], "task", 6.0) for count in (2, 4))
    assert [first.next(1, now) for now in range(50)] == [second.next(1, 0.0) for _ in range(50)]


def test_targets_are_the_middle_of_what_is_possible():
    found = target(UNSTABLE[:2], "time", 2000)
    assert found.seconds == pytest.approx((2000 / (100 / 7 + 20) + 100) / 2)
    assert 16_000 < found.credits < 16_300
    assert 16_000 < target(UNSTABLE[:2], "cost", 2000).credits < 16_400


def test_cells_are_those_of_both_figures():
    wanted = [each for each in cells() if (each.change, each.variation) == ("task", "printed")]
    assert len(wanted) == 2 * 3 * 2 * 3
    assert len(set(wanted)) == len(wanted)


def test_the_daemon_meets_a_time_that_the_paper_misses():
    settings = Settings(tasks=800)
    found = {flavour: run_once(Cell(2, 2, "time", flavour), settings, 0) for flavour in FLAVOURS}
    assert found["paper"].reached > 108
    assert found["even odds"].reached < 104
    assert found["daemon"].reached < 105
    assert run_once(Cell(2, 2, "time", "daemon"), settings, 0) == found["daemon"]


def test_the_daemon_stays_within_a_budget():
    settings = Settings(tasks=800)
    assert run_once(Cell(2, 2, "cost", "daemon"), settings, 0).cost < 101


def test_the_resources_are_those_of_the_paper_and_a_number_that_differs_is_said():
    rows = parameters(Settings(tasks=300)).rows
    assert {row[-1] for row in rows if row[0].startswith("Table")} == {"agrees"}
    assert next(row for row in rows if row[1] == "tasks") == ["§4", "tasks", "2,000", "300", "differs"]


@pytest.mark.nightly
def test_the_command_leaves_tables_figures_and_a_page(tmp_path, monkeypatch):
    small = replace(EXPERIMENT, plan=functools.partial(EXPERIMENT.plan, tasks=300))
    monkeypatch.setattr(experiment, "EXPERIMENT", small)
    monkeypatch.setattr(experiment, "COUNTS", (2,))
    result = call(replay, "cost-aware", "--output", tmp_path, "--runs", "6", "--processes", "1")
    assert "daemon: unstable resources reach" in result.output
    assert "Not the whole experiment (runs of each kind: 6 (whole: 50))" in result.output
    assert len(rows_of(tmp_path / "runs.csv")) == 2 * 2 * 2 * 3 * 6 + 2 * 2 * (1 + 5)
    assert (tmp_path / "report.html").read_text().count("data:image/svg+xml;base64,") == 2
    assert "paper: unstable resources reach" in top_of(tmp_path)
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == [
        "figure-1.png", "figure-1.svg", "figure-2.png", "figure-2.svg",
    ]  # fmt: skip
