"""The site configuration as typed objects; `loading` reads them from YAML.

`rare`: the keys that few sites need; the reference shows them after all others.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec

from adaptor.config.donation import DonationConfig
from adaptor.config.ranges import (
    ChargingUnit,
    Credits,
    GpuId,
    GpuNumber,
    KeptFor,
    PortNumber,
    PositiveCount,
    PositiveDuration,
)
from adaptor.crafting.heuristics import DEFAULT, HEURISTICS, HeuristicName
from adaptor.notify.channels import MARK, ME
from adaptor.units import Duration, HourlyRate


class SshConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Access to a site's login node from here, and from its workers to the daemon."""

    rare: ClassVar = frozenset({"port", "identity", "options", "address"})
    host: str
    """The login node, by any name that `ssh` knows."""
    user: str | None = None
    """The account there; None: ssh's own choice."""
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] | None = None
    """Port of the server there; None: ssh's own choice."""
    identity: str | None = None
    """The file of the private key; None: ssh's own choice."""
    options: dict[str, str] = {}
    """More settings of ssh_config(5)."""
    directory: str = ".adaptor"
    """The remote folder for pilots and access files, absolute or below the home directory."""
    address: str | None = None
    """Address by which the nodes reach their login node; None: its names and addresses are tried in turn."""


NoticeEvent = Literal["end", "pause", "failure"]
"""A bag's end; its pause, as its budget holds no request; its first failed task."""


class ChannelConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Address of messages; exactly one of `url` and `file`."""

    rare: ClassVar = frozenset({"events"})
    url: str | None = None
    """URL in apprise's form; the configuration must then be readable by its owner alone."""
    file: str | None = None
    """A file of mode 0600 with one URL a line."""
    events: tuple[NoticeEvent, ...] = ("end", "pause", "failure")
    """The events that send a message."""


MAIL = ChannelConfig()  # by `sendmail` to the user


class NotifyConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    channels: dict[str, ChannelConfig] = {}
    """Addresses of messages, each channel under a name of your choice."""
    default: tuple[str, ...] = ()
    """The channels of bags without `--notify`."""

    def channel(self, name: str) -> ChannelConfig | None:
        """The channel of a name that stands behind `--notify`; None: there is none."""
        if name.startswith(MARK):
            return ChannelConfig(file=name[len(MARK) :])
        return self.channels.get(name, MAIL if name == ME else None)


class HooksConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rare: ClassVar = frozenset({"timeout"})
    on_bag_end: tuple[str, ...] = ()
    """A program and its arguments, run once when a bag has ended; empty: none."""
    timeout: PositiveDuration = Duration(60)
    """A hook that runs longer is ended."""


class PriceConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Credits per hour."""

    explicit: Credits = 1.0
    """Price of a processor in formal requests."""
    donated: Credits | None = None
    """Price of a processor on donated nodes; None: the same."""
    gpu: Credits | None = None
    """Price of a GPU in formal requests, on top of its processors; on donated nodes it is cheaper as these
    are. None: nothing."""


class BudgetConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Credits that all bags together may spend at the site."""

    credits: Credits
    """Number of credits that may be spent."""
    period: Literal["day", "week", "month", "quarter", "year"] | None = None
    """The budget is for each such period of the calendar; None: once and for all."""
    zone: str = "UTC"
    """The time zone in which periods begin, for instance `Europe/Lisbon`."""


class LimitsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of requests; those left out follow from what the scheduler allows."""

    max_pending_requests: PositiveCount | None = None
    """Requests in the system at any instant, queued or running."""
    max_pilots: PositiveCount | None = None
    """Requests in the system at any instant for heuristics that make many narrow ones (`elastic`), in place
    of max_pending_requests; None: as max_pending_requests says, else half of the jobs that the scheduler lets
    a user submit."""
    max_proc: PositiveCount | None = None
    """Processors of one request; None: such that all requests together hold half of the partition."""
    max_tr: PositiveDuration | None = None
    """Time of one request."""


class PartitionConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of the partitions (PBS: queues) or QOS of a site among which each request chooses."""

    rare: ClassVar = frozenset({"account", "qos"})
    partition: str | None = None
    """The partition of Slurm, the queue of PBS; None: it is called as this entry."""
    account: str | None = None
    """Account to which its jobs are charged; None: as the site says."""
    qos: str | None = None
    """The quality of service of its jobs; None: as the site says."""
    limits: LimitsConfig = LimitsConfig()
    """Limits of its requests; those left out are the site's, or else the scheduler's."""


class SiteConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One space-shared resource reached through one batch scheduler."""

    rare: ClassVar = frozenset({
        "exclude", "nodelist", "gres", "licenses", "environment", "max_submissions",
        "max_withdrawals", "withdraw", "growth_factor", "pad", "idle_timeout", "poll_interval",
        "read_history", "remember", "shell", "node_folder", "command_timeout", "grace_time",
        "charging_unit", "overrun",
    })  # fmt: skip
    backend: str
    """The batch scheduler: `local`, `slurm`, `pbs`, or one that an installed package adds."""
    partition: str | None = None
    """The partition of Slurm, the queue of PBS; None: the scheduler's default."""
    partitions: dict[str, PartitionConfig] = {}
    """Partitions, or QOS, by name, instead of `partition`; each request goes to the one that suits it."""
    account: str | None = None
    """Account to which the scheduler charges the jobs; None: its default."""
    qos: str | None = None
    """Slurm: the quality of service of the jobs; None: the scheduler's default."""
    constraint: str | None = None
    """Slurm: features that the nodes of its requests have, as `sbatch --constraint` takes them. PBS: values
    of resources that each of them has, for instance `gpu_type=a100&bigmem`."""
    exclude: str | None = None
    """Slurm: nodes on which its requests never run, for instance `n[1-3],n7`."""
    nodelist: str | None = None
    """Slurm: the only nodes on which its requests run. PBS: the only node."""
    gres: str | None = None
    """Slurm: generic resources that each request gets of each of its nodes. GPUs are an option of a bag."""
    licenses: str | None = None
    """Slurm: licences that each request takes, for instance `matlab:2`."""
    extra_args: tuple[str, ...] = ()
    """Arguments for the submit command, verbatim."""
    prologue: str = ""
    """Shell lines that each pilot runs before its workers, for instance `module load …`."""
    shell: str | None = None
    """Shell for the shell lines of its tasks, with options: `sh`, `zsh`, `bash -l`; None: bash where the node
    has it, else `/bin/sh`."""
    node_folder: str | None = None
    """The folder on each node's own disk for what bags stage, for instance `/scratch` or `$SCRATCH`; None: a
    disk behind `TMPDIR`, `/tmp` or `/var/tmp`."""
    python: str | None = None
    """The interpreter for the workers; None: that of the daemon, which the nodes must then have."""
    ssh: SshConfig | None = None
    """Access to the login node of a remote site; None: the scheduler answers on this machine."""
    environment: dict[str, str] = {}
    """Variables for the scheduler's commands, for instance `SLURM_CONF` or `PATH`."""
    limits: LimitsConfig = LimitsConfig()
    """Limits of its requests; the scheduler's own limits hold too."""
    max_submissions: HourlyRate | None = None
    """Requests that it is sent in any hour at most, for instance `60/h`; None: `60/h`, a local site without
    bound."""
    max_withdrawals: HourlyRate | None = None
    """Queued requests that are withdrawn in any hour at most, for instance `10/h`; those that nothing needs
    any more count, and are always withdrawn. None: 20 for each that may be in the system, 1000 at least."""
    withdraw: bool = True
    """Whether queued requests may be withdrawn in order to make better ones; those that nothing needs are
    withdrawn in any case."""
    heuristic: HeuristicName = DEFAULT
    """Heuristic by which requests are crafted: `static` is Algorithm 1 of De Rose et al. (2008), `adaptive`
    Algorithm 2; `completion` compares sets of requests by when they complete the bag; `elastic` makes many
    narrow pilots, one for each free processor, and queues the others."""
    initial_tr: PositiveDuration | None = None
    """The runtime assumed of a task before any has finished; None: one minute, and all of its doublings
    too, for `completion`, else one hour (De Rose §4.4)."""
    growth_factor: Annotated[int, msgspec.Meta(ge=2, le=1000)] = 2
    """The factor of tr after a task exceeded it (De Rose §4.3.1: an integer)."""
    pad: Duration = Duration(30)
    """Added to tr for the start-up of a pilot and the end of its tasks."""
    idle_timeout: Duration = Duration(60)
    """Time for which a worker without work keeps its node."""
    spool: str | None = None
    """A private folder that the nodes share with the login node, where no node can connect to the daemon."""
    processors_per_node: PositiveCount | None = None
    """Processors of one node; `whole_nodes` needs it."""
    processors: PositiveCount | None = None
    """Processors of a local site; None: all of this machine."""
    gpus: GpuNumber | tuple[GpuId, ...] | None = None
    """GPUs of a local site, how many or their ids; None: those that this machine shows."""
    whole_nodes: bool = False
    """Whether a request always gets whole nodes; needs `processors_per_node`."""
    poll_interval: PositiveDuration | None = None
    """Time between two readings of the queue; None: the backend's own choice. With events such as new bags it
    is read up to twice as often. While nothing happens, the pauses grow up to four times, and not beyond a
    minute."""
    read_history: bool = True
    """Whether the daemon learns from jobs of others without a bag: how long they ran, by `sacct` or
    `qstat -x` every two days, and how long they wait, by a look at the queue every 15 minutes."""
    remember: bool = True
    """Whether what its bags show of the kinds of their tasks is kept and used; false: what was kept goes."""
    command_timeout: PositiveDuration = Duration(30)
    """Time limit of a scheduler command."""
    grace_time: Duration = Duration(10)
    """The time that a worker has to end its tasks when it must leave."""
    price: PriceConfig = PriceConfig()
    """Price of a processor-hour."""
    charging_unit: ChargingUnit = Duration(1)
    """The time step that is billed; a part of a step counts as a whole one."""
    overrun: Duration | None = None
    """Time for which the scheduler may let a pilot run beyond tr; it is reserved too. None: by backend."""
    budget: BudgetConfig | None = None
    """Credits that all bags together may spend here; None: no limit."""
    donation: DonationConfig | None = None
    """Donation of idle nodes; None: no nodes are donated."""

    @property
    def assumed_runtime(self) -> float:
        """Seconds that a task is taken to run before anything is known of it."""
        return (
            HEURISTICS[self.heuristic].assumed_runtime if self.initial_tr is None else float(self.initial_tr)
        )


class DaemonConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Address of the daemon for workers."""

    rare: ClassVar = frozenset({"worker_timeout"})
    host: str | None = None
    """The address by which workers reach this machine; None: its names and addresses are tried in turn."""
    port: PortNumber = 0
    """The port for workers; 0: a free one, kept over restarts."""
    worker_timeout: PositiveDuration = Duration(30)
    """A worker that is silent for longer is lost."""


class JournalConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keep: KeptFor | None = None
    """Time for which bags are kept after their end; None: until `adaptor forget`."""


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sites: dict[str, SiteConfig]
    """The sites, each under a name of your choice; all of them serve the same bags."""
    daemon: DaemonConfig = DaemonConfig()
    """Address of the daemon for workers."""
    journal: JournalConfig = JournalConfig()
    """Keeping of bags that have ended."""
    notify: NotifyConfig = NotifyConfig()
    """Messages at the end, the pause and the first failure of a bag."""
    hooks: HooksConfig = HooksConfig()
    """Programs that the daemon runs when a bag has ended."""


BUILT_IN = Config(
    sites={
        "local": SiteConfig(
            backend="local", initial_tr=Duration(600), pad=Duration(10), idle_timeout=Duration(10)
        )
    }
)
"""The configuration if there is no file."""


def sites_of(site: SiteConfig) -> dict[str, SiteConfig]:
    """The site by partition, as if it had no other; a site without `partitions` has the empty name."""
    if not site.partitions:
        return {"": site}
    return {name: _alone(site, name, each) for name, each in site.partitions.items()}


def _alone(site: SiteConfig, name: str, entry: PartitionConfig) -> SiteConfig:
    return msgspec.structs.replace(
        site,
        partition=entry.partition or name,
        account=entry.account or site.account,
        qos=entry.qos or site.qos,
        limits=LimitsConfig(
            max_pending_requests=entry.limits.max_pending_requests or site.limits.max_pending_requests,
            max_pilots=entry.limits.max_pilots or site.limits.max_pilots,
            max_proc=entry.limits.max_proc or site.limits.max_proc,
            max_tr=entry.limits.max_tr or site.limits.max_tr,
        ),
        partitions={},
    )
