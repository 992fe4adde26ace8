"""A task that takes its worker down does not run for ever, and the tasks beside it are done."""

from __future__ import annotations

from tests.e2e.lab import Lab

LOCAL = """
    sites:
      here:
        backend: local
        processors: 4
        limits: {max_pending_requests: 2, max_proc: 4, max_tr: 1h}
        idle_timeout: 5
    daemon:
      worker_timeout: 20
"""


def test_a_task_that_ends_its_worker_fails_and_the_others_are_done(lab: Lab) -> None:
    """By SIGTERM; `test_slurm_suspects.py` has SIGKILL."""
    lab.configure(LOCAL)
    lab.bag(["kill -TERM $PPID; sleep 5", *["sleep 1"] * 19])
    lab.submit("tasks.bag")
    lab.wait(expect=3)
    found = lab.results()
    assert [task["state"] for task in found] == ["failed"] + ["done"] * 19
    assert found[0]["error"].startswith("its worker died under it 3 times (last: node ")
    assert "not tried again; adaptor retry 1" in found[0]["error"]
    assert found[0]["attempts"] <= 6
    assert not any(task["retries"] for task in found)
    assert len(lab.pilots()) <= 12
