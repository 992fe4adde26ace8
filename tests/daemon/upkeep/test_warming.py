"""Compiled heuristics are loaded before the first decision, and only these."""

from __future__ import annotations

import asyncio
from unittest.mock import patch

import pytest

from adaptor.crafting.planner import plan
from adaptor.crafting.situation import PlanningView, Withdraw
from adaptor.daemon.upkeep.warming import warm_up


def test_only_what_is_compiled_decides_once() -> None:
    with patch("adaptor.daemon.upkeep.warming.plan", wraps=plan) as decided:
        asyncio.run(warm_up(["adaptive", "static"]))
        assert not decided.called
        asyncio.run(warm_up(["rollout", "adaptive", "rollout"]))
    ((view,), _) = decided.call_args
    assert decided.call_count == 1
    assert view.heuristic == "rollout"
    assert any(isinstance(each, Withdraw) for each in plan(view)), "not all loops are loaded by it"


def test_what_cannot_be_loaded_is_logged_and_no_more(caplog: pytest.LogCaptureFixture) -> None:
    def missing(_: PlanningView) -> None:
        raise ImportError("no numba")

    with patch("adaptor.daemon.upkeep.warming.plan", missing):
        asyncio.run(warm_up(["rollout"]))
    assert "rollout could not be loaded" in caplog.text
