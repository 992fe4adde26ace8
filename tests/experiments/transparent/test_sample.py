"""Samples of the experiment through the scheduling core itself, field by field as by the kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor_experiments.transparent.design import MACHINES, Piece, Settings
from adaptor_experiments.transparent.sample import run_piece
from adaptor_simulation.tasks.broker_tasks import BrokerTasks

FIXTURES = Path(__file__).parents[3] / "fixtures" / "traces"
REAL = Path(__file__).parents[4] / "shared" / "traces"
SP2 = next(machine for machine in MACHINES if machine.key == "sdsc-sp2")


def both(path: Path, load: float, tasks: tuple[int, ...], means: tuple[int, ...]) -> None:
    piece = Piece(SP2, path, load, 0, Settings(tasks=tasks, means=means))
    assert run_piece(piece, BrokerTasks) == run_piece(piece)


@pytest.mark.parametrize("load", [1.3, 0.7])
def test_the_fixture_through_the_core(load):
    both(FIXTURES / "small.swf", load, (100, 300), (100, 1000))


@pytest.mark.skipif(not REAL.is_dir(), reason="the traces are not here")
def test_a_sample_of_sdsc_sp2_through_the_core():
    both(REAL / f"{SP2.file}.swf.gz", 1.0, (100,), (100, 1000, 10_000))
