"""Attacks of another user where the victim's tasks will write, in a folder where both may write."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

from tests.living import until
from tests.security.probe import probe
from tests.security.world import World, as_mallory


def _shared(world: World) -> Path:
    folder = Path(world.own_folder())
    os.chown(folder, os.getuid(), os.getgid())
    folder.chmod(0o777)
    return folder


def _submit(world: World, folder: Path) -> None:
    """In the shared folder, at a site of its own; whether the bag is taken or refused is not the point."""
    (folder / "x.bag").write_text("echo task\necho task >&2\n")
    world.lab.work, before = folder, world.lab.work
    with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
        world.lab.run("run", "x.bag", "--site", "free")
    world.lab.work = before


def _next_output(world: World) -> str:
    return f"adaptor-{world.bags() + 1}"


@probe("links at the names of the next bag's output", "no file of the victim is changed or made")
def output_links(world: World) -> None:
    folder, name = _shared(world), _next_output(world)
    victim, profile = world.root / "precious.txt", world.root / "profile"
    victim.write_text("precious")

    def plant() -> None:
        (folder / name).mkdir()
        (folder / name).chmod(0o777)
        (folder / name / "0.out").symlink_to(victim)
        (folder / name / "1.err").symlink_to(profile)

    as_mallory(plant)
    _submit(world, folder)
    assert victim.read_text() == "precious"
    assert not profile.exists()


@probe("a link in place of the next bag's output folder", "nothing is written where it leads")
def output_folder_link(world: World) -> None:
    folder, name = _shared(world), _next_output(world)
    elsewhere = world.root / "private-of-the-victim"
    elsewhere.mkdir()
    as_mallory(lambda: (folder / name).symlink_to(elsewhere))
    _submit(world, folder)
    assert not list(elsewhere.iterdir())


@probe("a FIFO at the name of an output file", "the worker does not hang")
def output_fifo(world: World) -> None:
    folder, name = _shared(world), _next_output(world)

    def plant() -> None:
        (folder / name).mkdir()
        (folder / name).chmod(0o777)
        os.mkfifo(folder / name / "0.out")

    as_mallory(plant)
    bag = world.bags() + 1
    _submit(world, folder)
    until(lambda: world.bags() < bag or world.lab.status(bag)["state"] != "running", "it ends")
