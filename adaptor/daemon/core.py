"""The core that the parts of the daemon share: the broker, its journal, and the way to the workers.

The order is always the same: the broker decides, the journal writes, then the workers get their messages.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from adaptor.budget.accounting.ledger import Ledger
from adaptor.daemon.clock import Clock, midnight, system_clock
from adaptor.daemon.earlier import Earlier
from adaptor.daemon.notices import Listeners, NotableEvents
from adaptor.daemon.server import Server
from adaptor.daemon.treasury import Costs, Treasury
from adaptor.decisions.actions import KeepForecast
from adaptor.decisions.aims import why_paused
from adaptor.decisions.memory import Memory
from adaptor.decisions.observation import take_snapshot
from adaptor.decisions.site_memory import SiteMemory
from adaptor.decisions.snapshot import Snapshot
from adaptor.errors import JournalError
from adaptor.forecast.calibration import Kind
from adaptor.journal.damage import understood
from adaptor.journal.forecast_rows import bags_with_forecast, past_scores
from adaptor.journal.grant_rows import Grants
from adaptor.journal.journal import Journal
from adaptor.journal.pilot_rows import started_in
from adaptor.journal.recovery import recover
from adaptor.model import AttemptOutcome
from adaptor.protocol.messages import BagContext, Ending, Orders, Result, ToWorker, encode
from adaptor.scheduling.changes import AttemptEnd, Changes
from adaptor.scheduling.state import SiteTerms

log = logging.getLogger(__name__)

_OF_THE_TASK = frozenset({Ending.EXITED, Ending.SIGNALLED, Ending.NOT_STARTED, Ending.OUT_OF_MEMORY})
"""Ends that say something of the task; how all others came about, the pilot's own end has said."""


class Background(set["asyncio.Task[None]"]):
    """Work that was started and has not ended. The loop holds its tasks weakly, so they are held here."""

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self.add(task)
        task.add_done_callback(self.discard)
        return task


class Core:
    def __init__(
        self,
        directory: Path,
        journal: Journal,
        server: Server,
        terms: dict[str, SiteTerms],
        costs: Mapping[str, Costs] | None = None,
        clock: Clock = system_clock,
        notable: NotableEvents | None = None,
    ) -> None:
        self.now = clock
        self.notable = notable or NotableEvents()  # writes the notices of events
        self._costs = costs or {}
        self.directory = directory
        self.journal = journal
        self.server = server
        self.terms = terms
        self.earlier = Earlier(journal, terms)
        self._acknowledging = Background()
        self.looking = Background()  # at queues that no step has read yet
        self._read_journal()
        self.sites: dict[str, SiteMemory] = {}
        """All sites, by name: they share the broker, so each decides with an eye on the others."""
        self.wakes: dict[str, asyncio.Event] = {}  # by site: set, and it steps soon
        self.decided = Memory()  # memory from the last decision of any site to the next one
        self.deciding = asyncio.Lock()
        """One site decides at a time, so that each sees what the others are about to submit."""
        self.losses: dict[int, AttemptOutcome] = {}
        """Outcome of lost attempts by the scheduler's word on their ended pilot, by pilot."""
        self.results = 0  # attempts that ended since this process began
        self.listeners = Listeners()  # clients that wait for events of bags
        self._sent_bags: dict[str, set[int]] = {}
        self._contexts: dict[int, BagContext] = {}

    def recover(self) -> None:
        """Forget everything in memory and begin again from the journal. Raises JournalError."""
        self._read_journal()
        self.losses.clear()
        self._sent_bags.clear()
        self.listeners.tell_all()

    def _read_journal(self) -> None:
        """All that is rebuilt from the journal. Raises JournalError."""
        with understood(self.journal.path):
            self.broker = recover(self.journal, self.terms, self.now())
            self.earlier.recall(self.broker)
            self.grants = Grants(self.journal)
            self.treasury = Treasury(self.journal, self.terms, self._costs, self.now, self.grants)
            self.treasury.settle(self.ledger.open_pilots)  # pilots that ended unnoticed
            self.forecast_kept = self.journal.read(bags_with_forecast)  # bags whose first forecast is kept
            self._scores: dict[Kind, list[float]] | None = self.journal.read(past_scores)
            """Scores of earlier forecasts; None: bags have ended since they were read."""

    @property
    def ledger(self) -> Ledger:
        return self.treasury.ledger

    @property
    def scores(self) -> dict[Kind, list[float]]:
        """Errors of earlier forecasts by kind, the oldest first."""
        if self._scores is None:
            self._scores = self.journal.read(past_scores)
        return self._scores

    def snapshot(self, site: str, now: float) -> Snapshot:
        """The snapshot on which a step of the site would decide at the time `now`."""
        return take_snapshot(
            site,
            self.sites,
            self.broker,
            self.treasury.ledger,
            self.decided,
            self.forecast_kept,
            now,
            midnight(now),
            scores=self.scores,
            foresees=True,
        )

    async def commit(self) -> Changes:
        """Write what the broker has changed, then tell the workers.

        Raises JournalError: it could not be written; the workers got no message.
        """
        changes, drafts = self.write()
        await self.tell(changes, drafts)
        return changes

    @contextmanager
    def ahead(self) -> Iterator[None]:
        """Around changes of the broker that the journal does not have yet.

        Raises JournalError: they are not written, whatever failed; `recover` begins again from the journal.
        """
        try:
            yield
        except JournalError:
            raise
        except Exception as error:
            log.exception("internal error; changes are not written")
            raise JournalError(f"internal error in the daemon: {error!r}; see daemon.log") from error

    def write(self) -> tuple[Changes, dict[str, Orders]]:
        """Write what the broker has changed; what `tell` gets then. Raises JournalError."""
        with self.ahead():
            return self._written()

    def _written(self) -> tuple[Changes, dict[str, Orders]]:
        self.broker.advance(self.now())
        changes, drafts = self.broker.drain()
        self.journal.write(
            changes,
            self.now(),
            self.treasury.late_results(changes),
            self.notable.writer(changes, self.now()),
            self.earlier.writer(changes, self.now()),
        )
        if any(tally.ended for tally in changes.tallies.values()):
            self._scores = None
        self._renew_contexts(changes.specs)
        self.results += sum(isinstance(each, AttemptEnd) for each in changes.attempts)
        for pilot, outcome in self.losses.items():
            self.journal.name_losses(pilot, outcome)
        self.losses.clear()
        for death in changes.deaths:
            self.journal.explain(self.now(), death.site, "suspects", death.text, pilot=death.pilot)
        for bag, guard in changes.guards.items():
            if guard.paused:
                self.journal.explain(self.now(), "", "paused", guard.paused, bags=[bag])
        for each in changes.raised:
            if each.text:
                self.journal.explain(
                    self.now(), each.site, "memory", each.text, pilot=each.pilot, bags=[each.bag]
                )
        for bag, text in self.earlier.changed(self.broker, changes):
            self.journal.explain(self.now(), "", "earlier", text, bags=[bag])
        self.earlier.written(self.broker, changes)
        return changes, drafts

    def _renew_contexts(self, bags: Iterable[int]) -> None:
        """The next leases of these bags bring their new options to the workers."""
        for bag in bags:
            self._contexts.pop(bag, None)
            for known in self._sent_bags.values():
                known.discard(bag)

    async def tell(self, changes: Changes, drafts: Mapping[str, Orders]) -> None:
        """Tell workers and listening clients of what is written; acknowledgements alone leave last.

        Raises JournalError.
        """
        waited_for = {  # the others say only that results are in the journal
            worker: draft
            for worker, draft in drafts.items()
            if draft != Orders(acknowledged=draft.acknowledged)
        }
        for worker, draft in waited_for.items():
            await self.send(worker, self._complete(worker, draft))
        # Only unfinished bags and present workers need these.
        bags, workers = self.broker.state.bags, self.broker.state.workers
        if len(self._contexts) > len(bags):
            self._contexts = {bag: known for bag, known in self._contexts.items() if bag in bags}
        if len(self._sent_bags) > len(workers):
            self._sent_bags = {id: known for id, known in self._sent_bags.items() if id in workers}
        self.listeners.tell({bag: tally.events for bag, tally in changes.tallies.items()})
        if len(waited_for) < len(drafts):
            others = {worker: draft for worker, draft in drafts.items() if worker not in waited_for}
            self._acknowledging.start(self._acknowledge(others))

    async def _acknowledge(self, drafts: Mapping[str, Orders]) -> None:
        """Send acknowledgements in the next turn of the loop, behind the listening clients."""
        for worker, draft in drafts.items():
            await self.send(worker, self._complete(worker, draft))

    def may_have_news(self, since: Mapping[int, int]) -> bool:
        """False if nothing has changed in these bags since these events, so that no journal need be read."""
        bags = self.broker.state.bags
        return any(bag not in bags or bags[bag].events > event for bag, event in since.items())

    def why_paused(self, bag: int, sites: Collection[str]) -> str:
        """Why no request is made for a bag; empty: one may be. `sites` that it may use; empty: all."""
        known, state = self.broker.state.bags.get(bag), self.broker.state
        if known is None or any(
            state.serves_in(pilot.id, site.name, known)
            for site in self.sites.values()
            for pilot in site.pilots.values()
        ):
            return ""
        return why_paused(self.decided, bag, [name for name in self.sites if not sites or name in sites])

    def forget_bag(self, bag: int) -> None:
        """Forget a bag that the journal has forgotten."""
        self.treasury.ledger.forget_budget(bag)
        self.broker.state.alone.discard(bag)
        self.forecast_kept.discard(bag)

    def hear_late(self, results: Iterable[Result], now: float) -> None:
        """Take in results of a worker whose pilot has ended for the scheduler. Raises JournalError.

        The pilot is charged already; results of attempts that are still open are accepted.
        """
        told = {result.key: result for result in results if result.ending in _OF_THE_TASK}
        for (pilot, site), keys in self.journal.read(started_in, told).items():
            self.broker.left_behind(pilot, site, [told[key] for key in keys], now)

    def keep_forecast(self, kept: KeepForecast) -> None:
        """Write down what a forecast said. Raises JournalError."""
        self.journal.keep_forecast(kept.bag, kept.first, kept.raw)
        if kept.first is not None:
            self.forecast_kept.add(kept.bag)

    async def send(self, worker: str, message: ToWorker) -> None:
        await self.server.send_worker(worker.encode(), encode(message))

    def forget_worker(self, worker: str) -> None:
        """Forget the bags that a worker knows: it has left, or says Hello again."""
        self._sent_bags.pop(worker, None)

    def _complete(self, worker: str, draft: Orders) -> Orders:
        """The orders with the bags that the worker does not know, and the commands of its leases."""
        known = self._sent_bags.setdefault(worker, set())
        new = {lease.key.bag for lease in draft.leases} - known
        ended = {bag for bag in known if bag not in self.broker.state.bags}
        known -= ended
        known |= new
        draft.bags = [self._context(bag) for bag in sorted(new)]
        draft.ended_bags = sorted(ended)
        if not draft.leases:
            return draft
        inputs = self.journal.inputs([lease.key for lease in draft.leases])
        draft.leases = [
            msgspec.structs.replace(
                lease,
                command=[] if lease.takes_part else task.command,
                cwd=task.cwd,
                environment=task.environment,
                name=task.name,
                call=None if lease.takes_part else task.call,
            )
            for lease, task in zip(draft.leases, inputs, strict=True)
        ]
        return draft

    def _context(self, bag: int) -> BagContext:
        context = self._contexts.get(bag)
        if context is None:
            spec = self.journal.bag_spec(bag)
            context = self._contexts[bag] = BagContext(
                bag=bag,
                cwd=spec.cwd,
                output=spec.output,
                environment=spec.environment,
                task=spec.task,
                bind=spec.bind == "yes",
                timeout=spec.timeout.of(spec.time, 0, 0.0) if spec.timeout is not None else None,
                signal=spec.signal,
                script=spec.script,
                output_files=spec.output_files,
                interpreter=spec.interpreter,
                limit_memory=spec.on_oom is not None,
                umask=spec.umask,
                shell=spec.shell or "",
                bundle=spec.bundle,
                image=Path(spec.container).name if spec.container is not None else "",
            )
        return context
