"""Facts about a kind of batch scheduler, in addition to its `Backend` for each site.

A distribution registers one object of it by an entry point of the group `adaptor.backends`;
`docs/backends.md` shows how. The object is loaded whenever a configuration is read, so its module imports its
backend only in the methods that need it.
"""

from __future__ import annotations

import abc
import importlib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from backends.traits import Traits

if TYPE_CHECKING:
    from adaptor.config.schema import SiteConfig
    from backends.base import Backend
    from backends.findings import Finding
    from backends.machines.base import Machine
    from backends.observed.backend import BatchBackend


WHERE_KEYS = ("constraint", "exclude", "nodelist", "gres", "licenses")
"""Keys of a site that only some types know, as each says."""


class BackendType(Traits, abc.ABC):
    """One kind of batch scheduler. Times are seconds."""

    title: str  # the scheduler's name for people, for instance `Slurm`
    poll_interval: float = 15.0  # between two looks at the queue, where a site does not say
    max_submissions: int | None = 60
    """Requests that a site is sent in any hour, where it does not say; None: no bound."""
    pause: float = 1.0  # at least between two steps of a site
    on_this_machine: bool = False  # whether all its workers run on the daemon's own machine
    ours_alone: bool = False  # whether no job of others can come into the queue of a site
    over_ssh: bool = True  # whether a site may have its scheduler on another machine, reached over ssh
    has_partitions: bool = False  # whether its sites may have `partitions`, among which each request chooses
    donation_modes: Collection[str] = ()
    """The modes of `donation` that its sites may have: `preemptible`, `agent`."""
    apart: tuple[str, ...] = ()
    """Arguments of its submit command by which each of a request's tasks gets a node of its own; empty: none
    are known."""
    discovery_order: int = 50
    """`adaptor site init` asks the types in this order, lowest first, until one answers."""

    @abc.abstractmethod
    def make(self, name: str, site: SiteConfig, state: Path, machine: Machine) -> Backend:
        """The backend of a site.

        Args:
            name: of the site.
            state: the daemon's state directory.
            machine: where the scheduler's commands run and the pilots' files lie.

        Raises AdaptorError: the backend cannot be made.
        """

    def make_each(
        self, name: str, sites: Mapping[str, SiteConfig], state: Path, machine: Machine
    ) -> dict[str, Backend]:
        """The backends of a site's partitions, by the names of these. They may share what they read.

        `sites`: by partition, the configuration of a site that has only this one.

        Raises AdaptorError: a backend cannot be made.
        """
        return {partition: self.make(name, site, state, machine) for partition, site in sites.items()}

    def key_problems(self, site: SiteConfig) -> Iterable[tuple[str, str]]:
        """Keys that say where requests run, and what is wrong with them: this type does not know them."""
        for key in WHERE_KEYS:
            if getattr(site, key) is not None:
                yield key, f"is not known to {self.title}; write what its submit command takes as extra_args"

    def overrun(self, site: SiteConfig) -> float:  # noqa: ARG002
        """Seconds that a job may run beyond its limit: schedulers look every 30 s or so, and give a job some
        30 s (Slurm: KillWait) from SIGTERM to SIGKILL."""
        return 90.0

    def describe_sites(self) -> str | None:
        """The YAML text of a configuration for the cluster here, for `adaptor site init`.

        None: the type cannot describe its clusters.

        Raises SchedulerError: no scheduler of this type answers here.
        """
        return None

    def answers(self) -> bool:
        """Whether this machine belongs to a cluster of this type: its scheduler answers, or hangs."""
        from backends.base import SchedulerError
        from backends.machines.base import CommandHung

        try:
            return self.describe_sites() is not None
        except CommandHung:
            return True
        except SchedulerError:
            return False

    def check_site(self, site: SiteConfig, machine: Machine) -> list[Finding]:  # noqa: ARG002
        """Check the configuration of a site against the live scheduler, for `adaptor site check`. Submits
        nothing."""
        return []


class BatchType(BackendType):
    """A batch scheduler whose partitions (or queues) share one reading of it."""

    has_partitions = True
    package: str  # package with `backend.BACKEND`, and with `describe_sites` and `check_site` in `discover`

    def make(self, name: str, site: SiteConfig, state: Path, machine: Machine) -> Backend:
        (made,) = self.make_each(name, {"": site}, state, machine).values()
        return made

    def make_each(
        self,
        name: str,  # noqa: ARG002
        sites: Mapping[str, SiteConfig],
        state: Path,  # noqa: ARG002
        machine: Machine,
    ) -> dict[str, Backend]:
        kind: type[BatchBackend[Any]] = self._module("backend").BACKEND
        shared = kind.reading(next(iter(sites.values())), machine)
        return {partition: kind(site, machine, shared) for partition, site in sites.items()}

    def describe_sites(self) -> str:
        return cast(str, self._module("discover").describe_sites())

    def check_site(self, site: SiteConfig, machine: Machine) -> list[Finding]:
        return cast("list[Finding]", self._module("discover").check_site(site, machine))

    def _module(self, name: str) -> Any:
        return importlib.import_module(f"{self.package}.{name}")
