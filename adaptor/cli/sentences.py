"""Bags, credits, donated nodes, forecasts and pauses in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import isfinite

import click

from adaptor import api
from adaptor.cli.printing import clock, duration, plural, printable
from adaptor.forecast.calibration import ENOUGH
from adaptor.forecast.record import Record
from adaptor.model import Estimate
from adaptor.outputs.finding import Outputs, tail
from adaptor.units import folded


def amount(credits: float | None) -> str:
    """`12.5`, `1,200`, `0.0012`; `-` for None. Below a credit four digits, else two."""
    if credits is None:
        return "-"
    digits = 4 if abs(credits) < 1 else 2
    text = f"{credits:,.{digits}f}".rstrip("0").rstrip(".")
    return text if text not in ("", "-0") else "0"


def credit_line(line: api.CreditLine) -> str:
    """`credits: used 1.2 (1 for results, 0.2 wasted), reserved 0.5, left 8.3 of 10`."""
    wasted = line.wasted or 0.0
    parts = [f"used {amount(line.used)} ({amount(line.used - wasted)} for results, {amount(wasted)} wasted)"]
    if line.reserved:
        parts.append(f"reserved {amount(line.reserved)}")
    if line.left is not None:
        parts.append(f"left {amount(line.left)} of {amount(line.budget)}")
    return f"credits: {', '.join(parts)}"


def donation_lines(donation: api.DonationView) -> list[str]:
    """`4 donated nodes, 2 other idle nodes; held 3h of processor time: …`, and why there are no more."""
    now = plural(donation.nodes, "donated node")
    if donation.idle is not None:
        now += f", {plural(donation.idle, 'other idle node')}"
    lines = [f"{now}; {used_words(donation)}" if donation.donations else now]
    if donation.reason:
        lines.append(f"no more nodes are donated: {printable(donation.reason)}")
    return lines


def used_words(donation: api.DonationView) -> str:
    """`held 3h of processor time (used 2h 45m, lost 5m), 7 reclaims in 0.20 s (at most 1.10 s)`."""
    words = (
        f"held {duration(donation.held)} of processor time (used {duration(donation.used)}, "
        f"lost {duration(donation.lost)}), {plural(donation.reclaims, 'reclaim')}"
    )
    if donation.latency is None or donation.slowest is None:
        return words
    return f"{words} in {donation.latency:.2f} s (at most {donation.slowest:.2f} s)"


_COARSE = 600.0  # seconds of an interval from which on its ends are shown in minutes


def forecast_line(ahead: api.ForecastView) -> str:
    """`done 14:05 (13:58 to 14:20), will cost about 12.3 credits (11 to 14.2)`."""
    parts = [_done(ahead)] if ahead.end is not None else []
    if ahead.cost is not None:
        cost = ahead.cost
        near = ahead.paid is None and ahead.budget is not None and cost.high > ahead.budget
        parts.append(
            f"will cost about {amount(cost.value)} credits ({amount(cost.low)} to {amount(cost.high)})"
            f"{f' of a budget of {amount(ahead.budget)}' if near else ''}"
        )
    if ahead.deadline is not None:
        late = ahead.end.value - ahead.deadline if ahead.end is not None else 0.0
        beyond = f", about {duration(late)} late" if late > 0 else ""
        parts.append(f"deadline {clock(ahead.deadline)}{beyond}")
    if ahead.in_file_order:
        parts.append("if the tasks that have run are like the others: they run in the order of the file")
    told = ", ".join(parts)
    paid = _paid(ahead)
    return f"{paid}; with more: {told}" if paid else told


def end_words(ahead: api.ForecastView, now: float | None = None) -> str:
    """`done 14:10 (13:40 to 15:25)`, with seconds where they matter, or for how much its budget does; empty:
    no end can be seen."""
    return _paid(ahead) or _done(ahead, now)


def _paid(ahead: api.ForecastView) -> str:
    """For how much its budget does; empty: for all, as far as is known."""
    if ahead.paid is None:
        return ""
    return f"its budget of {amount(ahead.budget)} credits pays for about {plural(ahead.paid, 'task')} at most"


def _done(ahead: api.ForecastView, now: float | None = None) -> str:
    if ahead.end is None:
        return ""
    return f"done {interval(ahead.end, now)}{', too little known until tasks finish' if ahead.blind else ''}"


def interval(end: Estimate, now: float | None = None) -> str:
    """Expected time and its interval: `14:10 (13:40 to 15:25)`, with seconds where they matter."""
    short = (end.high if isfinite(end.high) else end.value) - end.low > _COARSE
    told, first = _time(end.value, now, short), _time(end.low, now, short)
    last = f" to {_time(end.high, now, short)}" if isfinite(end.high) else " or later"
    return f"{told} ({first}{last})"


def _time(at: float, now: float | None, short: bool) -> str:
    told = clock(at, now)
    return told[:5] if short and told[2] == ":" else told


def record_lines(record: Record) -> Iterator[str]:
    """`forecast accuracy: of 23 bags, 20 ends and 21 costs within their intervals`; few say little."""
    if record.bags < ENOUGH:
        known = f"too little known here ({record.bags} of {ENOUGH} bags)"
        yield f"forecast accuracy: {known}; until then intervals are as wide as at other sites"
    elif record.end is not None:
        costs = f" and {record.cost.held} costs" if record.cost is not None else ""
        held = f"{record.end.held} ends{costs} within their intervals"
        yield f"forecast accuracy: of {plural(record.bags, 'bag')}, {held}"


def first_forecast_lines(first: api.FirstForecastView) -> list[str]:
    """Forecasts of a bag, and what came of them."""
    cost = ""
    if first.cost is not None:
        cost = f"cost {amount(first.cost.low)} to {amount(first.cost.high)} credits, "
    end = f"{clock(first.end.low)} to {clock(first.end.high)}"
    made = f"{clock(first.made)}, with {first.finished:,} of {plural(first.tasks, 'task')} done"
    came = "; ".join([*_came(first), *([f"not counted: {first.not_counted}"] if first.not_counted else [])])
    return [f"first forecast, at {made}: {cost}end {end}", *([came] if came else [])]


def _came(first: api.FirstForecastView) -> list[str]:
    """`what came: cost 0.0744 credits (within), end 12:43:30 (outside)`; nothing while the bag runs."""
    if first.final_end is None:
        return []
    if first.cost is None:
        return [f"what came: end {clock(first.final_end)}{_held(first.end_held)}"]
    cost = "cost not known until all its pilots are settled"
    if first.final_cost is not None:
        cost = f"cost {amount(first.final_cost)} credits{_held(first.cost_held)}"
    return [f"what came: {cost}, end {clock(first.final_end)}{_held(first.end_held)}"]


def _held(held: bool | None) -> str:
    return {True: " (within)", False: " (outside)", None: ""}[held]


LINES = 5


def pause_lines(bags: Iterable[api.BagView]) -> list[str]:
    """Lines on the pauses of bags; empty: none is paused. The same reason of several bags is said once."""
    lines: dict[str, list[str]] = {}
    for bag in bags:
        if bag.paused:
            lines.setdefault(printable(bag.paused), [f"  | {line}" for line in _evidence(bag)])
    return [line for reason, evidence in lines.items() for line in (reason, *evidence)]


def _evidence(bag: api.BagView) -> list[str]:
    """The last lines of what a task of a halted bag wrote to its standard error."""
    if (shown := bag.evidence) is None:
        return []
    outputs = Outputs(bag.output, packed=bag.output_files == "packed")
    told = tail(outputs.find_one(shown.task, shown.attempt, "stderr", shown.stderr), LINES)
    return [printable(line) for line in told.splitlines()]


_NAMED = 5  # bags that are named, of many


def bags_words(bags: Sequence[int]) -> str:
    """`bag 5`, `bags 5 and 7`, `bags 1, 2, 3, 4, 5 and 12 more`."""
    more = [f"{len(bags) - _NAMED:,} more"] if len(bags) > _NAMED else []
    *first, last = [*map(str, bags[:_NAMED]), *more]
    return f"bags {', '.join(first)} and {last}" if first else f"bag {last}"


def waits_lines(bag: api.BagView) -> list[str]:
    """Line on the bags for which a bag waits; empty: it waits for none."""
    return [f"bag {bag.id} waits for {bags_words(bag.awaits)}"] if bag.awaits else []


def open_lines(bag: api.BagView) -> list[str]:
    """Line on an open bag that has no unfinished task; empty: it is closed, or has some."""
    if not bag.open or bag.paused or bag.waiting or bag.running or bag.blocked:
        return []
    if not bag.close_idle:
        return [f"bag {bag.id} is open: adaptor append {bag.id} --close ends it"]
    return [f"bag {bag.id} is open: it ends {duration(bag.close_idle)} after its program has left"]


def held_off_lines(bags: Iterable[api.BagView]) -> list[str]:
    """Lines on failing requests of bags; empty: none fails. The same reason of several bags is one line."""
    reasons = shared((bag.id, bag.held_off) for bag in bags)
    return [f"{numbered('bag', of)}: {printable(reason)}" for of, reason in reasons]


def tell_halted(bags: Iterable[api.BagView]) -> None:
    """Say on standard error which bags have paused by themselves."""
    for line in pause_lines(bag for bag in bags if bag.halted):
        click.echo(line, err=True)


def title(bag: api.BagView) -> str:
    return f"bag {bag.id} {printable(bag.name, 30)}"


def percent_ended(bag: api.BagView) -> int:
    """Whole per cent of its tasks that have ended, however."""
    return 100 * (bag.done + bag.failed + bag.cancelled) // max(1, bag.tasks)


def counts(bag: api.BagView) -> str:
    """`120 of 300 done, 1 failed, 6 running, 173 waiting, mean 2.1s`."""
    parts = [f"{bag.done:,} of {bag.tasks:,} done"]
    for count, word in (
        (bag.failed, "failed"),
        (bag.cancelled, "cancelled"),
        (bag.running, "running"),
        (bag.waiting, "waiting"),
        (bag.blocked, "blocked"),
    ):
        if count:
            parts.append(f"{count:,} {word}")
    if bag.mean_runtime is not None:
        parts.append(f"mean {duration(bag.mean_runtime)}")
    return ", ".join(parts)


def summary(bag: api.BagView) -> str:
    """One line on a bag that has ended, with the way to what failed."""
    took = f" in {duration(bag.ended - bag.submitted)}" if bag.ended is not None else ""
    if bag.done == bag.tasks:
        return f"{title(bag)}: {plural(bag.tasks, 'task')} done{took}; output in {printable(bag.output)}"
    return f"{title(bag)}: ended{took}: {counts(bag)} (adaptor results {bag.id} --failed)"


def pilot_notes(pilots: Sequence[api.PilotRecord]) -> list[str]:
    """Remarks on pilots now; the same remark on several is one line."""
    notes = shared((pilot.id, pilot.note) for pilot in pilots)
    return [f"{numbered('pilot', of)}: {printable(note)}" for of, note in notes]


def shared(remarks: Iterable[tuple[int, str]]) -> list[tuple[list[int], str]]:
    """Each remark that is not empty, once, after all the numbers that it is of."""
    numbers: dict[str, list[int]] = {}
    for number, remark in remarks:
        if remark:
            numbers.setdefault(remark, []).append(number)
    return [(of, remark) for remark, of in numbers.items()]


def numbered(noun: str, numbers: Sequence[int]) -> str:
    """`bag 3`, `bags 3-5`."""
    return f"{noun}{'s' * (len(numbers) > 1)} {folded(numbers)}"
