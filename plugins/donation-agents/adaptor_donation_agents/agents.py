"""Starts, watches and ends workers on idle nodes, by commands that are run on these nodes."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from adaptor.config.donation import NODE, DonationConfig
from adaptor.config.schema import SiteConfig
from adaptor.processes.commands import isolated_command
from adaptor.reports import JobReport, JobState, NodeReport, OwnJob
from adaptor_donation_agents.notes import AgentEnd, Notes, report
from adaptor_donation_agents.records import NOTHING, REFUSED, Order, check_name
from backends.base import Backend, InFront, PilotOrder, SchedulerError, SubmitRefused, SubmitUncertain
from backends.commands import CommandHung, Commands
from backends.donation import agent_id, is_agent, node_and_tag, nodes_at_once
from backends.machines.base import Machine
from backends.machines.here import HERE
from backends.scripts import with_prologue

log = logging.getLogger(__name__)

_BATCH = 50  # notes of old agents that are removed at a time, at least
_STALE = 3600.0  # seconds after which an order that no node has carried out is withdrawn
_SLACK = 5.0  # seconds for reaching a node, besides the time that ending an agent takes


class Agents:
    """The agents of one site. All calls block.

    The notes on them are in a folder that the site's machine and its nodes share, so all of them are
    looked at with one question, and found again whatever was killed.
    """

    def __init__(
        self, site: SiteConfig, donation: DonationConfig, folder: Path, python: str, machine: Machine = HERE
    ) -> None:
        """
        Args:
            folder: for the notes; relative to the home directory on a distant machine.
            python: the interpreter on the nodes, where this package is installed for it.
            machine: where the launcher is called.
        """
        self._prologue = site.prologue
        self._at_once = nodes_at_once(site)
        self._donation = donation
        self._python = python
        self._machine = machine
        self._notes = Notes(machine, folder)
        self._starting = Commands(dict, site.command_timeout, machine)
        patience = max(float(site.command_timeout), float(donation.reclaim_timeout) + _SLACK)
        self._ending = Commands(dict, patience, machine)
        self._lost: dict[str, AgentEnd] = {}  # by tag: agents that were not found
        self._reported: set[str] = set()  # tags of agents whose end was reported
        self._open: dict[str, float] = {}
        """By tag: since when an order is known that no node has carried out, monotonic seconds."""

    def start(self, order: PilotOrder) -> str:
        """Use `order.node`; the id of the agent.

        Raises:
            SubmitRefused: the node says why it is not donated; nothing was started.
            SubmitUncertain: the node has not answered.
            SchedulerError: nothing was started.
        """
        words = isolated_command(self._python, "adaptor_donation_agents.keeper", str(self._write(order)))
        command = command_on(self._donation.launcher, order.node, words)
        try:
            answer = self._starting.run(*command)
        except CommandHung as error:
            raise SubmitUncertain(f"{order.node}: {error}") from error
        if answer.status == REFUSED:
            self._notes.forget([order.tag])
            raise SubmitRefused(f"{order.node} is not donated: {answer.complaint}")
        if answer.status:
            raise SubmitUncertain(
                f"{order.node}: {command[0]} failed with status {answer.status}: {answer.complaint}"
            )
        return agent_id(order.node, order.tag)

    def reports(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        """The agents with these ids, and all whose tag starts with `tag_prefix`. Raises SchedulerError."""
        wanted = set(ids)
        chosen = [each for each in self._all() if each.id in wanted or each.tag.startswith(tag_prefix)]
        ended = {each.tag: each.id for each in chosen if each.end is not None}
        # A client that got the report of an end and no longer asks for it has taken it over.
        tags = [tag for tag, id in ended.items() if tag in self._reported and id not in wanted]
        if len(tags) >= _BATCH:
            self._notes.forget(tags)
            for tag in tags:
                self._lost.pop(tag, None)
        self._reported = set(ended)
        return chosen

    def end(self, jobs: Collection[OwnJob]) -> None:
        """End these agents; one whose node is not reached counts as lost with its node.

        Raises SchedulerError: their notes cannot be read.
        """
        running = {each.own for each in self._all() if each.end is None}
        wanted = [job.id for job in dict.fromkeys(jobs) if job in running]
        if wanted:
            with ThreadPoolExecutor(min(self._at_once, len(wanted)), "ending") as pool:
                list(pool.map(self._end, wanted))

    def _all(self) -> list[JobReport]:
        entries, moment = self._notes.entries(), time.monotonic()
        waiting = [each.ordered.tag for each in entries if each.start is None and each.end is None]
        self._open = {tag: self._open.get(tag, moment) for tag in waiting}
        # Otherwise the order of a node that was never reached would stay.
        if stale := [tag for tag, since in self._open.items() if moment - since > _STALE]:
            self._notes.forget(stale)
        now = time.time()
        reports = (report(each, self._lost.get(each.ordered.tag), now) for each in entries)
        return [each for each in reports if each is not None]

    def _write(self, order: PilotOrder) -> Path:
        worker, environment = with_prologue(order, self._prologue, self._machine.write_private)
        return self._notes.order(
            Order(
                tag=order.tag,
                node=order.node,
                p=order.request.p,
                tr=order.request.tr,
                grace=self._donation.grace,
                worker=list(worker),
                environment=environment,
                directory=str(order.directory),
                runtime=self._donation.runtime_directory,
            )
        )

    def _end(self, id: str) -> None:
        node, tag = node_and_tag(id)
        try:
            problem = self._cancel(node, tag)
        except SchedulerError as error:
            problem = f"{node} is not reached: {error}"
        if problem:
            log.warning("the agent %s: %s", tag, problem)
            self._lost[tag] = AgentEnd(ended=time.time(), state=JobState.NODE_FAILED, reason=problem)

    def _cancel(self, node: str, tag: str) -> str:
        """Why it counts as lost; empty: it was ended, or is being ended."""
        timeout = f"{self._donation.reclaim_timeout:g}"
        options = ["--cancel", tag, "--timeout", timeout, "--runtime", self._donation.runtime_directory]
        words = isolated_command(self._python, "adaptor_donation_agents.reclaim", node, *options)
        answer = self._ending.run(*command_on(self._donation.launcher, node, words))
        if answer.status:
            return f"{node} is not reached: {answer.complaint}"
        return f"nothing of it was left on {node}" if NOTHING in answer.output else ""


_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")  # means the same to every program and every shell


def command_on(launcher: Sequence[str], node: str, words: Sequence[str]) -> list[str]:
    """`words` behind the site's launcher; themselves where it has none.

    Raises SchedulerError: the node has no name that we trust in a command, or a word would mean something
    else to the shell of a node (ssh hands all words to one).
    """
    try:
        check_name(node)
    except ValueError as error:
        raise SchedulerError(f"a node cannot be donated: {error}") from error
    for word in words:
        if launcher and not _PLAIN.fullmatch(word):
            raise SchedulerError(
                f"{word!r} cannot be passed to {node}: a launcher needs paths of letters, digits and "
                "'_@%+=:,./-'; put the adaptor and its state directory ($ADAPTOR_DIR) on such paths"
            )
    return [*(word.replace(NODE, node) for word in launcher), *words]


class WithAgents(InFront):
    """Orders with a node go to the agents, others to the scheduler."""

    def __init__(self, scheduler: Backend, agents: Agents) -> None:
        super().__init__(scheduler)
        self._agents = agents

    def nodes(self, donated: Collection[str]) -> list[NodeReport]:
        return self._behind.nodes([id for id in donated if not is_agent(id)])

    def submit(self, order: PilotOrder) -> str:
        return self._agents.start(order) if order.node else self._behind.submit(order)

    def jobs(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        requests = self._behind.jobs([id for id in ids if not is_agent(id)], tag_prefix)
        return [*requests, *self._agents.reports([id for id in ids if is_agent(id)], tag_prefix)]

    def cancel(self, jobs: Collection[OwnJob]) -> None:
        agents = [job for job in jobs if is_agent(job.id)]
        requests = [job for job in jobs if not is_agent(job.id)]
        if agents:
            self._agents.end(agents)
        if requests:
            self._behind.cancel(requests)

    def release(self, job: OwnJob, nodes: Collection[str]) -> None:
        if is_agent(job.id):
            raise SchedulerError(f"{job.id}: an agent holds one node and gives it back when it ends")
        self._behind.release(job, nodes)


def with_agents(
    scheduler: Backend,
    site: SiteConfig,
    donation: DonationConfig,
    folder: Path,
    python: str,
    machine: Machine,
) -> Backend:
    """Implements `backends.registry.MakeAgents`."""
    return WithAgents(scheduler, Agents(site, donation, folder, python, machine))
