"""`python -m lab.soak`: thousands of bags through one daemon: its memory, its journal, its answers.

Prints a line per tenth of the bags, and at the end how each figure changed from the second tenth to the last.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import msgspec
import psutil

from adaptor import api
from adaptor.bag_spec import BagSpec
from adaptor.client.asking import ask
from adaptor.client.bags import Client
from bench.private_daemon import PrivateDaemon, private_place
from bench.stopwatch import median_seconds

_CONFIG = """
sites:
  local:
    backend: local
    processors: 2
    limits: {{max_pending_requests: 3, max_proc: 2, max_tr: 90s}}
    initial_tr: 10s
    pad: 5s
    idle_timeout: 5s
{journal}
"""
_IN_FLIGHT = 8
"""Bags that are not done at a time."""
_ENVIRONMENT = {f"MODULE_{number}": "/opt/software/some/path/of/a/module" * 2 for number in range(40)}
"""About as large as that of a login shell with modules."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """Bags sent so far."""

    bags: int
    kept: int
    memory: int
    """Resident bytes of the daemon."""
    journal: int
    """Bytes."""
    descriptors: int
    """Files and sockets that the daemon has open."""
    logs: int
    status: float
    """Time of one `adaptor status` in multiples of that of `python -c pass`, both in the same moment."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lab.soak", description=__doc__)
    parser.add_argument("--bags", type=int, default=2000)
    parser.add_argument("--minutes", type=float, help="send bags for so long, however many they come to")
    parser.add_argument("--tasks", type=int, default=20, help="of each bag")
    parser.add_argument("--keep", default="", help="journal.keep, for instance 60s; default: no limit")
    chosen = parser.parse_args()
    journal = f"journal: {{keep: {chosen.keep}}}" if chosen.keep else ""
    with private_place(_CONFIG.format(journal=journal)) as place:
        os.environ.update({name: place.environment[name] for name in ("ADAPTOR_DIR", "ADAPTOR_CONFIG")})
        place.adaptor("daemon", "start")
        print("   bags   kept   memory MB   files   journal MB   logs MB   status / python", flush=True)
        samples = []
        for sample in _samples(place, _tenths(chosen.bags, chosen.minutes), chosen.tasks):
            samples.append(sample)
            print(
                f"{sample.bags:>7,}{sample.kept:>7,}{sample.memory / 1e6:>12.2f}"
                f"{sample.descriptors:>8}{sample.journal / 1e6:>13.2f}"
                f"{sample.logs / 1e6:>10.2f}{sample.status:>12.1f}",
                flush=True,
            )
    _compare(samples[1 if len(samples) > 2 else 0], samples[-1], chosen.tasks)


def _tenths(bags: int, minutes: float | None) -> Iterator[bool]:
    """For each bag: whether it is the last of a tenth."""
    if minutes is None:
        step = max(1, bags // 10)
        yield from (number % step == 0 for number in range(1, bags + 1))
        return
    begun = time.monotonic()
    for tenth in range(1, 11):
        while time.monotonic() < begun + 6 * minutes * tenth:
            yield False
        yield True


def _samples(place: PrivateDaemon, tenths: Iterator[bool], tasks: int) -> Iterator[Sample]:
    daemon = psutil.Process(place.pid())
    spec = BagSpec(name="soak", cwd="/", output=f"{place.folder}/out", environment=_ENVIRONMENT)
    bag = api.BagInput(spec=spec, tasks=[api.TaskInput(["/bin/true"])] * tasks)
    for number, tenth in enumerate(tenths, start=1):
        with Client() as client:
            newest = client.submit(bag).bag
        while _unfinished(newest) >= _IN_FLIGHT:
            time.sleep(0.05)
        if tenth:
            while _unfinished(newest):
                time.sleep(0.1)
            yield _sample(place, daemon, number)


def _unfinished(newest: int) -> int:
    """Number of unfinished bags among the newest."""
    bags = ask(api.GetBags("recent")).bags
    return sum(bag.ended is None for bag in bags if bag.id > newest - 3 * _IN_FLIGHT)


def _sample(place: PrivateDaemon, daemon: psutil.Process, number: int) -> Sample:
    python = median_seconds(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True))
    status = median_seconds(lambda: place.adaptor("status")) / python
    view = ask(api.GetUpkeep())
    logs = sum(path.stat().st_size for path in (place.folder / "state").glob("daemon.*"))
    return Sample(
        bags=number,
        kept=view.journal.bags,
        memory=daemon.memory_info().rss,
        journal=view.journal.size,
        descriptors=daemon.num_fds(),
        logs=logs,
        status=status,
    )


def _compare(first: Sample, last: Sample, tasks: int) -> None:
    bags = last.bags - first.bags
    memory, journal = last.memory - first.memory, last.journal - first.journal
    print(f"from bag {first.bags:,} to bag {last.bags:,}:")
    print(f"memory {100 * memory / first.memory:+.1f} %, {memory / bags:+.0f} bytes a bag")
    print(f"files {last.descriptors - first.descriptors:+}")
    held = last.journal / max(1, last.kept) / tasks
    print(
        f"journal {100 * journal / first.journal:+.1f} %, {journal / bags / tasks:+.1f} bytes a task, "
        f"{held:.0f} bytes a task that it keeps"
    )
    print(f"status {100 * (last.status / first.status - 1):+.0f} %")


if __name__ == "__main__":
    main()
