"""The type of the local site: this machine's processors as a batch scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from backends.backend_type import BackendType

if TYPE_CHECKING:
    from adaptor.config.schema import SiteConfig
    from backends.base import Backend
    from backends.findings import Finding
    from backends.machines.base import Machine

_SITE = """\
# Written by `adaptor site init`: no batch scheduler answered, so this machine's processors serve.
# Durations are seconds, '1h 30m' or 'HH:MM:SS'.

sites:
  local:
    backend: local
    processors: {processors}
    initial_tr: 10m
    pad: 10s
    idle_timeout: 10s
"""


class LocalType(BackendType):
    title = "local site"
    time_resolution = 1
    slot_margin = 0
    poll_interval = 1.0
    pause = 0.2
    max_submissions = None
    on_this_machine = True
    ours_alone = True
    over_ssh = False
    discovery_order = 1000

    def make(self, name: str, site: SiteConfig, state: Path, machine: Machine) -> Backend:  # noqa: ARG002
        from adaptor.protocol.state_directory import private_directory
        from backends.local.backend import LocalBackend

        private_directory(state / "sites")
        return LocalBackend(site, private_directory(folder_of(name, state)))

    def overrun(self, site: SiteConfig) -> float:
        """The supervisor gives the workers the site's grace time, then kills them; 5 s are for both."""
        return float(site.grace_time) + 5

    def describe_sites(self) -> str:
        """Configuration of this machine as a site; it can always be described."""
        from backends.local.admission import usable_processors

        return _SITE.format(processors=usable_processors())

    def check_site(self, site: SiteConfig, machine: Machine) -> list[Finding]:  # noqa: ARG002
        from backends.local.admission import check_site

        return check_site(site)


def folder_of(name: str, state: Path) -> Path:
    """Folder of the notes of the local site of this name, if there is or was one."""
    return state / "sites" / name


LOCAL = LocalType()
