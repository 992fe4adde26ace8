"""Samples of the experiment through the scheduling core itself, field by field as by the kernels."""

from __future__ import annotations

import pytest

from adaptor_experiments.transparent.design import MACHINES, Piece, Settings, run_piece
from adaptor_simulation.tasks.broker_tasks import BrokerTasks
from tests.experiments.conftest import SMALL


@pytest.mark.parametrize("load", [1.3, pytest.param(0.7, marks=pytest.mark.nightly)])
def test_the_fixture_through_the_core(load) -> None:
    piece = Piece(MACHINES[0], SMALL, load, 0, Settings(tasks=(100, 300), means=(100, 1000)))
    assert run_piece(piece, BrokerTasks) == run_piece(piece)
