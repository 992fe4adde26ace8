"""Plan of one scene, from its seed alone: its tasks, its faults, their times and victims."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

GAP = 4.0
"""Seconds between two faults for which the lengths of the tasks make room."""
RETRIES = 3
"""Retries of each bag."""
CODES = (1, 3, 7, 42, 125)
"""Exit codes of tasks that fail."""
_FIRST, _LAST = 0.02, 0.9
"""The part of a bag in which its faults come."""


@dataclass(frozen=True)
class PlannedTask:
    seconds: float
    failures: int = 0
    """Number of failures before it succeeds."""
    code: int = 0
    """With which it fails."""

    @property
    def fails_for_good(self) -> bool:
        return self.failures > RETRIES


@dataclass(frozen=True)
class KindOfFault:
    """A kind as the plan needs it."""

    name: str
    weight: float
    shortest: float
    """Seconds for which such a fault lasts."""
    longest: float


@dataclass(frozen=True)
class PlannedFault:
    at: float
    """The share of the tasks that are through when it comes: faults follow the work, not the clock."""
    kind: str
    lasts: float
    """Seconds until it is mended."""
    draw: float
    """From 0 to 1: which of the possible victims it hits."""


@dataclass(frozen=True)
class Plan:
    seed: int
    scene: str
    tasks: tuple[PlannedTask, ...]
    faults: tuple[PlannedFault, ...]

    @property
    def command(self) -> str:
        """Command that plays this scene again."""
        return (
            f"python -m lab.campaign --seed {self.seed} --scene {self.scene} "
            f"--tasks {len(self.tasks)} --faults {len(self.faults)}"
        )


def make_plan(
    seed: int, scene: str, tasks: int, faults: int, kinds: Sequence[KindOfFault], processors: int
) -> Plan:
    """`processors`: those of the scene; the tasks are so long that the bag lasts for all of its faults."""
    dice = random.Random(f"{seed} {scene}")
    mean = min(6.0, max(0.3, GAP * faults * processors / max(1, tasks)))
    return Plan(
        seed,
        scene,
        tuple(_task(dice, mean) for _ in range(tasks)),
        tuple(sorted(_faults(dice, faults, kinds), key=lambda fault: fault.at)),
    )


def _task(dice: random.Random, mean: float) -> PlannedTask:
    """A task; those that fail are shorter, because they run one time after the other."""
    seconds = min(4 * mean, dice.expovariate(1 / mean))
    lot = dice.random()
    if lot >= 0.08:
        return PlannedTask(round(seconds, 2))
    failures = RETRIES + 1 if lot < 0.02 else dice.randint(1, RETRIES)
    return PlannedTask(round(seconds / 6, 2), failures, dice.choice(CODES))


def _faults(dice: random.Random, number: int, kinds: Sequence[KindOfFault]) -> list[PlannedFault]:
    """Each kind once before any comes twice, as far as the number allows; then by weight."""
    once = dice.sample(list(kinds), min(number, len(kinds)))
    more = dice.choices(kinds, [kind.weight for kind in kinds], k=number - len(once))
    return [
        PlannedFault(
            at=round(dice.uniform(_FIRST, _LAST), 4),
            kind=kind.name,
            lasts=round(dice.uniform(kind.shortest, kind.longest), 1),
            draw=round(dice.random(), 4),
        )
        for kind in [*once, *more]
    ]


def table(plan: Plan) -> str:
    """For people."""
    rows = [f"{'at':>7}  {'lasts':>6}  {'draw':>6}  fault"]
    rows += [f"{each.at:7.2%}  {each.lasts:5.1f}s  {each.draw:6.4f}  {each.kind}" for each in plan.faults]
    failing = sum(task.failures > 0 for task in plan.tasks)
    seconds = sum(task.seconds for task in plan.tasks)
    title = (
        f"scene {plan.scene}, seed {plan.seed}: {len(plan.tasks)} tasks of {seconds:.0f} s together, "
        f"{failing} of which fail by themselves; {len(plan.faults)} faults"
    )
    return "\n".join([title, *rows])
