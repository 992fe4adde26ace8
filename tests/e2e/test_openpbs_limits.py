"""A bag of twelve tasks of one processor where a real OpenPBS limits jobs, processors and walltimes."""

from __future__ import annotations

import pytest

from tests.clusters.openpbs import ThrowawayOpenPbs
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.living import until

pytestmark = [pytest.mark.pbs, pytest.mark.nightly]

TASKS = 12


def shapes(openpbs: ThrowawayOpenPbs, lab: Lab) -> list[tuple[int, int]]:
    """Processors and seconds of each pilot, as PBS has them."""
    found = []
    for pilot in lab.pilots():
        values = dict(
            line.strip().partition(" = ")[::2]
            for line in openpbs.run(["qstat", "-x", "-f", pilot["job"]]).splitlines()
        )
        hours, minutes, seconds = map(int, values["Resource_List.walltime"].split(":"))
        found.append((int(values["Resource_List.ncpus"]), 3600 * hours + 60 * minutes + seconds))
    return found


def submitted(lab: Lab, **keys: object) -> None:
    """The limits of the site are wider than those that PBS sets later."""
    wide = {"max_pending_requests": 6, "max_proc": 16, "max_tr": "4h"}
    lab.configure(site("pbs", limits=wide, initial_tr="30s", idle_timeout=5, **keys))
    lab.run("daemon", "start")
    lab.bag([f"{lab.hold()}; sleep 1"] * TASKS)
    lab.submit("tasks.bag")


@pytest.mark.parametrize(
    ("of", "name", "value", "most_jobs", "most_processors", "most_seconds"),
    [
        ("queue workq", "max_run", "[u:PBS_GENERIC=1]", 1, 16, 4 * 3600),
        ("server", "max_queued", "[o:PBS_ALL=2]", 2, 16, 4 * 3600),
        ("queue workq", "max_run_res.ncpus", "[u:PBS_GENERIC=4]", 6, 4, 4 * 3600),
        ("queue workq", "resources_max.ncpus", "2", 6, 2, 4 * 3600),
        ("queue workq", "resources_max.walltime", "00:02:00", 6, 16, 120),
    ],
)
@pytest.mark.parametrize("heuristic", ["elastic", "adaptive"])
def test_requests_keep_within_what_pbs_allows_now(
    heuristic: str,
    of: str,
    name: str,
    value: str,
    most_jobs: int,
    most_processors: int,
    most_seconds: int,
    openpbs: ThrowawayOpenPbs,
    lab: Lab,
) -> None:
    """And none is refused, for none is made that would be."""
    with openpbs.setting(name, value, of):
        submitted(lab, heuristic=heuristic)
        until(lambda: any(pilot["state"] == "running" for pilot in lab.pilots()), "a pilot runs")
        lab.release()
        lab.wait()
        exactly_one_result_each(lab, 1, TASKS)
        assert not [pilot for pilot in lab.pilots() if pilot["state"] == "refused"], lab.log()
        for processors, seconds in shapes(openpbs, lab):
            assert processors <= most_processors
            assert seconds <= most_seconds
        begun = [pilot["started"] for pilot in lab.pilots() if pilot["started"]]
        assert begun
        assert len({pilot["job"] for pilot in lab.pilots() if pilot["job"]}) <= 2 * most_jobs
    lab.run("daemon", "stop", "--pilots")


def test_a_request_has_the_memory_that_the_queue_takes_from_one_job(
    openpbs: ThrowawayOpenPbs, lab: Lab
) -> None:
    """And a task that needs more is refused with the reason."""
    with openpbs.setting("resources_max.mem", "700mb", "queue workq"):
        lab.configure(site("pbs", limits={"max_pending_requests": 6, "max_proc": 16}, initial_tr="30s"))
        lab.run("daemon", "start")
        until(lambda: lab.run("site", "slots").returncode == 0, "the queue is read")
        lab.bag(["sleep 1"] * TASKS)
        assert "resources_max.mem" in lab.run("submit", "tasks.bag", "--mem", "900M", expect=2).stderr
        bag = lab.submit("tasks.bag", "--mem", "300M")
        lab.wait(bag)
        exactly_one_result_each(lab, bag, TASKS)
        assert not [pilot for pilot in lab.pilots() if pilot["state"] == "refused"], lab.log()
        assert max(pilot["p"] for pilot in lab.pilots()) <= 2
    lab.run("daemon", "stop", "--pilots")
