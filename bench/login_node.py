"""`python -m bench.login_node`: what a daemon costs a login node, on a throwaway Slurm: idle, with a bag, and
with many small ones.

CPU seconds are those of the daemon and of the commands that it ran; a day is what the minutes that were
watched come to.
"""

from __future__ import annotations

import argparse
import statistics
import time

import msgspec
import psutil

from bench.private_daemon import PrivateDaemon, private_place
from tests.clusters.slurm import ThrowawaySlurm

_CONFIG = """
sites:
  hpc:
    backend: slurm
    partition: batch
    processors_per_node: 4
    limits: {max_pending_requests: 3, max_proc: 8, max_tr: 30m}
    initial_tr: 2m
"""
_DAY = 86_400.0
_TASK = 10
"""Seconds of a task of the bag."""
_EVERY = 72
"""Seconds from one small bag to the next: 50 an hour."""


class UsageMeter(msgspec.Struct, frozen=True):
    at: float
    cpu: float
    commands: int
    memory: int


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.login_node", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="to watch each: idle, a bag, small bags")
    minutes = parser.parse_args().minutes
    with ThrowawaySlurm() as cluster, private_place(_CONFIG, cluster.env) as place:
        place.adaptor("daemon", "start")
        time.sleep(20)  # its start is not its life
        _show("idle", *_watched(place, minutes))
        bag = place.folder / "sleep.bag"
        bag.write_text(f"sleep {_TASK}\n" * int(8 * 60 * (minutes + 2) / _TASK))
        place.adaptor("submit", str(bag))
        time.sleep(30)
        _show(f"with a bag of tasks of {_TASK} s on up to 16 processors", *_watched(place, minutes))
        place.adaptor("cancel", "all")
        time.sleep(60)
        small = place.folder / "small.bag"
        small.write_text("sleep 2\n" * 6)
        first, took = _read(place), list[float]()
        for _ in range(max(1, round(60 * minutes / _EVERY))):
            begin = time.monotonic()
            place.adaptor("run", str(small))
            took.append(time.monotonic() - begin)
            time.sleep(max(0.0, begin + _EVERY - time.monotonic()))
        _show(f"with a bag of six tasks of 2 s each {_EVERY} s", first, _read(place))
        print(f"  {statistics.median(took):.1f} s from the command to the end of a bag, at the median")


def _watched(place: PrivateDaemon, minutes: float) -> tuple[UsageMeter, UsageMeter]:
    first = _read(place)
    time.sleep(60 * minutes)
    return first, _read(place)


def _read(place: PrivateDaemon) -> UsageMeter:
    view = msgspec.json.decode(place.adaptor("status", "--daemon", "--json"))
    times = psutil.Process(view["pid"]).cpu_times()
    cpu = times.user + times.system + times.children_user + times.children_system
    rates = view["rates"]
    return UsageMeter(time.monotonic(), cpu, rates["scheduler_commands"], rates["memory"])


def _show(what: str, first: UsageMeter, last: UsageMeter) -> None:
    seconds = last.at - first.at
    cpu, commands = last.cpu - first.cpu, last.commands - first.commands
    print(f"{what}, over {seconds / 60:.1f} minutes:")
    print(
        f"  {cpu:.2f} CPU seconds: {cpu / seconds * _DAY:,.0f} a day, {100 * cpu / seconds:.2f} % of a core"
    )
    print(f"  {commands} scheduler commands: {commands / seconds * 3600:,.0f} an hour")
    print(f"  {last.memory / 1e6:.0f} MB of memory", flush=True)


if __name__ == "__main__":
    main()
