"""Whom the freezer freezes, and that it lets all go."""

from __future__ import annotations

import io
import os
import subprocess
import time
from collections.abc import Callable

import psutil
import pytest

from lab.campaign.freezing import MARK, Odds, frozen_now_and_then


def until(step: Callable[[], None], condition: Callable[[], object]) -> None:
    give_up = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < give_up
        step()
        time.sleep(0.01)


def test_a_new_process_of_the_run_is_frozen_for_a_moment_and_no_other() -> None:
    log = io.StringIO()
    with frozen_now_and_then("mine", 1, Odds(new=1.0, old=0.0), log) as step:
        others = subprocess.Popen(["sleep", "1000"], env={**os.environ, MARK: "another"})
        ours = subprocess.Popen(["sleep", "1000"], env={**os.environ, MARK: "mine"})
        try:
            until(step, lambda: psutil.Process(ours.pid).status() == psutil.STATUS_STOPPED)
            until(step, lambda: psutil.Process(ours.pid).status() == psutil.STATUS_SLEEPING)
            assert f" {ours.pid} " in log.getvalue()
            assert f" {others.pid} " not in log.getvalue()
        finally:
            for each in (ours, others):
                each.kill()
                each.wait()


@pytest.mark.parametrize(
    "environment", [{}, {MARK: "mine"}], ids=["not-readable-yet", "still-a-copy-of-pytest"]
)
def test_a_process_is_known_by_what_it_becomes(environment: dict[str, str]) -> None:
    """Where it is looked at in the moment of its start, it shows no environment, or pytest's own command."""
    script = f"read go; export {MARK}=mine; exec sleep 1000"
    ours = subprocess.Popen(["/bin/sh", "-c", script, "pytest"], env=environment, stdin=subprocess.PIPE)
    assert ours.stdin is not None
    try:
        with frozen_now_and_then("mine", 1, Odds(new=1.0, old=0.0), io.StringIO()) as step:
            step()
            assert psutil.Process(ours.pid).status() != psutil.STATUS_STOPPED
            ours.stdin.write(b"\n")
            ours.stdin.close()
            until(step, lambda: psutil.Process(ours.pid).status() == psutil.STATUS_STOPPED)
    finally:
        ours.kill()
        ours.wait()


def test_what_is_frozen_is_let_go_in_the_end() -> None:
    ours = subprocess.Popen(["sleep", "1000"], env={**os.environ, MARK: "ends"})
    try:
        with frozen_now_and_then("ends", 1, Odds(1.0, 0.0, 1000.0, 1000.0), io.StringIO()) as step:
            until(step, lambda: psutil.Process(ours.pid).status() == psutil.STATUS_STOPPED)
        until(lambda: None, lambda: psutil.Process(ours.pid).status() == psutil.STATUS_SLEEPING)
    finally:
        ours.kill()
        ours.wait()
