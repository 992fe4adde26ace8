"""`adaptor quote`: cost and time of a bag, before it is paid for."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from adaptor import api
from adaptor.budget.provisioning import quoting
from adaptor.budget.provisioning.menu import Line
from adaptor.budget.provisioning.quoting import SampleTerms, SiteSample
from adaptor.cli.bags.bag_input import WithWords, bag_options
from adaptor.cli.bags.submit import SUBMIT_TIMEOUT
from adaptor.cli.daemon_process import ask_daemon, ensure_daemon, tell_started
from adaptor.cli.follow import follow
from adaptor.cli.options import config_option, json_option
from adaptor.cli.printing import Figure, duration, layout, plural, print_json, print_lines, writing
from adaptor.cli.sentences import amount
from adaptor.client.asking import ask
from adaptor.client.bags import new_key
from adaptor.client.reading import all_tasks
from adaptor.errors import AdaptorError, UsageError
from adaptor.extras import require_extra


class SampledBag(msgspec.Struct, frozen=True):
    """A bag after its sample, and the choices for its rest."""

    lines: list[Line]
    rest: api.BagInput
    """The bag without the tasks that the samples have finished."""
    samples: list[int]
    """The bags of the samples."""


def take_samples(bag: api.BagInput, seed: int) -> SampledBag:
    """Run the samples, and quote the rest.

    Raises:
        UsageError: no site may run the bag, or the sample is the whole bag.
        AdaptorError: no sample has finished.
    """
    sites = list(_sites(bag))
    places = quoting.sample_places(len(bag.tasks), sites, seed)
    bags = {name: _submit(bag, name, places[name]) for name in sites}
    for name, number in bags.items():
        click.echo(f"bag {number}: {plural(len(places[name]), 'task')} as a sample at {name}", err=True)
    for _ in follow(list(bags.values())):
        pass
    sampled = {name: _sampled(bags[name], places[name]) for name in sites}
    quote = quoting.quote(len(bag.tasks), bag.spec.task.total_processors, sampled, _terms(bag))
    spec = msgspec.structs.replace(bag.spec, runtimes=quote.runtimes)
    rest = [bag.tasks[place] for place in quote.rest]
    return SampledBag(quote.lines, msgspec.structs.replace(bag, spec=spec, tasks=rest), list(bags.values()))


def _sites(bag: api.BagInput) -> dict[str, api.SiteView]:
    found = {site.name: site for site in ask(api.GetSites())}
    allowed = {name: site for name, site in found.items() if bag.spec.allows(name)}
    if not allowed:
        raise UsageError(f"there is no site {bag.spec.sites[0]!r}; the configuration has: {', '.join(found)}")
    return allowed


def _submit(bag: api.BagInput, site: str, places: Sequence[int]) -> int:
    spec = msgspec.structs.replace(
        bag.spec,
        name=f"{bag.spec.name} sample",
        sites=(site,),
        replicas=0,
        deadline=None,
        prefer=None,
        allocation="explicit",
    )
    sample = api.BagInput(spec=spec, tasks=[bag.tasks[place] for place in places])
    return ask(api.Submit(sample)).bag


def _sampled(bag: int, places: Sequence[int]) -> SiteSample:
    tasks = [task for task in all_tasks(ask, bag, ["done"]) if task.wall is not None]
    if not tasks:
        raise AdaptorError(f"no task of the sample has finished: adaptor results {bag} --failed")
    runtimes = {places[task.task]: max(task.wall or 0.0, 1e-3) for task in tasks}
    begins = [pilot.started for pilot in ask(api.GetReport(bag)).requests]
    first = min((task.started for task in tasks if task.started is not None), default=0.0)
    startup = min((max(0.0, first - begin) for begin in begins if begin is not None), default=0.0)
    return SiteSample(runtimes, startup)


def _terms(bag: api.BagInput) -> dict[str, SampleTerms]:
    prices = {each.site: each for each in ask(api.GetCredits()).prices}
    task = bag.spec.task
    gpus = task.gpus_for(task.tasks_per_gpu) / (task.tasks_per_gpu * task.processors)
    return {
        name: SampleTerms(
            price=prices[name].explicit + gpus * prices[name].gpu,
            charging_unit=float(prices[name].charging_unit),
            processors=quoting.most_processors(site.max_pending_requests, site.max_proc, site.processors),
        )
        for name, site in _sites(bag).items()
    }


_TITLES = ("line", "choice", "credits", "range", "time", "within", "processors")


@click.command(cls=WithWords)
@bag_options
@click.option("--choose", type=int, metavar="LINE", help="Submit the rest by this line (from 1).")
@click.option("--png", metavar="FILE", help="Draw the choices (needs the extra `plots`).")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the random choice of samples.")
@config_option
@json_option
def quote(
    bag: api.BagInput, choose: int | None, png: str | None, seed: int, config: str | None, as_json: bool
) -> None:
    """Run a sample of tasks, then show cost and time of the rest.

    One line for each choice, from cheapest to fastest. With several sites, seven tasks run on each, to
    compare the sites. The sampled tasks are done and paid for. On a terminal the command asks for a line;
    --choose names it beforehand. The rest is then submitted for the line's processors at each site, with
    the upper ends of its ranges as budget and deadline.

    \b
    Example:
      adaptor quote tasks.bag --choose 2
    """
    require_extra("quotes", "scipy")

    if png is not None:  # before it pays for anything
        require_extra("plots", "matplotlib")
        if not Path(png).absolute().parent.is_dir():
            raise UsageError(f"--png: {png}: no folder {Path(png).parent}")
    if ensure_daemon(config):
        tell_started()
    found = take_samples(bag, seed)
    if not as_json:
        click.echo(
            f"{plural(len(found.rest.tasks), 'task')} left after the sample; ranges of 90 % probability"
        )
        print_lines(layout(_TITLES, [_row(number, line) for number, line in enumerate(found.lines, 1)]))
    if png is not None:
        draw_menu(found.lines, png)
    if choose is None and sys.stdin.isatty() and not as_json:
        choose = int(click.prompt("Which line (0: none)", type=click.IntRange(0, len(found.lines))))
    number = _go_on(found.rest, found.lines, choose, config) if choose else None
    if as_json:
        print_json({"samples": found.samples, "lines": found.lines, "bag": number})
    elif number is not None:
        click.echo(f"bag {number}: {plural(len(found.rest.tasks), 'task')}")


def _row(number: int, line: Line) -> tuple[str, ...]:
    chosen = line.configuration
    places = ", ".join(f"{count} at {site}" for site, count in chosen.processors.items())
    return (
        str(number),
        line.name,
        amount(chosen.cost),
        f"{amount(line.cost.low)} to {amount(line.cost.high)}",
        duration(chosen.seconds),
        f"{duration(line.seconds.low)} to {duration(line.seconds.high)}",
        Figure(places),
    )


def _go_on(rest: api.BagInput, lines: list[Line], choose: int, config: str | None) -> int:
    """Submit the rest, within the line's ranges; the new bag's number."""
    if not 1 <= choose <= len(lines):
        raise UsageError(f"--choose: no line {choose}; the lines are 1 to {len(lines)}")
    line = lines[choose - 1]
    spec = msgspec.structs.replace(
        rest.spec, deadline=time.time() + line.seconds.high, slots=line.configuration.processors
    )
    chosen = msgspec.structs.replace(rest, spec=spec, budget=line.cost.high)
    answer = ask_daemon(api.Submit(chosen, key=new_key()), config, timeout=SUBMIT_TIMEOUT)
    return answer.bag


def draw_menu(lines: Sequence[Line], path: str) -> None:
    """Cost against time, with the ranges of both, as PNG.

    Raises:
        AdaptorError: matplotlib is not installed, or the file cannot be written.
    """
    from adaptor.figures.canvas import sheet

    drawn = sheet(8, 5)
    axes = drawn.subplots()
    for number, line in enumerate(lines, 1):
        seconds, cost = line.configuration.seconds, line.configuration.cost
        axes.errorbar(
            seconds / 60,
            cost,
            xerr=[[max(0.0, seconds - line.seconds.low) / 60], [max(0.0, line.seconds.high - seconds) / 60]],
            yerr=[[max(0.0, cost - line.cost.low)], [max(0.0, line.cost.high - cost)]],
            fmt="o",
            capsize=3,
            label=f"{number}: {line.name}",
        )
    axes.set(
        xlabel="minutes from now", ylabel="credits", title="What the rest of the bag costs (ranges of 90 %)"
    )
    axes.legend()
    with writing(path):
        drawn.savefig(path, format="png", dpi=120)
