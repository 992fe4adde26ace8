"""The part of a site's configuration that says about its login node."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from adaptor.config.yaml_lines import Fail


class SshConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a site's login node is reached from here, and how its workers reach the daemon."""

    host: str
    """The login node, by any name that `ssh` knows."""
    user: str | None = None
    """The account there; None: ssh's own choice."""
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] | None = None
    """Of the server there; None: ssh's own choice."""
    identity: str | None = None
    """The file of the private key; None: ssh's own choice."""
    options: dict[str, str] = {}
    """More settings of ssh_config(5)."""
    directory: str = ".adaptor"
    """The remote folder for pilots and access files, absolute or below the home directory."""
    link: Literal["tunnel", "direct", "spool"] = "tunnel"
    """Workers connect through the ssh connection, or straight to this machine, or exchange files."""
    address: str | None = None
    """By which the nodes reach their login node; None: its names and addresses are tried in turn."""


NAME = re.compile(r"[A-Za-z0-9_\[:.][A-Za-z0-9_\[\]:.%-]*")
"""Of a machine or a user, or an address; no option of a command looks like it."""
_OURS = frozenset(
    {"controlmaster", "controlpath", "controlpersist", "batchmode", "remotecommand", "requesttty"}
)


def check_ssh(ssh: SshConfig, backend: str, over_ssh: bool, at: str, fail: Fail) -> None:
    """No part of it may be taken for an option by ssh, or lead somewhere else than it says.

    Args:
        backend: the site's type of batch scheduler.
        over_ssh: whether such a scheduler can be on another machine.
    """
    if not over_ssh:
        fail(at, f"backend {backend} is this machine; a remote site needs a batch scheduler")
    for key, value in (("host", ssh.host), ("user", ssh.user), ("address", ssh.address)):
        if value is not None and not NAME.fullmatch(value):
            fail(f"{at}.{key}", f"{value!r} is not a name")
    if not ssh.directory or ssh.directory.startswith("~") or re.search(r"[\0\n]", ssh.directory):
        fail(f"{at}.directory", "must be a remote path, absolute or (without '~') below the home directory")
    for key, value in ssh.options.items():
        if not re.fullmatch(r"[A-Za-z0-9]+", key) or re.search(r"[\0\n]", value):
            fail(f"{at}.options.{key}", "is not a setting of ssh_config(5)")
        if key.lower() in _OURS:
            fail(f"{at}.options.{key}", "is set by the adaptor itself")


def check_environment(environment: Mapping[str, str], at: str, fail: Fail) -> None:
    """Check that a shell can set these variables."""
    for name, value in environment.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            fail(f"{at}.{name}", "the name of a variable consists of letters, digits and '_'")
        if "\0" in value:
            fail(f"{at}.{name}", "a variable cannot contain a NUL byte")
