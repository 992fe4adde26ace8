"""`adaptor site install-hooks`: the scripts by which a scheduler takes donated nodes back."""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path

import click

from adaptor.cli.options import config_option, json_option, no_such_site
from adaptor.cli.printing import print_json
from adaptor.config.donation import DonationConfig
from adaptor.config.loading import config_path, load_config
from adaptor.config.schema import SiteConfig
from adaptor.errors import AdaptorError, UsageError
from adaptor.private_files import write_atomically
from adaptor_donation_agents.changeable import changeable_by_others
from adaptor_donation_agents.hooks import Hooks, Wanted, make_hooks


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

    Slurm gets a prolog and an epilog, OpenPBS a hook, Torque a prologue and an epilogue. It also prints
    instructions for the administrator.

    \b
    Example:
      adaptor site install-hooks cluster --write /etc/slurm
    """
    site, donation = _donating_site(name, config)
    interpreter = _interpreter(python or site.python, site)
    hooks = make_hooks(site, Wanted(name, interpreter, _number_of(user), donation))
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
