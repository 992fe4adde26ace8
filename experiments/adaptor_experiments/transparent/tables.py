"""The tables of the experiment, as text."""

from __future__ import annotations

from collections.abc import Sequence

from adaptor.figures.exhibits import Exhibit
from adaptor_experiments.bootstrap import Interval
from adaptor_experiments.transparent.claims import CLAIMS, VERDICTS, Claim, tally, verdicts
from adaptor_experiments.transparent.design import DONATED, MACHINES, STRATEGIES
from adaptor_experiments.transparent.summary import HOUR, Cell, Share

TITLES = {machine.key: machine.title for machine in MACHINES}
_KEYS = ("trace", "interarrival", "load", "tasks", "mean")


def tables(cells: Sequence[Cell]) -> list[Exhibit]:
    return [_claims(cells), _turnarounds(cells), _costs(cells)]


def row_name(cell: Cell) -> str:
    return f"{TITLES[cell.trace]} ×{cell.load:g}, {cell.tasks:,} × {cell.mean:,} s"


def _key(cell: Cell) -> list[str]:
    return [
        TITLES[cell.trace],
        f"×{cell.load:g}",
        f"{cell.offered:.0%} ({cell.level})",
        f"{cell.tasks:,}",
        f"{cell.mean:,} s",
    ]


def _turnarounds(cells: Sequence[Cell]) -> Exhibit:
    rows = [
        [
            *_key(cell),
            *(_hours(cell.by[name].turnaround) for name in STRATEGIES),
            *(str(cell.explicit[rule]) for rule in DONATED),
            str(cell.mixed),
            verdicts(cell, "all-idle"),
        ]
        for cell in cells
    ]
    return Exhibit(
        name="turnarounds",
        title="Mean turnaround in hours, and what each row says of the claims",
        headings=(
            *_KEYS,
            *STRATEGIES,
            *(f"explicit / {rule}" for rule in DONATED),
            "best / mixed",
            "claims (all-idle)",
        ),
        rows=rows,
        remarks=(
            "+ confirms, − contradicts, ? open: the interval reaches to both sides of the bound.",
            "all-idle is transparent allocation by the paper's own rule (donation: choose: all); transparent "
            "and mixed use the nodes on which tasks are likely to finish.",
            "In brackets: 95 % intervals, by a bootstrap over the submission times (with one submission time "
            "nothing is known of chance). explicit is the better "
            "of static and adaptive, best the better of adaptive and transparent, by mean turnaround.",
            "load is the offered one: work that comes over processors while it comes. Low is below 60 %, "
            "heavy from 80 % on.",
        ),
    )


def _costs(cells: Sequence[Cell]) -> Exhibit:
    rows = []
    for cell in cells:
        donated, everything, mixed = (cell.by[name] for name in ("transparent", "all-idle", "mixed"))
        rows.append(
            [
                *_key(cell),
                f"{donated.used:,.1f}",
                _lost(donated),
                f"{donated.reclaims:,.1f}",
                f"{everything.used:,.1f}",
                _lost(everything),
                f"{mixed.used:,.1f}",
                f"{mixed.held:,.1f}",
                *(_delay(cell.by[name]) for name in STRATEGIES),
            ]
        )
    return Exhibit(
        name="costs",
        title="Processor-hours, reclaims, and the delay of local jobs, in the mean over the bags",
        headings=(
            *_KEYS,
            "used",
            "lost",
            "reclaims",
            "all-idle: used",
            "all-idle: lost",
            "mixed: used",
            "mixed: held",
            *(f"delay: {name}" for name in STRATEGIES),
        ),
        rows=rows,
        remarks=(
            "used, lost and reclaims are those of transparent. A delay is in hours, summed over the local "
            "jobs that started later than without the bag (so many of those that waited or came while it "
            "was there).",
        ),
    )


def _claims(cells: Sequence[Cell]) -> Exhibit:
    return Exhibit(
        name="claims",
        title="The paper's claims, one by one",
        headings=(
            *("", "where", "claim", "a row must show"),
            *(f"{rule}: {what}" for rule in DONATED for what in ("confirm", "contradict", "open")),
            "for example (all-idle)",
        ),
        rows=[_claim(claim, cells) for claim in CLAIMS],
        remarks=(
            "all-idle is the rule of the paper, transparent is ours. The counts are of rows: confirm, "
            "contradict, or open where the interval of a row reaches to both sides of the bound.",
        ),
    )


def _claim(claim: Claim, cells: Sequence[Cell]) -> list[str]:
    by_rule = {rule: tally(claim, cells, rule) for rule in DONATED}
    found = by_rule["all-idle"]
    # The rows that are the rarer, as they tell more; where all say the same, the first of them.
    against = sorted((some for some in found.values() if some), key=len)
    return [
        claim.key,
        claim.where,
        f"“{claim.sentence}”",
        claim.test,
        *(str(len(each[verdict])) for each in by_rule.values() for verdict in VERDICTS),
        row_name(against[0][0]) if against else "no row of this run",
    ]


def _lost(share: Share) -> str:
    return f"{share.lost:,.1f} ({share.lost / max(share.used, 1e-9):.0%})"


def _delay(share: Share) -> str:
    return f"{share.delay:,.1f} ({share.later:,.1f} of {share.local_jobs:,.0f})"


def _hours(seconds: Interval) -> str:
    return str(seconds.over(HOUR))
