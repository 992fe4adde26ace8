"""`adaptor watch`: until bags have ended, with progress or silently."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import click

from adaptor import api
from adaptor.cli import sentences
from adaptor.cli.exit_codes import TIME_UP, exit_code
from adaptor.cli.follow import SHOWN, Overview, follow
from adaptor.cli.options import duration, json_option, selected, selector_argument
from adaptor.cli.printing import clock, pilots_line, print_json, print_lines, printable
from adaptor.client.asking import ask
from adaptor.errors import AdaptorError
from adaptor.guard_rails import MostFails


@click.command(short_help="Show progress, or wait silently, until bags have ended.")
@selector_argument("[BAGS]", default="last")
@click.option("--quiet", "-q", is_flag=True, help="Show nothing, only wait.")
@click.option("--timeout", type=duration, metavar="DURATION", help="Give up after this, with exit code 124.")
@json_option
def watch(selector: str, quiet: bool, timeout: float | None, as_json: bool) -> int:
    """Show progress until bags (default: last) have ended; an open bag ends after it is closed.

    Ctrl-C stops the display, not the bags. Exit code: 0 all tasks done, 3 some failed, 4 a bag has paused
    by itself, 124 timeout.

    \b
    Examples:
      adaptor watch 3-5
      adaptor watch --quiet --timeout 2h && make figures
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    longest = api.LONGEST_POLL if quiet or as_json else SHOWN
    return watch_bags(follow(selected(selector), deadline, longest), as_json, quiet=quiet)


def watch_bags(
    snapshots: Iterable[Overview], as_json: bool, *, quiet: bool = False, err: bool = False
) -> int:
    """Show the progress of bags until their last snapshot; the exit code of their tasks.

    `err`: whether the progress goes to stderr, since stdout has what the tasks write.

    Raises NoDaemonError: none runs and the bags have not ended.
    """
    last: Overview | None = None
    if quiet or as_json:
        show = iter(snapshots)
    else:
        moves = sys.stdout is not None and sys.stdout.isatty()  # its cursor
        redraws = moves and os.environ.get("TERM") not in ("dumb", "unknown")
        show = display(snapshots) if redraws and not err else _narrated(snapshots, err=err)
    for snapshot in show:
        last = snapshot
    seen = last.bags if last is not None else []
    ended = last is not None and last.ended
    if as_json:
        print_json({"bags": seen})
    elif ended:
        for bag in seen:
            if not (quiet or bag.halted):
                print_lines([sentences.summary(bag)], err=err)
        sentences.tell_halted(seen)
    return exit_code(seen) if ended else TIME_UP


def until_failed(bag: int, fails: MostFails) -> Iterator[Overview]:
    """Follow a bag, and cancel it when a number of tasks have failed, or when it pauses by itself."""
    for snapshot in follow([bag]):
        yield snapshot
        (view,) = snapshot.bags
        if view.ended is None and (view.halted or view.failed >= fails.of(view.tasks)):
            ask(api.Cancel([bag]))
            break
    else:
        return
    yield from follow([bag])


def _narrated(snapshots: Iterable[Overview], *, err: bool = False) -> Iterator[Overview]:
    narrator = Narrator()
    for snapshot in snapshots:
        print_lines(narrator.lines(snapshot), err=err)
        yield snapshot


_LINES = 2  # of a bag, at most
EXPLAINED = 3  # bags of which nothing runs whose newest reason is shown


def display(snapshots: Iterable[Overview], explain: Callable[[int], str] | None = None) -> Iterator[Overview]:
    """Pass the snapshots on, and show each.

    It shows the bar and the numbers of every bag, its end, the pilots, and why nothing of it runs.
    `explain` returns the newest reason of a bag, by its number.
    """
    from rich.console import Console, Group  # slow to import
    from rich.live import Live
    from rich.text import Text

    from adaptor.cli.bags.progress import bars

    with Live(console=Console(), refresh_per_second=4) as live:
        for snapshot in snapshots:
            screen = live.console.options

            def height(line: str, width: int = screen.max_width) -> int:
                return -(-len(line) // width)

            # A display that stays behind says nothing of pilots that are about to leave.
            below = [] if snapshot.ended else [*_below(snapshot, explain or _newest_reason)]
            room = screen.size.height - 1 - sum(map(height, below))
            ahead, run = [*_ends(snapshot)], [bag for bag in snapshot.bags if bag.running]
            # The ends of bags that run go before the bars of bags that wait, and after their own bars.
            wanted = sum(map(height, ahead[: len(run)]))
            kept = min(wanted, max(0, room - _LINES * (len(run) + 1)))
            above = bars(snapshot.bags, screen.max_width, room - kept, ascii_only=screen.ascii_only)
            ends, left = [], room - len(above)
            for line in ahead:
                left -= height(line)
                if left < 0:
                    break
                ends.append(line)
            live.update(Group(*above, *map(Text, (*ends, *below))), refresh=snapshot.ended)
            yield snapshot


def _going(snapshot: Overview) -> list[api.BagView]:
    return [bag for bag in snapshot.bags if bag.state == "running" and not bag.paused]


def _ends(snapshot: Overview) -> Iterator[str]:
    """Lines on the forecast ends of bags, running ones first."""
    from adaptor.cli.bags.progress import running_first

    for bag in running_first([] if snapshot.ended else _going(snapshot)):
        if bag.forecast is not None and (words := sentences.end_words(bag.forecast, snapshot.time)):
            yield f"bag {bag.id}: {words}"


def _below(snapshot: Overview, explain: Callable[[int], str]) -> Iterator[str]:
    going = _going(snapshot)
    yield pilots_line(snapshot.pilots, bags=snapshot.bags)
    yield from sentences.pilot_notes(snapshot.pilots)
    yield from sentences.pause_lines(snapshot.bags)
    idle = [bag for bag in going if not bag.running][:EXPLAINED]
    for bag in idle:
        yield from sentences.waits_lines(bag)
    reasons = ((bag.id, bag.held_off or explain(bag.id)) for bag in idle if not bag.awaits)
    for of, reason in sentences.shared(reasons):
        verb = "waits" if len(of) == 1 else "wait"
        yield f"{sentences.numbered('bag', of)} {verb}: {printable(reason)}"


def _newest_reason(bag: int) -> str:
    """Why nothing of a bag runs; empty: nothing was decided yet, or the daemon is busy."""
    with suppress(AdaptorError):
        if lines := ask(api.GetWhy(bag, None, 1, [])).lines:
            return lines[-1].text
    return ""


STEP = 10  # per cent of a bag between two lines
PILOTS_PAUSE = 5.0  # seconds between two lines on pilots


class Narrator:
    """News worth a line: each tenth of a bag, its first failure, bags before it, changes of pilots."""

    def __init__(self) -> None:
        self._bags: dict[int, tuple[object, ...]] = {}
        self._failing: dict[int, str] = {}  # by bag: what was shown of requests that fail
        self._pilots: tuple[object, ...] = ()
        self._told_pilots = -math.inf

    def lines(self, snapshot: Overview) -> list[str]:
        """The lines for one more snapshot; none in most cases."""
        at = clock(snapshot.time, snapshot.time)
        told = [line for bag in snapshot.bags for line in self._bag_lines(bag, snapshot.time)]
        for bag in snapshot.bags:
            if bag.held_off != self._failing.get(bag.id, ""):
                self._failing[bag.id] = bag.held_off
                told += sentences.held_off_lines([bag])
        if not snapshot.ended:
            told = self._pilot_lines(snapshot) + told
        return [f"{at} {line}" for line in told]

    def _pilot_lines(self, snapshot: Overview) -> list[str]:
        states = sorted((pilot.id, pilot.state, pilot.note) for pilot in snapshot.pilots)
        if tuple(states) == self._pilots or snapshot.time < self._told_pilots + PILOTS_PAUSE:
            return []
        self._pilots, self._told_pilots = tuple(states), snapshot.time
        told = pilots_line(snapshot.pilots, snapshot.time, snapshot.bags)
        return [told, *sentences.pilot_notes(snapshot.pilots)]

    def _bag_lines(self, bag: api.BagView, now: float) -> list[str]:
        step = sentences.percent_ended(bag) // STEP
        state = (step, bag.failed > 0, bag.awaits, bag.paused)
        if bag.state != "running" or state == self._bags.get(bag.id):
            return []
        self._bags[bag.id] = state
        ends = sentences.end_words(bag.forecast, now) if bag.forecast is not None and not bag.paused else ""
        told = f"{sentences.title(bag)}: {sentences.counts(bag)}{', ' + ends if ends else ''}"
        return [told, *sentences.waits_lines(bag), *sentences.pause_lines([] if bag.halted else [bag])]
