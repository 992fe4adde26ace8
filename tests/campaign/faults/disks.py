"""Full and read-only file systems."""

from __future__ import annotations

from collections.abc import Iterator

from tests.campaign.faults.catalog import NoVictimError, claim, fault, present
from tests.campaign.small_disk import SmallDisk
from tests.campaign.world import World


@fault("disk: state directory full", weight=2, lasts=(2, 12))
def state_disk_full(world: World, draw: float) -> Iterator[str]:
    yield from _full(world, present(world.state_disk))


@fault("disk: output full", lasts=(2, 12))
def output_disk_full(world: World, draw: float) -> Iterator[str]:
    yield from _full(world, present(world.output_disk))


@fault("spool: full", scenes=("spool",), lasts=(2, 12))
def spool_full(world: World, draw: float) -> Iterator[str]:
    yield from _full(world, present(world.spool_disk))


@fault("spool: read-only", scenes=("spool",), lasts=(2, 15))
def spool_read_only(world: World, draw: float) -> Iterator[str]:
    disk = present(world.spool_disk)
    with claim(world, f"disk {disk.path}"):
        if not disk.make_read_only():
            raise NoVictimError
        yield str(disk.path)
        disk.make_writable()


def _full(world: World, disk: SmallDisk) -> Iterator[str]:
    with claim(world, f"disk {disk.path}"):
        disk.fill()
        yield str(disk.path)
        disk.free()
