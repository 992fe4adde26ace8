"""One scene from its plan to its findings, and the sums over many."""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from lab.campaign.ending import check_end
from lab.campaign.faults import kinds_of
from lab.campaign.limits import LimitsWatch
from lab.campaign.plan import Plan, make_plan
from lab.campaign.playing import Play, Played
from lab.campaign.scenes import SCENES, Scene, stage
from lab.campaign.verifying import Finding, Wrong
from lab.campaign.world import World
from tests.clusters.throwaway import ClusterError

Say = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    plan: Plan
    played: Played
    findings: list[Finding]
    looks: int
    """At the queues."""
    seconds: float
    evidence: Path | None
    """Copy of the state directory, if there are findings."""


def plan_of(seed: int, scene: str, tasks: int, faults: int) -> Plan:
    return make_plan(seed, scene, tasks, faults, kinds_of(scene), SCENES[scene].processors)


def clean_up_when_interrupted() -> None:
    """In this process the first SIGINT or SIGTERM ends a scene in good order; further ones change nothing."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, interrupt)


def play_aloud(plan: Plan, *, verbose: bool) -> Outcome:
    """As `play_scene`, telling on standard output what happens."""

    def say(text: str) -> None:
        if verbose:
            print(f"  {time.strftime('%H:%M:%S')} {plan.scene:18} {text}", flush=True)

    print(plan.command, flush=True)
    return play_scene(plan, say)


def play_scene(plan: Plan, say: Say) -> Outcome:
    """Play one scene in a folder of its own, which is kept where something was found."""
    begun = time.monotonic()
    scene = SCENES[plan.scene]
    # Short, because the path of a unix socket may have 108 characters at most.
    root = Path(tempfile.mkdtemp(prefix="campaign-"))
    root.chmod(0o755)
    played, findings, looks = _play(plan, scene, root, say)
    if not findings:
        shutil.rmtree(root)
    seconds = time.monotonic() - begun
    return Outcome(plan, played, findings, looks, seconds, root if findings else None)


def _play(plan: Plan, scene: Scene, root: Path, say: Say) -> tuple[Played, list[Finding], int]:
    try:
        return _play_on_stage(plan, scene, root, say)
    except ClusterError as error:
        return Played(), [Finding(Wrong.OTHER, f"the scene does not come up, or not down: {error}")], 0


def _play_on_stage(plan: Plan, scene: Scene, root: Path, say: Say) -> tuple[Played, list[Finding], int]:
    with stage(scene, root) as world:
        play = Play(plan, world, say, scene.submit_options)
        with LimitsWatch(world.sites, scene.most) as watch:
            found = _findings(play, world, say)
        found += watch.findings
        if found:
            world.keep_evidence(root / "evidence")
        return play.played, found, watch.looks


def _findings(play: Play, world: World, say: Say) -> list[Finding]:
    """Play it; an error of the campaign itself is a finding too, and the next scene goes on."""
    try:
        played = play.run()
        if played.stuck:
            return [Finding(Wrong.LOST, played.stuck)]
        return [*check_end(play.plan, world), *_never_tried(play.plan, played)]
    except Exception as error:
        say(traceback.format_exc())
        return [Finding(Wrong.OTHER, f"the scene broke off: {type(error).__name__}: {error}")]


def _never_tried(plan: Plan, played: Played) -> list[Finding]:
    """Kinds of faults that were planned more than once and never found a victim: the scene looks wrongly."""
    planned = Counter(fault.kind for fault in plan.faults)
    return [
        Finding(Wrong.OTHER, f"{kind}: planned {times} times, and found no victim")
        for kind, times in planned.items()
        if times > 1 and not played.injected.get(kind)
    ]


def summary(outcomes: list[Outcome]) -> str:
    """The table of faults, and the counts of what must not happen."""
    injected, survived = Counter[str](), Counter[str]()
    for outcome in outcomes:
        injected.update(outcome.played.injected)
        survived.update(outcome.played.survived)
    width = max((len(kind) for kind in injected), default=10)
    lines = [f"{'fault':{width}}  injected  survived"]
    lines += [f"{kind:{width}}  {injected[kind]:8}  {survived[kind]:8}" for kind in sorted(injected)]
    lines.append(f"{'together':{width}}  {injected.total():8}  {survived.total():8}")
    wrong = Counter(finding.wrong for outcome in outcomes for finding in outcome.findings)
    tasks = sum(len(outcome.plan.tasks) for outcome in outcomes)
    looks = sum(outcome.looks for outcome in outcomes)
    counts = ", ".join(f"{wrong[kind]} {kind.value}" for kind in Wrong)
    return "\n".join([*lines, "", f"{tasks} tasks, {looks} looks at the queues: {counts}"])


def report(outcome: Outcome) -> str:
    """One scene: a line where all is well, else what was found and how to see it again."""
    plan, played = outcome.plan, outcome.played
    injected, survived = sum(played.injected.values()), sum(played.survived.values())
    lines = [
        f"{plan.scene}: {len(plan.tasks)} tasks, {injected} faults injected, {survived} survived, "
        f"{len(outcome.findings)} findings, {outcome.seconds:.0f} s"
    ]
    if played.left_out:
        lines.append(f"  left out for want of a victim: {', '.join(played.left_out)}")
    lines += [f"  {finding.wrong.value}: {finding.text}" for finding in outcome.findings[:40]]
    if outcome.findings:
        lines += [
            f"  journal and logs: {outcome.evidence}/evidence",
            f"  again: {plan.command}",
            f"  its plan: {plan.command} --plan",
        ]
    return "\n".join(lines)
