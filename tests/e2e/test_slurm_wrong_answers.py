"""A squeue that answers wrongly for a while: queued pilots keep their places, and no other is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.wrong_answers import WRONG, WrongAnswers
from tests.e2e.lab import Lab, site
from tests.e2e.watching import QueueWatch
from tests.living import until

pytestmark = [pytest.mark.slurm, pytest.mark.nightly]

SITE = site("slurm", (3, 4, "20m"), initial_tr="3m", idle_timeout=10, command_timeout=10)
LOOKS = 4  # more than a pilot may be missed in a row


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WrongAnswers:
    made = WrongAnswers(tmp_path / "front")
    monkeypatch.setenv("PATH", made.path)
    return made


def test_answers_that_are_wrong_for_a_while_cost_nothing(
    slurm: ThrowawaySlurm, lab: Lab, answers: WrongAnswers
) -> None:
    slurm.occupy(4, 60)
    lab.configure(SITE)
    lab.bag(["true"] * 40)
    lab.submit("tasks.bag")

    def pilots() -> dict[str, str]:
        return {pilot["job"]: pilot["state"] for pilot in lab.pilots()}

    until(lambda: "queued" in pilots().values(), "a pilot waits")
    until(lambda: answers.looks("squeue") > 3, "the daemon has looked again")
    before = pilots()
    with QueueWatch(slurm) as watch:
        for name in WRONG["squeue"]:
            answers.begin("squeue", name)
            until(
                lambda name=name: answers.looks("squeue", name) > LOOKS,
                f"{LOOKS} answers: {name}",
            )
        answers.end("squeue")
        right = answers.looks("squeue")
        until(lambda: answers.looks("squeue") > right + 1, "right answers again")
    assert pilots() == before
    shown = slurm.run(["squeue", "-h", "-r", "-o", "%i %j"]).splitlines()
    assert {row.split()[0] for row in shown if " adaptor-" in row} == set(before), "none was made beside them"
    assert max(len(seen.jobs) for seen in watch.seen) <= len(before) <= 3
