"""A squeue that answers wrongly for a while: queued pilots keep their places, and no other is made."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.slurm_accounting import SEARCH_PATH
from tests.e2e.lab import Lab, site
from tests.e2e.watching import QueueWatch
from tests.living import until

pytestmark = [pytest.mark.slurm, pytest.mark.nightly, pytest.mark.timeout(400)]

SITE = site("slurm", (3, 4, "20m"), initial_tr="3m", idle_timeout=10, command_timeout=10)
SAID = {
    "empty": "exit 0",
    "error": "echo 'slurm_load_jobs error: Unable to contact slurm controller'; exit 0",
    "half": '"$real" "$@" | sed -n "1~2p"',
    "header": '"$real" "$@" | head -n 1',
    "cut": '"$real" "$@" | head -c 700',
    "banner": 'echo "Warning: your password expires in 33 days"; "$real" "$@"',
}
LOOKS = 4  # more than a pilot may be missed in a row


@pytest.fixture
def fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file: squeue says what is named there; each answer adds a line to `said` beside it."""
    folder, chosen = tmp_path / "front", tmp_path / "fault"
    folder.mkdir()
    (tmp_path / "said").touch()
    cases = "\n".join(f"{name}) {lines};;" for name, lines in SAID.items())
    real = shutil.which("squeue", path=SEARCH_PATH)
    program = folder / "squeue"
    program.write_text(
        f"#!/bin/bash\nreal={real}\nfault=$(cat {chosen} 2>/dev/null)\n"
        f'[[ " $* " == *" --me "* ]] && echo "$fault" >> {tmp_path}/said\n'
        f'case $fault in\n{cases}\n*) exec "$real" "$@";;\nesac\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{SEARCH_PATH}")
    return chosen


def test_answers_that_are_wrong_for_a_while_cost_nothing(
    slurm: ThrowawaySlurm, lab: Lab, fault: Path
) -> None:
    slurm.occupy(4, 60)
    lab.configure(SITE)
    lab.bag(["true"] * 40)
    lab.submit("tasks.bag")
    said = fault.with_name("said")

    def pilots() -> dict[str, str]:
        return {pilot["job"]: pilot["state"] for pilot in lab.pilots()}

    until(lambda: "queued" in pilots().values(), "a pilot waits")
    until(lambda: len(said.read_text().splitlines()) > 3, "the daemon has looked again")
    before = pilots()
    with QueueWatch(slurm) as watch:
        for name in SAID:
            fault.write_text(name)
            until(
                lambda name=name: said.read_text().splitlines().count(name) > LOOKS,
                f"{LOOKS} answers: {name}",
            )
        fault.unlink()
        right = said.read_text().splitlines().count("")
        until(lambda: said.read_text().splitlines().count("") > right + 1, "right answers again")
    assert pilots() == before
    shown = slurm.run(["squeue", "-h", "-r", "-o", "%i %j"]).splitlines()
    assert {row.split()[0] for row in shown if " adaptor-" in row} == set(before), "none was made beside them"
    assert max(len(seen.jobs) for seen in watch.seen) <= len(before) <= 3
