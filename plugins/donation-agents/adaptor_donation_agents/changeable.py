"""What root's hooks run, and who else than root can change it."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from adaptor.errors import AdaptorError
from adaptor.units import counted

_TELL = """\
import os, runpy, site, sys, sysconfig
import adaptor, adaptor_donation_agents.reclaim, ctypes, syslog
print(os.path.realpath(sys.executable))
for path in (sys.prefix + "/pyvenv.cfg", *sys.path): print(path)
for module in list(sys.modules.values()):
    for name in ("__file__", "__cached__"): print(getattr(module, name, None) or "")
packages = (adaptor.__path__[0], adaptor_donation_agents.__path__[0])
for folder in (*packages, sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")):
    print("all of " + folder)
for folder in site.getsitepackages():
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        if name.endswith(".pth"): print(folder + "/" + name)
for line in open("/proc/self/maps"): print(line.split(None, 5)[5].strip() if line.count("/") else "")
"""
"""Names what an interpreter runs for a hook: itself, its libraries, each module that is imported at once, and
the folders in which it may look for others; its `.pth` files hold code."""
_TREE = "all of "
_TIMEOUT = 30
"""Seconds."""
_SHOWN = 5
_ASIDE = {"site-packages", "dist-packages", "test"}
"""Folders in that of the standard library; what hooks use of the packages in them is named by itself."""


def changeable_by_others(interpreter: str) -> list[str]:
    """What of an interpreter, its libraries and this package not only root can change, a phrase each.

    Raises:
        AdaptorError: it does not run, or does not have this package.
    """
    found = _problems([interpreter])
    if not (found and os.geteuid() == 0):  # else root would already run here what it is warned of
        found = _problems([interpreter, *_places(interpreter)])
    more = [f"{counted(len(found) - _SHOWN, 'place')} more"] if len(found) > _SHOWN else []
    return found[:_SHOWN] + more


def _problems(paths: Iterable[str]) -> list[str]:
    checked: dict[str, str] = {}
    for path in paths:
        _check_way(path, checked)
    return [problem for problem in checked.values() if problem]


def _places(interpreter: str) -> Iterator[str]:
    try:
        done = subprocess.run(
            [interpreter, "-I", "-c", _TELL],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AdaptorError(f"{interpreter}: cannot be run: {error}") from error
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise AdaptorError(f"{interpreter}: does not have the adaptor installed: {why}")
    for line in done.stdout.splitlines():
        folder = line.removeprefix(_TREE)
        if folder.startswith("/"):
            yield from _tree(folder) if line.startswith(_TREE) else [folder]


def _tree(top: str) -> Iterator[str]:
    """A folder of modules with all that it holds, but not the packages that are installed there."""
    yield top
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if name not in _ASIDE]
        yield from (os.path.join(folder, name) for name in (*folders, *files))  # noqa: PTH118  (thousands)


def _check_way(path: str, checked: dict[str, str]) -> None:
    """Check a path with all above it, and where the links among them lead."""
    if path in checked:
        return
    above = os.path.dirname(path)  # noqa: PTH120
    if above != path:
        _check_way(above, checked)
    try:
        status = os.lstat(path)
    except OSError:  # it is not there: what can put it there is checked, the folder
        checked[path] = ""
        return
    checked[path] = _problem(path, status)
    if stat.S_ISLNK(status.st_mode):
        _check_way(os.path.normpath(Path(above).resolve() / Path(path).readlink()), checked)


def _problem(path: str, status: os.stat_result) -> str:
    if status.st_uid:
        return f"{path} belongs to user {status.st_uid}"
    others_write = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not stat.S_ISLNK(status.st_mode)
    if others_write and not (stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX):
        return f"{path} is writable by others"
    return ""
