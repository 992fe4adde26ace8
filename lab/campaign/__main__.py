"""`python -m lab.campaign`: bags on throwaway clusters under random faults, checked from outside."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from lab.campaign.campaign import Outcome, clean_up_when_interrupted, plan_of, play_aloud, report, summary
from lab.campaign.plan import Plan, table
from lab.campaign.scenes import SCENES
from tests.clusters import sshd


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 if nothing was found, 1 if something was, 2 if no campaign can be played here."""
    chosen = _parser().parse_args(arguments)
    away = {name: reason for name in chosen.scene or SCENES if (reason := SCENES[name].scheduler())}
    scenes = chosen.scene or [name for name in SCENES if name not in away or chosen.plan]
    seed = chosen.seed if chosen.seed is not None else int(time.time())
    tasks, faults = chosen.tasks // len(scenes), chosen.faults // len(scenes)
    if chosen.plan:
        print("\n\n".join(table(plan_of(seed, scene, tasks, faults)) for scene in scenes))
        return 0
    for name, reason in away.items():
        print(f"{name}: left out: {reason}", file=sys.stderr)
    if not scenes or set(scenes) & set(away) or (reason := sshd.available()):
        print(reason, file=sys.stderr)
        return 2
    begun, outcomes = time.monotonic(), list[Outcome]()
    while True:
        plans = [plan_of(seed, scene, tasks, faults) for scene in scenes]
        outcomes += _round(plans, chosen.beside, verbose=not chosen.quiet)
        seed += 1
        if time.monotonic() - begun >= 60 * chosen.minutes:
            break
    print(f"\n{summary(outcomes)}")
    return 1 if any(outcome.findings for outcome in outcomes) else 0


def _round(plans: Sequence[Plan], beside: int, *, verbose: bool) -> Iterator[Outcome]:
    """Each scene in a process of its own: its clusters live as long as the thread that starts them."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(beside, len(plans)), spawn, clean_up_when_interrupted) as pool:
        for done in as_completed([pool.submit(play_aloud, plan, verbose=verbose) for plan in plans]):
            outcome = done.result()
            print(report(outcome), flush=True)
            yield outcome


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab.campaign", description=__doc__)
    parser.add_argument("--seed", type=int, help="says all that will happen; default: another one each time")
    parser.add_argument("--tasks", type=int, default=12_000, help="of all scenes together (default 12000)")
    parser.add_argument("--faults", type=int, default=504, help="of all scenes together (default 504)")
    parser.add_argument("--minutes", type=float, default=0, help="go on with the next seeds for so long")
    parser.add_argument("--scene", action="append", choices=list(SCENES), help="default: all (repeatable)")
    parser.add_argument("--beside", type=int, default=1, help="scenes that play at the same time (default 1)")
    parser.add_argument("--plan", action="store_true", help="only print what would happen")
    parser.add_argument("--quiet", action="store_true", help="do not print each fault as it comes")
    return parser


if __name__ == "__main__":
    sys.exit(main())
