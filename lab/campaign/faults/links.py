"""Faults of what lies between daemon, workers and clusters: connections, ssh, the spool."""

from __future__ import annotations

from collections.abc import Iterator

from lab.campaign.faults.catalog import NoVictimError, claim, fault, present
from lab.campaign.world import World

SPOOLED = ("spool", "openpbs-spool")
OVER_TCP = ("plain", "few-requests", "budget", "quota", "failing-disk", "accounting", "limits", "openpbs")
OVER_SSH = ("ssh", "two-sites")


@fault("packets: dropped", weight=2, scenes=(*OVER_TCP, *OVER_SSH), lasts=(2, 15))
def packets_dropped(world: World, draw: float) -> Iterator[str]:
    with claim(world, "network"):
        proxy = present(world.proxy)
        proxy.hang()
        yield "all connections hang"
        proxy.flow()


@fault("connections: cut", weight=2, scenes=(*OVER_TCP, *OVER_SSH))
def connections_cut(world: World, draw: float) -> Iterator[str]:
    with claim(world, "network"):
        present(world.proxy).cut()
        yield "all connections are reset"


@fault("ssh: session killed", weight=2, scenes=OVER_SSH)
def ssh_session_killed(world: World, draw: float) -> Iterator[str]:
    with claim(world, "sshd"):
        present(world.sshd).cut()
        yield "sshd's children"


@fault("ssh: no server", scenes=OVER_SSH, lasts=(3, 25))
def ssh_server_stopped(world: World, draw: float) -> Iterator[str]:
    with claim(world, "sshd"):
        sshd = present(world.sshd)
        sshd.stop()
        yield "sshd"
        sshd.start()


@fault("spool: taken away", weight=2, scenes=SPOOLED, lasts=(2, 20))
def spool_taken_away(world: World, draw: float) -> Iterator[str]:
    # A daemon that starts makes the folder anew; so none starts meanwhile.
    disk = present(world.spool_disk)
    with claim(world, "spool", "daemon", f"disk {disk.path}"):
        if world.spool is None or not world.spool.is_dir():
            raise NoVictimError
        aside = world.spool.with_suffix(".away")
        world.spool.rename(aside)
        yield str(world.spool)
        if world.spool.exists():
            world.spool.rename(world.spool.with_suffix(".meanwhile"))
        aside.rename(world.spool)
