"""The short form of `make campaign`: one scene that is always the same, one of another seed each day."""

from __future__ import annotations

import datetime

import pytest

from lab.campaign.campaign import plan_of, play_scene, report
from lab.campaign.plan import Plan
from lab.campaign.scenes import SCENES
from tests.clusters import slurm, sshd

pytestmark = [pytest.mark.slurm, pytest.mark.ssh]

TASKS, FAULTS = 120, 10


@pytest.fixture(autouse=True)
def clusters() -> None:
    reason = slurm.available() or sshd.available()
    if reason:
        pytest.skip(reason)


def nothing_is_found(plan: Plan) -> None:
    print(f"to see it again: {plan.command}")
    outcome = play_scene(plan, print)
    assert not outcome.findings, report(outcome)
    injected = sum(outcome.played.injected.values())
    assert injected == sum(outcome.played.survived.values())
    assert injected >= FAULTS // 2, f"too little was tried: {outcome.played.left_out} found no victim"


def test_a_bag_survives_the_faults_of_a_fixed_seed() -> None:
    nothing_is_found(plan_of(1, "plain", TASKS, FAULTS))


def test_a_bag_survives_the_faults_of_the_day() -> None:
    """Another scene each day, too; the output names both."""
    seed = int(f"{datetime.datetime.now(datetime.timezone.utc):%Y%m%d}")
    scene = list(SCENES)[seed % len(SCENES)]
    nothing_is_found(plan_of(seed, scene, TASKS, FAULTS))
