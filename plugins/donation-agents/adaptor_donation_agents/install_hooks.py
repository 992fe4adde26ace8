"""`adaptor site install-hooks`: the scripts by which a scheduler takes donated nodes back."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from adaptor.cli.options import config_option, json_option, no_such_site
from adaptor.cli.printing import print_json
from adaptor.config.donation import DonationConfig
from adaptor.config.loading import config_path, load_config
from adaptor.config.schema import SiteConfig
from adaptor.errors import AdaptorError, UsageError
from adaptor.private_files import write_atomically
from adaptor.units import counted
from adaptor_donation_agents.hooks import HookOptions, Hooks, make_hooks


@click.command("install-hooks", short_help="Print or write the scripts that reclaim donated nodes.")
@click.argument("name", metavar="SITE")
@click.option("--write", metavar="DIR", help="Write the scripts into this folder instead of printing them.")
@click.option("--force", is_flag=True, help="Overwrite existing scripts.")
@click.option(
    "--python", metavar="FILE", help="The interpreter on the nodes (default: the site's, else this)."
)
@click.option(
    "--user",
    metavar="USER",
    help="The user whose workers run on donated nodes (default: you; with sudo: the caller).",
)
@config_option
@json_option
def install_hooks(
    name: str,
    write: str | None,
    force: bool,
    python: str | None,
    user: str | None,
    config: str | None,
    as_json: bool,
) -> None:
    """Print or write the scripts that reclaim donated nodes of SITE for its scheduler.

    Slurm gets a prolog and an epilog and OpenPBS a hook. It also prints
    instructions for the administrator.

    \b
    Example:
      adaptor site install-hooks cluster --write /etc/slurm
    """
    site, donation = _donating_site(name, config)
    interpreter = _interpreter(python or site.python, site)
    hooks = make_hooks(site, HookOptions(name, interpreter, _number_of(user), donation))
    warnings = _warnings(interpreter, site)
    folder = str(Path(write).expanduser().absolute()) if write else hooks.folder
    instructions = [line.replace("{folder}", folder) for line in hooks.instructions]
    if write:
        _write(Path(folder), hooks, force)
    if as_json:
        print_json(
            {
                "scripts": {script.name: script.text for script in hooks.scripts},
                "instructions": instructions,
                "warnings": warnings,
            }
        )
        return
    for warning in warnings:
        click.echo(f"adaptor: {warning}", err=True)
    for script in hooks.scripts:
        click.echo(str(Path(folder, script.name)) if write else f"# ----- {script.name}\n{script.text}")
    click.echo("\n".join(instructions), err=not write)


def _donating_site(name: str, config: str | None) -> tuple[SiteConfig, DonationConfig]:
    """Raises UsageError: no such site, or it does not donate nodes by agents."""
    path = config_path(config)
    sites = load_config(path).sites
    site = sites.get(name)
    if site is None:
        raise no_such_site(name, sites)
    if site.donation is None or site.donation.mode != "agent":
        raise UsageError(
            f"site {name} needs no hooks: only with donation.mode: agent do workers run on nodes outside the "
            f"scheduler ({path or 'no configuration file'})"
        )
    return site, site.donation


def _interpreter(named: str | None, site: SiteConfig) -> str:
    if named is None and site.ssh is not None:
        raise UsageError("a site behind ssh needs --python: the interpreter on its nodes")
    path = Path(named or sys.executable)
    if not path.is_absolute():
        raise UsageError(f"--python: {path} must be an absolute path; hooks have no search path")
    return str(path)


def _number_of(user: str | None) -> int:
    """Raises UsageError: there is no such user."""
    if user is None:
        return int(os.environ.get("SUDO_UID") or os.getuid())
    try:
        return int(user) if user.isdigit() else pwd.getpwnam(user).pw_uid
    except KeyError as error:
        raise UsageError(f"--user: no user {user} here") from error


def _warnings(interpreter: str, site: SiteConfig) -> list[str]:
    if site.ssh is not None:
        return [f"cannot check from here that only root can change {interpreter} on the nodes"]
    found = changeable_by_others(interpreter)
    if not found:
        return []
    return [
        f"root would run code that others can change: {'; '.join(found)}. Let root install the adaptor where "
        "only root writes, and name its interpreter, for instance: python3 -m venv /opt/adaptor, "
        "/opt/adaptor/bin/pip install request-adaptor, then --python /opt/adaptor/bin/python"
    ]


def _write(folder: Path, hooks: Hooks, force: bool) -> None:
    """No link in the place of a script is followed.

    Raises UsageError: a script exists; AdaptorError: one cannot be written.
    """
    for script in hooks.scripts:
        if os.path.lexists(folder / script.name) and not force:
            raise UsageError(f"{folder / script.name}: exists already; --force overwrites it")
    before = os.umask(0o022)  # the scheduler is to read them, whatever the administrator's umask
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for script in hooks.scripts:
            write_atomically(
                folder / script.name,
                script.text.encode(),
                temporary=folder / f".{script.name}.new",
                mode=script.mode,
                sync=True,
            )
    except OSError as error:
        raise AdaptorError(f"{error.filename}: cannot be written: {error.strerror}") from error
    finally:
        os.umask(before)


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
_TIMEOUT = 30  # seconds
_SHOWN = 5
_ASIDE = {"site-packages", "dist-packages", "test"}
"""Folders in that of the standard library; what hooks use of the packages in them is named apart."""


def changeable_by_others(interpreter: str) -> list[str]:
    """Parts of an interpreter, its libraries and this package that not only root can change, a phrase each.

    Raises AdaptorError: it does not run, or does not have this package.
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
