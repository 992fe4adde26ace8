"""The site configuration as typed objects; `loading` reads them from YAML."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from adaptor.config.budget import BudgetConfig, PriceConfig
from adaptor.config.donation import DonationConfig
from adaptor.config.preferences import PreferencesConfig
from adaptor.config.ranges import ChargingUnit, Count, Port, PositiveDuration, PositiveShare
from adaptor.config.ssh import SshConfig
from adaptor.units import Duration


class LimitsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The scheduler is asked for what is left out."""

    max_pending_requests: Count | None = None
    max_proc: Count | None = None
    max_tr: PositiveDuration | None = None


class SiteConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One space-shared resource reached through one batch scheduler."""

    backend: str
    """A type of batch scheduler that is installed (`adaptor.config.registered`)."""
    dialect: str | None = None
    """Of a scheduler that has several; None: told by its version."""
    partition: str | None = None
    """PBS: the queue."""
    account: str | None = None
    qos: str | None = None
    extra_args: tuple[str, ...] = ()
    """Arguments for the submit command, verbatim."""
    prologue: str = ""
    """Shell lines that each pilot runs before its workers, for instance `module load …`."""
    python: str | None = None
    """The interpreter for the workers; None: the daemon's own, which the nodes must then have."""
    ssh: SshConfig | None = None
    """Of a remote site: how its login node is reached; None: the scheduler answers on this machine."""
    environment: dict[str, str] = {}
    """Variables for the scheduler's commands, for instance `SLURM_CONF` or `PATH`."""
    limits: LimitsConfig = LimitsConfig()
    heuristic: Literal["static", "adaptive"] = "adaptive"
    initial_tr: PositiveDuration = Duration(3600)
    """The runtime assumed of a task before any has finished (De Rose §4.4: one hour)."""
    growth_factor: Annotated[int, msgspec.Meta(ge=2, le=1000)] = 2
    """The factor of tr after a task exceeded it (De Rose §4.3.1: an integer)."""
    pad: Duration = Duration(30)
    """Added to tr for the start-up of a pilot and the end of its tasks."""
    idle_timeout: Duration = Duration(60)
    """How long a worker without work keeps its node."""
    spool: str | None = None
    """A private folder that this machine and the nodes share, where no node can connect to this machine."""
    processors_per_node: Count | None = None
    processors: Count | None = None
    """Processors of a local site; None: all of this machine."""
    whole_nodes: bool = False
    """Whether a request always gets whole nodes."""
    shrink_to_fit: PositiveShare | None = None
    """OpenPBS: the share of tr with which a request is content where a hole turns out shorter; None: all."""
    poll_interval: PositiveDuration | None = None
    """How often the queue is read; None: the backend's own choice."""
    command_timeout: PositiveDuration = Duration(30)
    """How long a scheduler command may take."""
    grace_time: Duration = Duration(10)
    """The time that a worker has to end its tasks when it must leave."""
    price: PriceConfig = PriceConfig()
    charging_unit: ChargingUnit = Duration(1)
    """The time step that is billed; a part of a step counts as a whole one."""
    overrun: Duration | None = None
    """How long the scheduler may let a pilot run beyond tr; it is reserved too. None: by backend."""
    budget: BudgetConfig | None = None
    """What all bags together may spend here; None: no limit."""
    donation: DonationConfig | None = None
    """How idle nodes are donated; None: they are not."""


class DaemonConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    host: str | None = None
    """The address by which workers reach this machine; None: its names and addresses are tried in turn."""
    port: Port = 0
    """The port for workers; 0: a free one, kept over restarts."""
    worker_timeout: PositiveDuration = Duration(30)
    """A worker that is silent for longer is lost."""


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sites: dict[str, SiteConfig]
    daemon: DaemonConfig = DaemonConfig()
    preferences: PreferencesConfig = PreferencesConfig()
    """How boldly hosts are bought for bags with `prefer` or a deadline."""


BUILT_IN = Config(
    sites={
        "local": SiteConfig(
            backend="local",
            initial_tr=Duration(600),
            pad=Duration(10),
            idle_timeout=Duration(10),
        )
    }
)
"""The configuration if there is no file."""
