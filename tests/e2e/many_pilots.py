"""Bags in many equal pilots: what scenes on Slurm and on OpenPBS share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.living import until

PILOTS = 40


def narrow(backend: str, pilots: int = PILOTS, **keys: Any) -> str:
    """Pilots of one processor, as many as that, all of them equal."""
    usual: dict[str, Any] = {
        "heuristic": "static",
        "initial_tr": "1m",
        "idle_timeout": 5,
        "command_timeout": 20,
    }
    return site(backend, (pilots, 1, "10m"), **{**usual, **keys})


def dying_at(command: str, array: str, folder: Path) -> str:
    """A folder for PATH, in which `command` kills the daemon after the scheduler has taken the first array.

    Args:
        array: a pattern of the shell that the arguments for an array match.
    """
    folder.mkdir()
    script = folder / command
    script.write_text(
        "#!/bin/sh\n"
        f"PATH=${{PATH#{folder}:}}\n"
        f'answer=$({command} "$@") || exit\n'
        f'case "$*" in {array}) if mkdir {folder}/done 2>/dev/null; then\n'
        f"  kill -9 $(cat {folder}/pid); exit 1; fi;; esac\n"
        'echo "$answer"\n'
    )
    script.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def run_ten_thousand_tasks(
    lab: Lab, backend: str, seconds: float, in_queue: Callable[[], int], without_scheduler: Callable[[], None]
) -> None:
    """10,000 tasks in 500 pilots, each executed once as counted from outside, and no pilot left.

    Args:
        seconds: of a task.
        in_queue: how many jobs are in the queue.
        without_scheduler: kills the scheduler and, while it is away, the daemon; both run in the end.
    """
    tasks, pilots, ran = 10_000, 500, lab.work / "ran"
    lab.configure(narrow(backend, pilots, initial_tr="10m", idle_timeout=60, max_submissions=2 * pilots))
    lab.bag([f"echo $ADAPTOR_TASK_ID >> {ran}; sleep {seconds:g}"] * tasks)
    lab.submit("--replicas", "0", "tasks.bag")
    until(lambda: lab.status()["done"] > 200, "tasks are done in the pilots of the array")
    assert in_queue() == pilots
    lab.restart_daemon()
    until(lambda: lab.status()["done"] > 1000, "and go on to be done after the daemon was killed")
    without_scheduler()
    lab.wait(timeout=900)
    exactly_one_result_each(lab, 1, tasks)
    assert sorted(map(int, ran.read_text().split())) == list(range(tasks))
    until(lambda: not in_queue(), "no pilot is left in the queue")
