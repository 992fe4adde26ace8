"""Slurm as a backend."""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from pathlib import Path

from adaptor.config.schema import SiteConfig
from adaptor.model import Limits, QueueState
from adaptor.reports import JobReport, NodeReport
from backends.base import PilotOrder, SchedulerError, SubmitRefused, SubmitUncertain
from backends.ceilings import limits_of
from backends.chunks import chunks
from backends.commands import CommandHung, Commands
from backends.donation import donation_terms, shortened
from backends.hidden import SecondLook
from backends.machines.base import Machine
from backends.machines.here import HERE
from backends.scripts import render
from backends.sharing import SharedLook
from backends.slurm.donation import NodesSeen, donatable, node_reports
from backends.slurm.environment import asking_environment, submitting_environment
from backends.slurm.jobs import OwnJobs, remaining_nodes
from backends.slurm.limits import ask_terms, ceilings
from backends.slurm.margin import TIME_RESOLUTION, slot_margin
from backends.slurm.nodes import SiteNodes, check_started, find_site
from backends.slurm.questions import Questions, read
from backends.slurm.queue import Observation, queue_state
from backends.slurm.rows import Partition, find_partition
from backends.slurm.submitting import accepted_id, arguments_of, minutes_of, own_reservation

TEMPLATE = Path(__file__).with_name("pilot.template")
_SETTINGS_KEPT = 600.0
"""Seconds for which Slurm's own configuration is taken to stay as it is."""


class SlurmBackend:
    """Implements `backends.base.Backend`."""

    time_resolution = TIME_RESOLUTION
    can_release = True

    def __init__(self, site: SiteConfig, machine: Machine = HERE) -> None:
        """`machine`: where Slurm's commands are run and the scripts lie."""
        self._site = site
        self._machine = machine
        self._commands = Commands(asking_environment, site.command_timeout, machine)
        self._submitting = Commands(submitting_environment, site.command_timeout, machine)
        self._questions = Questions(self._commands)
        self._look = SharedLook(lambda: read(self._questions))
        self._own_jobs = OwnJobs(self._questions)
        self._second_look = SecondLook()
        self._known_partitions: dict[str, Partition] = {}
        self._settings_until = 0.0
        self.slot_margin = slot_margin({})

    def queue_state(self) -> QueueState:
        """See `backends.base.Backend`.

        Raises:
            SchedulerError: no answer, no such partition, or the partition starts no jobs at the moment.
        """
        return self._second_look.state(lambda: queue_state(self._observe()))

    def nodes(self, donated: Collection[str]) -> list[NodeReport]:
        """See `backends.base.Backend`. Asks nothing that `queue_state` has just been told, or the reverse.

        Raises:
            SchedulerError: no answer, no such partition (the site's or that of `donation`), or it starts
                no jobs at the moment.
        """
        seen = self._look.take("nodes")
        return node_reports(
            NodesSeen(
                now=seen.now,
                nodes=donatable(seen.nodes, self._site),
                jobs=seen.jobs,
                donated=frozenset(donated),
                reservations=seen.other_reservations(own_reservation(donation_terms(self._site))),
            )
        )

    def submit(self, order: PilotOrder) -> str:
        """See `backends.base.Backend`.

        Raises:
            SubmitRefused: Slurm said no.
            SubmitUncertain: sbatch hung, or failed in a way that leaves open what became of the request.
            SchedulerError: sbatch cannot be run or did not reach Slurm; the request is not queued.
        """
        if order.node:
            order = shortened(order, self._longest_donation())
        self._refuse_what_never_fits(order)
        script = order.directory / "pilot.sh"
        command = [*self._arguments(order), str(script)]
        text = render(
            TEMPLATE,
            processors=order.request.p,
            minutes=str(minutes_of(order)),
            command=["sbatch", *command],
            environment=order.environment,
            prologue=self._site.prologue,
            worker=order.worker,
        )
        self._machine.write_private(script, text.encode())
        self._look.forget()
        try:
            answer = self._submitting.run("sbatch", *command)
        except CommandHung as error:
            raise SubmitUncertain(str(error)) from error
        return accepted_id(answer)

    def jobs(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        """See `backends.base.Backend`."""
        return self._own_jobs.reports(ids, tag_prefix)

    def cancel(self, ids: Collection[str]) -> None:
        """See `backends.base.Backend`. Slurm tells running workers first and waits `KillWait` for them."""
        self._look.forget()
        for part in chunks(ids):
            answer = self._commands.run("scancel", *part)
            if answer.status and not _is_over(answer.errors):
                raise SchedulerError(f"scancel failed with status {answer.status}: {answer.complaint}")

    def release(self, id: str, nodes: Collection[str]) -> None:
        """See `backends.base.Backend`. Whatever still runs on these nodes is killed.

        Without accounting, Slurm (22.05) lets a job shrink only once.

        Raises:
            SchedulerError: Slurm does not let the job shrink (now), or nothing would be left of it.
        """
        remaining = remaining_nodes(self._questions.own_jobs(), id, nodes)
        self._look.forget()
        self._commands.ask("scontrol", "update", f"JobId={id}", f"NodeList={','.join(remaining)}")

    def advertised_limits(self) -> Limits:
        """See `backends.base.Backend`; `backends.slurm.limits` says where each comes from."""
        site = self._site_nodes()
        return limits_of(ceilings(ask_terms(self._questions), self._site, site))

    def _observe(self) -> Observation:
        seen = self._look.take("queue")
        site = find_site(seen.nodes, self._site.partition)
        check_started(site.partition, site.available)
        return Observation(
            now=seen.now,
            site=site,
            jobs=seen.jobs,
            reservations=seen.other_reservations(own_reservation(self._site)),
            tiers={partition.name: partition.tier for partition in self._partitions().values()},
            whole_nodes=self._site.whole_nodes or site.exclusive,
        )

    def _site_nodes(self) -> SiteNodes:
        return find_site(self._questions.nodes(), self._site.partition)

    def _partitions(self) -> dict[str, Partition]:
        if time.monotonic() >= self._settings_until:
            self.slot_margin = slot_margin(self._questions.settings())
            self._known_partitions = {each.name: each for each in self._questions.partitions()}
            self._settings_until = time.monotonic() + _SETTINGS_KEPT
        return self._known_partitions

    def _refuse_what_never_fits(self, order: PilotOrder) -> None:
        """Slurm itself may take a request for more than there is, and let it wait for ever."""
        chosen = self._partition(self._site.partition)
        if chosen is not None and order.request.p > chosen.processors:
            raise SubmitRefused(
                f"{order.request.p} processors were asked for, but partition {chosen.name} has only "
                f"{chosen.processors}: lower `limits.max_proc` of this site"
            )

    def _partition(self, name: str | None) -> Partition | None:
        return find_partition(self._partitions().values(), name)

    def _longest_donation(self) -> float:
        """Seconds."""
        partition = self._partition(donation_terms(self._site).partition)
        return partition.max_time if partition is not None else math.inf

    def _arguments(self, order: PilotOrder) -> list[str]:
        if order.node:
            return arguments_of(order, donation_terms(self._site), None)
        return arguments_of(order, self._site, self._processors_of_whole_nodes())

    def _processors_of_whole_nodes(self) -> int | None:
        """Processors of a node where only whole nodes are asked for, else None."""
        if not self._site.whole_nodes:
            return None
        return self._site.processors_per_node or self._site_nodes().usual_size


def _is_over(complaints: str) -> bool:
    """Whether scancel only says that there is nothing left to cancel."""
    lines = complaints.splitlines()
    harmless = ("Invalid job id", "already completing or completed")
    return bool(lines) and all(any(words in line for words in harmless) for line in lines)
