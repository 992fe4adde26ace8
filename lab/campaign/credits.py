"""The credits of a scene, counted again: from the journal's pilots, and from the schedulers' own records."""

from __future__ import annotations

import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from adaptor.budget.accounting.entries import Budgeted, Reserved, Settled
from adaptor.budget.accounting.ledger import Ledger
from adaptor.journal.credits import entries
from lab.campaign.schedulers.cluster import Held
from lab.campaign.verifying import Finding, Wrong

_Journal = sqlite3.Connection


def check_credits(
    journal: Path, records: Iterable[Held], rewound: Iterable[tuple[float, float]] = ()
) -> list[Finding]:
    """After all pilots have ended and the daemon has stopped.

    `rewound`: times of which the scheduler has forgotten what it recorded.
    """
    with closing(sqlite3.connect(journal)) as db:
        return [*charged(db), *_budgets(db), *_by_records(db, records, list(rewound))]


def charged(db: _Journal) -> Iterator[Finding]:
    """Each pilot is charged once, by its own tariff, for the time for which it held its processors."""
    written = entries(db)
    reserved: dict[int, list[Reserved]] = defaultdict(list)
    settled: dict[int, list[Settled]] = defaultdict(list)
    for entry in written:
        if isinstance(entry, Settled):
            settled[entry.pilot].append(entry)
        if isinstance(entry, Reserved):
            reserved[entry.pilot].append(entry)
    for pilot, state, started, ended in db.execute("SELECT id, state, started, ended FROM pilot"):
        if pilot not in reserved or len(settled[pilot]) != 1:
            yield Finding(Wrong.CHARGED, f"pilot {pilot} ({state}) is settled {len(settled[pilot])} times")
            continue
        order, (charge,) = reserved[pilot][-1], settled[pilot]
        seconds = max(0.0, ended - started) if started is not None else 0.0
        area = order.held * order.tariff.charged_seconds(seconds)
        for before, after in pairwise(reserved[pilot]):
            if after.freed > before.freed:  # given back while it ran
                area += (after.freed - before.freed) * order.tariff.charged_seconds(after.at - started)
        due = order.tariff.charge_of_area(order.kind, area)
        # Beyond its reservation a pilot costs no more than the budgets can bear.
        if not min(due, order.amount) <= charge.amount <= due:
            yield Finding(
                Wrong.CHARGED,
                f"pilot {pilot} ({state}, {seconds:.3f} s): {charge.amount} millionths, due are {due}",
            )


def _budgets(db: _Journal) -> Iterator[Finding]:
    """No balance was ever below nothing, by every entry that was written."""
    written = entries(db)
    if not any(isinstance(entry, Budgeted) for entry in written):
        return
    for number in range(len(written) + 1):
        for balance in Ledger(written[:number]).balances(time.time()):
            if balance.left < 0:
                yield Finding(
                    Wrong.CHARGED, f"after {number} entries more is used than the budget: {balance}"
                )


def _by_records(
    db: _Journal, records: Iterable[Held], rewound: list[tuple[float, float]]
) -> Iterator[Finding]:
    """The times that were charged are those of the scheduler, to a second, and so are the processors."""
    known = {held.tag: held for held in records}
    got = {entry.pilot: entry.p for entry in entries(db) if isinstance(entry, Reserved)}
    pilots = db.execute("SELECT id, tag, state, p, started, ended FROM pilot").fetchall()
    if known and not any(tag in known for _, tag, *_ in pilots):
        yield Finding(Wrong.OTHER, f"of {len(pilots)} pilots none is in the records: {sorted(known)[:3]}")
    for pilot, tag, state, asked, started, ended in pilots:
        p = got.get(pilot, asked)
        held = known.get(tag)
        if held is None or state == "vanished":
            continue  # it never came into the queue, or the scheduler has lost it in a crash of its own
        if any(since <= ended and (started or ended) <= until for since, until in rewound):
            continue
        ours = ended - started if started is not None else 0.0
        if abs(ours - held.seconds) > 1:
            text = f"is counted for {ours:.0f} s; the scheduler has {held.seconds:.0f} s"
            yield Finding(Wrong.CHARGED, f"pilot {pilot} ({state}) {text}")
        if started is not None and held.processors not in (p, None):
            text = f"is counted for {p} processors; the scheduler has {held.processors}"
            yield Finding(Wrong.CHARGED, f"pilot {pilot} ({state}) {text}")
