"""Attacks of another user by processes: /proc, signals, and folders that he makes before they are needed."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from adaptor_donation_agents.folders import UnsafeError, own_folder
from tests.living import is_alive, until
from tests.security.probe import probe
from tests.security.world import MALLORY, World, as_mallory

_PTRACE_ATTACH = 16


def each_denied(world: World, act: Callable[[psutil.Process], object]) -> None:
    denied = 0
    for process in world.processes():
        try:
            as_mallory(lambda process=process: act(process))  # type: ignore[misc]
        except (PermissionError, psutil.AccessDenied):
            denied += 1
        except (FileNotFoundError, ProcessLookupError, psutil.NoSuchProcess):
            assert not process.is_running(), "only a process that has ended may not be found"
        else:
            pytest.fail(f"not denied at process {process.pid}")
    assert denied >= 3, "the daemon, and a worker at each of two sites"


@probe("secrets in the arguments of processes", "there is none: arguments name files")
def arguments(world: World) -> None:
    def read() -> bytes:
        found = []
        for pid in psutil.pids():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found.append(Path(f"/proc/{pid}/cmdline").read_bytes())
        return b"".join(found)

    said = as_mallory(read)
    assert str(world.state).encode() in said
    assert not any(secret in said for secret in world.secrets)


@probe("secrets in the environment of processes", "denied; and there is none")
def environment(world: World) -> None:
    each_denied(world, lambda process: Path(f"/proc/{process.pid}/environ").read_bytes())
    for process in world.processes():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            said = Path(f"/proc/{process.pid}/environ").read_bytes()
            assert not any(secret in said for secret in world.secrets)


@probe("the memory of processes", "denied")
def memory(world: World) -> None:
    each_denied(world, lambda process: Path(f"/proc/{process.pid}/mem").read_bytes())
    each_denied(world, lambda process: Path(f"/proc/{process.pid}/maps").read_bytes())


@probe("the open files of processes", "denied")
def open_files(world: World) -> None:
    each_denied(world, lambda process: os.listdir(f"/proc/{process.pid}/fd"))


@probe("attaching a debugger", "denied")
def attach(world: World) -> None:
    def trace(process: psutil.Process) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.ptrace(_PTRACE_ATTACH, process.pid, None, None) == -1:
            raise PermissionError(ctypes.get_errno(), "ptrace")

    each_denied(world, trace)
    world.well()


@probe("SIGTERM, SIGKILL, SIGSTOP and SIGHUP to daemon, supervisors and workers", "denied; all go on")
def signals(world: World) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP, signal.SIGHUP):
        each_denied(world, lambda process, number=number: os.kill(process.pid, number))  # type: ignore[misc]
    world.well()


@probe(
    "a process of his own that claims, by its environment, to belong to the victim's pilots",
    "it is left alone",
)
def claimed_marker(world: World) -> None:
    """Check that a restart of the daemon ends processes as the victim, who may not signal others anyway."""
    markers = set()
    for process in world.processes():
        with contextlib.suppress(psutil.NoSuchProcess):
            markers.add(process.environ().get("ADAPTOR_SUPERVISED"))
    markers.discard(None)
    assert markers
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.close(writing)
            os.setgid(MALLORY)
            os.setuid(MALLORY)
            os.dup2(reading, 0)
            os.execve("/bin/cat", ["cat"], {"ADAPTOR_SUPERVISED": markers.pop()})
        os._exit(1)
    os.close(reading)
    until(lambda: psutil.Process(child).name() == "cat", "it runs")
    world.well()
    assert is_alive(child)
    os.close(writing)
    os.waitpid(child, 0)


@probe("making the runtime directory of donated nodes first", "nothing is lent through it")
def runtime_made_first(world: World) -> None:
    made = world.own_folder() / "adaptor-donated"
    as_mallory(lambda: made.mkdir(mode=0o755))
    with pytest.raises(UnsafeError, match=r"belongs to|other user"):
        own_folder(str(made))


@probe("a link in place of the runtime directory", "it is not followed")
def runtime_is_a_link(world: World) -> None:
    link = world.own_folder() / "adaptor-donated"
    target = world.root / "elsewhere"
    target.mkdir(exist_ok=True)
    link.symlink_to(target)
    with pytest.raises(UnsafeError):
        own_folder(str(link))
    assert not list(target.iterdir())


@probe("a runtime directory that all users may write to", "nothing is lent through it")
def runtime_is_open(world: World) -> None:
    made = world.root / "open-runtime"
    made.mkdir()
    made.chmod(0o777)
    with pytest.raises(UnsafeError, match="other users may write"):
        own_folder(str(made))


@probe("a link in place of the victim's folder in a sticky runtime directory", "it is not followed")
def users_folder_is_a_link(world: World) -> None:
    made = world.root / "runtime"
    made.mkdir(mode=0o755)
    target = world.own_folder()
    (made / str(os.getuid())).symlink_to(target)
    with pytest.raises(UnsafeError):
        own_folder(str(made))
    assert not list(target.iterdir())
