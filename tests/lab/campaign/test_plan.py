"""The seed of a campaign says all that will happen."""

from __future__ import annotations

import pytest

from lab.campaign.campaign import plan_of
from lab.campaign.faults import CATALOG, kinds_of
from lab.campaign.plan import GAP, RETRIES, table
from lab.campaign.scenes import SCENES


@pytest.mark.parametrize("scene", SCENES)
def test_the_same_seed_makes_the_same_plan_and_another_one_another(scene: str) -> None:
    assert plan_of(7, scene, 200, 30) == plan_of(7, scene, 200, 30)
    assert plan_of(7, scene, 200, 30) != plan_of(8, scene, 200, 30)


@pytest.mark.parametrize("scene", SCENES)
def test_a_plan_has_each_kind_of_its_scene_and_no_other(scene: str) -> None:
    plan = plan_of(3, scene, 400, 40)
    assert {fault.kind for fault in plan.faults} == {kind.name for kind in kinds_of(scene)}
    assert len(plan.faults) == 40
    assert len(plan.tasks) == 400
    assert list(plan.faults) == sorted(plan.faults, key=lambda fault: fault.at)


def test_every_kind_of_fault_comes_in_some_scene() -> None:
    assert {kind.name for scene in SCENES for kind in kinds_of(scene)} == set(CATALOG)
    assert all(scene in SCENES for fault in CATALOG.values() for scene in fault.scenes)


def test_the_tasks_last_as_long_as_the_faults_need() -> None:
    plan = plan_of(1, "plain", 2000, 40)
    fair = sum(task.seconds for task in plan.tasks) / SCENES["plain"].processors
    assert fair == pytest.approx(40 * GAP, rel=0.2)
    assert {task.failures for task in plan.tasks} == set(range(RETRIES + 2))
    assert all(task.code for task in plan.tasks if task.failures)


def test_the_command_of_a_plan_makes_the_plan_again() -> None:
    plan = plan_of(11, "ssh", 50, 5)
    words = plan.command.split()
    told = dict(zip(words[3::2], words[4::2], strict=True))
    seed, tasks, faults = (int(told[f"--{name}"]) for name in ("seed", "tasks", "faults"))
    assert plan_of(seed, told["--scene"], tasks, faults) == plan


def test_the_table_has_a_line_for_each_fault() -> None:
    plan = plan_of(11, "ssh", 50, 5)
    assert len(table(plan).splitlines()) == 2 + 5
