"""The tail phase of BaTS, in small."""

from __future__ import annotations

import random

import pytest

from adaptor_experiments.bats.design import KINDS, SAMPLERS, SITES, WAYS, Settings, bag
from adaptor_experiments.bats.ending import TailPhase
from adaptor_experiments.bats.experiment import Piece, of, run_piece
from adaptor_experiments.bats.sampling import IDLE, sample
from adaptor_experiments.commands.replay import replay
from adaptor_experiments.tables import Runs
from tests.experiments.bats.endings import SMALL, ending
from tests.experiments.leavings import rows_of, top_of
from tests.simulation.invoking_replay import call


@pytest.mark.parametrize("kind", KINDS)
def test_bags_have_their_shape(kind):
    whole = Settings()
    found = bag(kind, whole, 0)
    assert len(found) == 1000
    assert (found > 0).all()
    assert (found == bag(kind, whole, 0)).all()
    assert (found != bag(kind, whole, 1)).any()
    spread = found.std() / found.mean()
    assert (spread < 0.2) == (kind == "normal")
    assert found.max() <= 90 * 60


@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_is_paid_by_begun_hours_and_its_tasks_are_done(kind):
    runtimes = bag(kind, SMALL, 0)
    times = [[float(each / site.speed) for each in runtimes] for site in SITES]
    sampled = sample(times, random.Random(1))
    assert len(sampled.done) == 30, "seven of them at every site"
    prices = [site.price for site in SITES]
    assert sampled.cost >= SAMPLERS * sum(prices), "each machine at least an hour"
    work = sum(sum(sorted(own)[:7]) / 3600 * price for own, price in zip(times, prices, strict=True))
    assert sampled.cost > work
    for machine in sampled.fleet.machines:
        assert machine.task == IDLE
        assert 0 < machine.paid_until <= 3600
    state = ending(kind)[0]
    assert state.fleet.spent >= sampled.cost, "it counts towards the budget"


def test_the_money_of_the_sample_is_part_of_the_budget():
    for run in run_piece(Piece("normal", 0, SMALL)):
        assert 0 < run.sampled < run.allowed
        assert run.spent > run.sampled


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("line", [1, -1])
def test_replicas_never_cost_an_unpaid_unit(kind, line):
    state, times = ending(kind, line=line)
    found = {way: TailPhase(state, times, way, random.Random(2)).run() for way in WAYS}
    for way in ("random", "stochastic", "daemon", "perfect"):
        assert found[way].spent <= found["none"].spent + 1e-9
        assert found[way].seconds <= found["none"].seconds
    assert found["none"].replicas == found["none"].migrations == 0


@pytest.mark.parametrize("way", WAYS)
def test_every_task_ends(way):
    state, times = ending("multi-modal")
    phase = TailPhase(state, times, way, random.Random(2))
    phase.run()
    assert phase._attempts() == {}
    assert not phase._waiting


def test_a_state_can_be_ended_again_and_again():
    state, times = ending("levy")
    assert len({TailPhase(state, times, "stochastic", random.Random(2)).run() for _ in range(3)}) == 1


def test_copies_shorten_the_end():
    runs = Runs(run_piece(Piece("normal", 0, SMALL)))
    mean = {way: of(runs, "normal", "fastest", way).mean("relative") for way in WAYS}
    assert mean["perfect"] <= mean["daemon"] < mean["none"] == 100


@pytest.mark.nightly
def test_the_command_leaves_tables_figures_and_a_page(tmp_path):
    arguments = ("bats", "--output", tmp_path, "--bags", "1", "--runs", "1", "--processes", "1")
    result = call(replay, *arguments)
    assert "Runs that cost more than the budget" in result.output
    assert "(bags of each kind: 1 (whole: 30); orders of each bag: 1 (whole: 30))" in result.output
    assert len(rows_of(tmp_path / "runs.csv")) == 3 * 2 * 7
    assert (tmp_path / "report.html").read_text().count("data:image/svg+xml;base64,") == 2
    assert "Fastest budget: replicas as the daemon makes them end a bag sooner" in top_of(tmp_path)
    first = (tmp_path / "runs.csv").read_text()
    call(replay, *arguments)
    assert (tmp_path / "runs.csv").read_text() == first
