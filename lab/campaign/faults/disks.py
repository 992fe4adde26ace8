"""File systems that are full, over quota or read-only."""

from __future__ import annotations

import time
from collections.abc import Iterator

from lab.campaign.faults.catalog import NoVictimError, claim, fault, present
from lab.campaign.faults.links import SPOOLED
from lab.campaign.small_disk import FailingDisk, QuotaDisk, SmallDisk
from lab.campaign.world import World


@fault("disk: state directory full", weight=2, lasts=(2, 12))
def state_disk_full(world: World, draw: float) -> Iterator[str]:
    yield from _full(world, present(world.state_disk))


@fault("disk: output full", lasts=(2, 12))
def output_disk_full(world: World, draw: float) -> Iterator[str]:
    yield from _full(world, present(world.output_disk))


@fault("spool: full", scenes=SPOOLED, lasts=(2, 12))
def spool_full(world: World, draw: float) -> Iterator[str]:
    yield from _full(world, present(world.spool_disk))


@fault("spool: read-only", scenes=SPOOLED, lasts=(2, 15))
def spool_read_only(world: World, draw: float) -> Iterator[str]:
    disk = present(world.spool_disk)
    with claim(world, f"disk {disk.path}"):
        if not disk.make_read_only():
            raise NoVictimError
        yield str(disk.path)
        disk.make_writable()


@fault("disk: state over quota", weight=2, scenes=("quota",), lasts=(2, 12))
def state_over_quota(world: World, draw: float) -> Iterator[str]:
    yield from _over_quota(world, present(world.state_disk))


@fault("disk: output over quota", scenes=("quota",), lasts=(2, 12))
def output_over_quota(world: World, draw: float) -> Iterator[str]:
    yield from _over_quota(world, present(world.output_disk))


@fault("disk: state becomes read-only", weight=2, scenes=("failing-disk",), lasts=(2, 20))
def state_becomes_read_only(world: World, draw: float) -> Iterator[str]:
    """Make the disk read-only: what has not reached it is gone, as at a power cut. It cannot be replaced
    under a daemon."""
    disk = _failing(world.state_disk)
    with claim(world, f"disk {disk.path}", "daemon"):
        daemon = present(world.daemon())
        disk.fail()
        failed = time.time()
        yield str(disk.path)
        world.forget_daemon()
        world.lab.run("daemon", "stop")
        daemon.wait(60)
        disk.replace()
        world.cuts.append((failed, time.time()))
        world.daemon_runs = True


@fault("disk: output becomes read-only", scenes=("failing-disk",), lasts=(2, 12))
def output_becomes_read_only(world: World, draw: float) -> Iterator[str]:
    disk = _failing(world.output_disk)
    with claim(world, f"disk {disk.path}"):
        disk.fail()
        yield str(disk.path)
        disk.replace()


def _over_quota(world: World, disk: SmallDisk) -> Iterator[str]:
    if not isinstance(disk, QuotaDisk):
        raise NoVictimError
    with claim(world, f"disk {disk.path}"):
        disk.exceed_quota()
        yield str(disk.path)
        disk.lift_quota()


def _failing(disk: SmallDisk | None) -> FailingDisk:
    """Raises NoVictimError: it cannot fail."""
    if not isinstance(disk, FailingDisk):
        raise NoVictimError
    return disk


def _full(world: World, disk: SmallDisk) -> Iterator[str]:
    with claim(world, f"disk {disk.path}"):
        disk.fill()
        yield str(disk.path)
        disk.free()
