"""Numbers that a real OpenPBS gives out twice: the user's jobs live, and the pilots are made again."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from tests.clusters.openpbs import ThrowawayOpenPbs, unavailable
from tests.clusters.openpbs_conf import ClusterOptions
from tests.e2e.lab import Lab, site
from tests.living import until

pytestmark = [
    pytest.mark.pbs,
    pytest.mark.nightly,
    pytest.mark.skipif(bool(unavailable()), reason=unavailable()),
]

TASKS = 30
PILOTS = 12
TERMS = {"heuristic": "static", "initial_tr": "3m", "idle_timeout": 10, "command_timeout": 10}


@pytest.fixture
def own_openpbs(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThrowawayOpenPbs]:
    """A cluster of the test's own, found by $PBS_CONF_FILE and $PATH."""
    with ThrowawayOpenPbs(ClusterOptions(nodes=2)) as cluster:
        for name, value in cluster.env.items():
            monkeypatch.setenv(name, value)
        yield cluster


def stopped(openpbs: ThrowawayOpenPbs, *commands: list[str]) -> None:
    """Run commands on the database of the server while nothing uses it."""
    openpbs.stop_server(kill=False)
    running = openpbs.root / "head" / "datastore" / "postmaster.pid"
    until(lambda: not running.exists(), "the database has ended")
    for command in commands:
        subprocess.run(command, check=True)
    openpbs.start_server()


def ended(lab: Lab, jobs: set[str]) -> dict[int, str]:
    """The states of pilots that had these numbers and have ended."""
    return {pilot["id"]: pilot["state"] for pilot in lab.pilots() if pilot["job"] in jobs and pilot["ended"]}


def mine(openpbs: ThrowawayOpenPbs, lost: set[str]) -> set[str]:
    """Held jobs of the user's own, until an array of them has the number of these pilots."""
    own: set[str] = set()
    options = ["-h", "-N", "mine", "-J", f"0-{PILOTS - 1}", "-r", "y", "-o", "/dev/null", "-j", "oe"]
    while not lost <= own:
        array = openpbs.run(["qsub", *options, "--", "/bin/sleep", "60"]).strip()
        own |= {array.replace("[]", f"[{index}]") for index in range(PILOTS)}
    return own


def test_a_server_restored_from_a_backup_has_jobs_of_the_user_with_the_numbers_of_pilots(
    own_openpbs: ThrowawayOpenPbs, lab: Lab
) -> None:
    openpbs = own_openpbs
    database, backup = str(openpbs.root / "head" / "datastore"), str(openpbs.root / "backup")
    stopped(openpbs, ["cp", "-a", database, backup])
    lab.begin(
        site("pbs", (PILOTS, 1, "20m"), **TERMS, daemon={"worker_timeout": 8}),
        ["true"] * 5 + [lab.hold()] * (TASKS - 5),
    )
    until(
        lambda: len(lab.jobs_in_system()) == PILOTS and all(lab.jobs_in_system()), "the pilots have numbers"
    )
    lost, first = lab.jobs_in_system(), {pilot["id"] for pilot in lab.pilots()}
    assert len({job.partition("[")[0] for job in lost}) == 1, "one array"
    stopped(openpbs, ["rm", "-rf", database], ["cp", "-a", backup, database])
    own = mine(openpbs, lost)
    before = sorted(openpbs.run(["qselect", "-N", "mine"]).split())
    until(lambda: first <= ended(lab, lost).keys(), "the pilots are given up for lost")
    assert {ended(lab, lost)[pilot] for pilot in first} <= {"vanished", "cancelled", "withdrawn"}
    lab.release()
    lab.wait()
    assert {task["state"] for task in lab.results()} == {"done"}
    assert sorted(openpbs.run(["qselect", "-N", "mine"]).split()) == before
    states = [line.split()[-2] for line in openpbs.run(["qstat", "-t"]).splitlines() if " mine " in line]
    assert set(states) == {"H", "Q"}, "each array is held as it was, with all its jobs"
    assert states.count("Q") == len(own)
    assert "cancelled job" not in lab.run("why", "1").stdout
