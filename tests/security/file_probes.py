"""Attacks of another user by files: the state directory, the spool, and names that he can foresee."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from adaptor.errors import AdaptorError
from adaptor.protocol.access import CLIENT_ACCESS, AccessError, read_access, worker_access
from adaptor.protocol.maildir import Envelope, Seal, file_name
from adaptor.protocol.state_directory import private_directory
from tests.living import run_text, until
from tests.security.probe import probe
from tests.security.world import MALLORY, World, all_below, as_mallory

DENIED = "permission denied"


def denied(act: Callable[[], object]) -> None:
    with pytest.raises(PermissionError):
        as_mallory(act)


@probe("listing the state directory", DENIED)
def list_state(world: World) -> None:
    denied(lambda: os.listdir(world.state))


@probe("reading the keys, the access files, the journal, the log", DENIED)
def read_state(world: World) -> None:
    names = ("keys.json", CLIENT_ACCESS, worker_access("here"), "journal.sqlite", "daemon.log")
    for name in names:
        assert (world.state / name).stat().st_size
        denied((world.state / name).read_bytes)


@probe("the same files, should the state directory have been opened by mistake", DENIED)
def read_open_state(world: World) -> None:
    """Access files, keys and journal are 0600 by themselves."""
    world.state.chmod(0o755)
    try:
        for name in ("keys.json", CLIENT_ACCESS, worker_access("here"), "journal.sqlite", "daemon.log"):
            denied((world.state / name).read_bytes)
    finally:
        world.state.chmod(0o700)


@probe("replacing the keys by keys of his own", DENIED)
def replace_keys(world: World) -> None:
    denied(lambda: (world.state / "keys.json").write_bytes(b"{}"))
    planted = world.own_folder() / "keys.json"
    planted.write_bytes(b"{}")
    denied(lambda: planted.rename(world.state / "keys.json"))


@probe("taking or holding the daemon's lock", DENIED)
def take_lock(world: World) -> None:
    denied(lambda: os.open(world.state / "daemon.lock", os.O_RDWR))
    world.well()


@probe("reading scripts and logs in the folders of pilots, and writing there", DENIED)
def pilot_folders(world: World) -> None:
    folders = list((world.state / "pilots").iterdir())
    assert folders
    for folder in folders:
        denied(lambda folder=folder: os.listdir(folder))  # type: ignore[misc]
        denied(lambda folder=folder: (folder / "left-n1").touch())  # type: ignore[misc]


@probe("finding a secret key anywhere but in the key file and the access files", "there is none")
def secrets_elsewhere(world: World) -> None:
    where = set()
    for path in all_below(world.root):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file() and any(secret in path.read_bytes() for secret in world.secrets):
                where.add(path.name)
    assert where - {"keys.json", CLIENT_ACCESS} == set(map(worker_access, ("here", "spooled", "free")))


@probe("a command of the adaptor with $ADAPTOR_DIR set to the victim's state directory", "refused")
def borrowed_state(world: World) -> None:
    with pytest.raises(AdaptorError, match=r"cannot be used|belongs to user"):
        as_mallory(lambda: private_directory(world.state))


@probe("making the victim's state directory first", "the daemon refuses a folder of another user")
def state_made_first(world: World) -> None:
    _refused(world, world.own_folder(), "belongs to user")


@probe("a link to a folder of his own in place of the state directory", "refused as well")
def state_is_a_link(world: World) -> None:
    link = world.root / "state-link"
    link.symlink_to(world.own_folder())
    _refused(world, link, "belongs to user")


@probe("a state directory that the victim left open to others", "refused until it is closed")
def open_state(world: World) -> None:
    folder = world.root / "open-state"
    folder.mkdir()
    folder.chmod(0o777)
    _refused(world, folder, "chmod 700")


def _refused(world: World, folder: Path, why: str) -> None:
    done = run_text(
        world.lab.command("daemon", "start"),
        env={**world.lab.environment, "ADAPTOR_DIR": str(folder)},
        timeout=60,
    )
    assert done.returncode == 1
    assert why in done.stderr
    assert not list(folder.iterdir())


@probe("an access file of his own, or one that others can read", "refused: its key is worth nothing")
def planted_access(world: World) -> None:
    planted = world.own_folder() / CLIENT_ACCESS
    planted.write_bytes((world.state / CLIENT_ACCESS).read_bytes())
    planted.chmod(0o600)
    os.chown(planted, MALLORY, MALLORY)
    with pytest.raises(AccessError, match="must belong to you alone"):
        read_access(planted)
    os.chown(planted, os.getuid(), os.getgid())
    planted.chmod(0o604)
    with pytest.raises(AccessError, match="must belong to you alone"):
        read_access(planted)


@probe("a FIFO in place of an access file", "refused, not waited for")
def access_is_a_fifo(world: World) -> None:
    planted = world.own_folder() / CLIENT_ACCESS
    os.mkfifo(planted, 0o600)
    with pytest.raises(AccessError, match="no plain file"):
        read_access(planted)


@probe("listing or reading the spool", DENIED)
def read_spool(world: World) -> None:
    denied(lambda: os.listdir(world.inbox))
    denied(lambda: os.listdir(world.inbox.parent / "out"))


@probe("writing into the spool", DENIED)
def write_spool(world: World) -> None:
    denied(lambda: (world.inbox / file_name("9-0123abcd-1", 1)).touch())


def _planted(world: World, plant: Callable[[Path], object]) -> None:
    """Something with a worker file's name, as he could put there if the spool were open: it is removed."""
    path = world.inbox / file_name(f"9-{os.urandom(4).hex()}-1", 1)
    world.placed(path, plant, MALLORY)
    until(lambda: not os.path.lexists(path), "the spool is rid of it")
    world.well()


@probe("a file of his own in the spool, should that be open", "removed unread")
def spool_file(world: World) -> None:
    _planted(world, lambda path: path.write_bytes(b"x" * 100))


@probe(
    "a link to a file of the victim in the spool", "the link is removed; the file is neither read nor changed"
)
def spool_link(world: World) -> None:
    victim = world.root / "victim.txt"
    victim.write_text("precious")
    _planted(world, lambda path: path.symlink_to(victim))
    assert victim.read_text() == "precious"


@probe("a FIFO in the spool", "removed, not waited for")
def spool_fifo(world: World) -> None:
    _planted(world, os.mkfifo)


@probe("a folder, and a sparse file of 1 TB, in the spool", "removed unread")
def spool_giants(world: World) -> None:
    _planted(world, Path.mkdir)

    def sparse(path: Path) -> None:
        path.touch()
        os.truncate(path, 2**40)

    before = world.resident()
    _planted(world, sparse)
    assert world.resident() - before < 16 * 2**20


@probe("a message in the spool that is sealed with another key", "removed; nothing of it is believed")
def spool_forgery(world: World) -> None:
    """Even if it is the victim's own file."""
    name = file_name(f"1-{os.urandom(4).hex()}-1", 1)
    forged = Seal("his own key").close(f"in/{name}", Envelope("1-n-1", [b"\x81"]))

    def write(path: Path) -> None:
        path.touch(mode=0o600)
        path.write_bytes(forged)

    world.placed(world.inbox / name, write, os.getuid())
    world.well()
    until(lambda: name.encode() in (world.state / "daemon.log").read_bytes(), "it is remarked")
    (world.inbox / name).unlink(missing_ok=True)


@probe("names in /tmp that could be foreseen", "the daemon has nothing there")
def temporary_names(world: World) -> None:
    open_there = [each.path for each in world.daemon.open_files() if each.path.startswith("/tmp/adaptor")]
    assert open_there == []
    names = [Path(each.laddr) for each in world.daemon.net_connections("unix") if each.laddr.startswith("/")]
    assert not [name for name in names if os.path.lexists(name)]


@probe("any file of the victim's state that others may read or write", "there is none")
def modes(world: World) -> None:
    loose = []
    for path in all_below(world.state, world.spool):
        with contextlib.suppress(FileNotFoundError):
            if path.lstat().st_mode & 0o077 and not path.is_symlink() and not _below_private(path):
                loose.append(path)
    assert loose == []


def _below_private(path: Path) -> bool:
    """Whether a folder that no other user can enter lies above: what the tasks' own umask made there is no
    finding."""
    return any(
        stat.S_IMODE(above.stat().st_mode) & 0o077 == 0 for above in path.parents if above.name.isdigit()
    )
