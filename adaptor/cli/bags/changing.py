"""`adaptor pause`, `resume`, `change`, `cancel`, `retry`, `forget`: bags that were submitted are changed."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import click
from click.core import ParameterSource

from adaptor import api
from adaptor.cli.bags.bag_options import bag_option
from adaptor.cli.daemon_process import ask_daemon
from adaptor.cli.options import check_tasks, config_option, confirm, json_option, selected, selector_argument
from adaptor.cli.options import numbers as task_numbers
from adaptor.cli.printing import plural, print_json, print_lines, printable
from adaptor.client.reading import Reader
from adaptor.errors import UsageError
from adaptor.option_kinds import MEMORY
from adaptor.resources import OwnNeeds, TaskGpus


@click.command(short_help="Start no more tasks of bags; those that run go on.")
@selector_argument("BAGS", required=True)
@config_option
@json_option
def pause(selector: str, config: str | None, as_json: bool) -> None:
    """Start no more tasks of bags; those that run go on to their end.

    Queued requests that only these bags need are withdrawn.

    \b
    Example:
      adaptor pause 7
    """
    bags = selected(selector)
    _steer(api.Pause(bags), bags, "paused", config, as_json)


@click.command()
@selector_argument("BAGS", required=True)
@config_option
@json_option
def resume(selector: str, config: str | None, as_json: bool) -> None:
    """Let paused bags go on. A bag that had paused by itself goes on without its canary.

    \b
    Example:
      adaptor resume 7
    """
    bags = selected(selector)
    _steer(api.Resume(bags), bags, "resumed", config, as_json)


_mem_option = bag_option("mem", kind=MEMORY, help="memory of each task, such as 4G")
"""Option of a task's memory, without `auto`, which is for bags."""


def _option_changes(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of a bag that can be changed, and `--json` and `--config`."""
    at_once = click.option(
        "--max-running",
        type=click.IntRange(min=0),
        metavar="N",
        help="Tasks that run at the same time; 0: all.",
    )
    options = (
        *map(bag_option, ("timeout", "retries", "max-fails")),
        at_once,
        *map(bag_option, ("priority", "begin", "deadline")),
        bag_option("budget", help="credits that the bag may cost, including what it has used"),
        *map(bag_option, ("site", "notify", "signal", "requeue-on", "on-oom")),
        config_option,
        json_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@selector_argument("BAGS", required=True)
@bag_option("cpus")
@_mem_option
@bag_option("time")
@_option_changes
def change(
    selector: str,
    cpus: int | None,
    memory: int | None,
    time: float | None,
    config: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Change options of bags that have not ended.

    Tasks that run go on with the cpus, memory and time-out that they have. For a bag that has ended,
    `adaptor retry` takes the same options.

    \b
    Examples:
      adaptor change 7 --priority 10 --max-running 50
      adaptor change last --mem 8G --site hpc
      adaptor change 7 --budget 500
    """
    bags, needs = selected(selector), OwnNeeds(cpus=cpus, memory=memory)
    changes = api.OptionChanges(time=time, **options)
    wanted = api.ChangeOptions(bags, changes, None if needs == OwnNeeds() else needs)
    if wanted == api.ChangeOptions(bags):
        raise UsageError("nothing to change; adaptor change --help lists what can be changed")
    _steer(wanted, bags, "changed", config, as_json)


def _steer(
    question: api.Pause | api.Resume | api.ChangeOptions,
    bags: list[int],
    done: str,
    config: str | None,
    as_json: bool,
) -> None:
    """Ask the daemon, and print what became of each bag. Raises UsageError: none of them is changed."""
    changed = ask_daemon(question, config)
    others = [bag for bag in bags if bag not in changed]
    left = []
    if others and not (as_json and changed):
        left = [*map(_unchanged, Reader(time.time).bags(",".join(map(str, others))))]
    if not changed:
        raise UsageError("; ".join(left))
    if as_json:
        print_json({"bags": changed})
        return
    click.echo(f"{_named(changed)}: {done}")
    print_lines(left)


def _unchanged(bag: api.BagView) -> str:
    """Why a command has left a bag as it is."""
    if bag.ended is not None:
        way = f"; adaptor retry {bag.id} runs its failed tasks again" if bag.done < bag.tasks else ""
        return f"bag {bag.id} has ended{way}"
    return printable(bag.paused) or f"bag {bag.id} is not paused"


def _named(bags: list[int]) -> str:
    return f"bag {bags[0]}" if len(bags) == 1 else f"bags {', '.join(map(str, bags))}"


_MOST_TASKS = 10_000_000  # numbers that can be named; more is taken for a typing error


@click.command()
@selector_argument("BAGS", required=True)
@click.option(
    "--task",
    "numbers",
    type=task_numbers,
    metavar="NUMBERS",
    help="Only these tasks, such as 1-10; an open bag then stays open.",
)
@config_option
@json_option
def cancel(selector: str, numbers: list[range] | None, config: str | None, as_json: bool) -> None:
    """Cancel the unfinished tasks of bags, which take no more tasks.

    \b
    Example:
      adaptor cancel last
      adaptor cancel 7 --task 100-199
    """
    _change_tasks(selector, numbers, api.Cancel, "cancelled", "no unfinished task to cancel", config, as_json)


@click.command(short_help="Run failed and cancelled tasks of bags again.")
@selector_argument("BAGS", required=True)
@click.option(
    "--task", "numbers", type=task_numbers, metavar="NUMBERS", help="Only these tasks, such as 1-10."
)
@bag_option("cpus")
@_mem_option
@bag_option("gpus", help="GPUs of each task: 2, a100:1, 0.5, or 0 for none")
@bag_option("nodes")
@bag_option("time")
@_option_changes
def retry(
    selector: str,
    numbers: list[range] | None,
    cpus: int | None,
    memory: int | None,
    gpus: TaskGpus | None,
    nodes: int | None,
    time: float | None,
    config: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Run failed and cancelled tasks of bags again, with other resources and options if these say so.

    The resources are those of the tasks that run again. The other options are the whole bag's from now on.

    \b
    Examples:
      adaptor retry 7 && adaptor watch 7
      adaptor retry 7 --timeout 20m
      adaptor retry 7 --task 3,7-9 --mem 8G --time 2h
    """
    no_gpus = click.get_current_context().get_parameter_source("gpus") is ParameterSource.COMMANDLINE
    needs = OwnNeeds(
        cpus=cpus,
        memory=memory,
        gpus=gpus.count if gpus else 0.0 if no_gpus else None,
        gpu_type=gpus.type if gpus else "",
        nodes=nodes,
        time=time,
    )
    changes = api.OptionChanges(**options)
    question = partial(api.Retry, needs=None if needs == OwnNeeds() else needs, options=changes)
    _change_tasks(
        selector,
        numbers,
        question,
        "put back into the queue",
        "no task has failed or was cancelled",
        config,
        as_json,
    )


def _change_tasks(
    selector: str,
    numbers: list[range] | None,
    question: Callable[[list[int], list[int] | None], api.Cancel | api.Retry],
    done: str,
    nothing: str,
    config: str | None,
    as_json: bool,
) -> None:
    """Change the selected bags, and print how many tasks changed; `nothing`: why none did."""
    if numbers is not None and sum(map(len, numbers)) > _MOST_TASKS:
        raise UsageError(f"--task: names more than {_MOST_TASKS:,} tasks")
    views = Reader(time.time).bags(selector)
    check_tasks(views, numbers)
    bags = [view.id for view in views]
    tasks = None if numbers is None else sorted({task for some in numbers for task in some})
    changed = ask_daemon(question(bags, tasks), config)
    if as_json:
        print_json({"bags": bags, "tasks": changed})
    else:
        names = f"bag {bags[0]}" if len(bags) == 1 else plural(len(bags), "bag")
        what = f"{plural(changed, 'task')} {done}" if changed else nothing
        click.echo(f"{names}: {what}")


@click.command()
@selector_argument("BAGS", required=True)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@config_option
@json_option
def forget(selector: str, yes: bool, config: str | None, as_json: bool) -> None:
    """Remove ended bags from the journal, for good.

    Their tasks, attempts and explanations go; the files that tasks wrote stay. What the bags have cost still
    counts in budgets and credits of sites. A bag that has not ended is refused.

    \b
    Examples:
      adaptor forget 1-500
      adaptor forget 7 --yes
    """
    bags = selected(selector)
    if not yes:
        which = f"bag {bags[0]}" if len(bags) == 1 else f"{bags[0]} to {bags[-1]}"
        confirm(f"forget {plural(len(bags), 'bag')} ({which}) for good?")
    forgotten = ask_daemon(api.Forget(bags), config)
    if as_json:
        print_json({"bags": bags})
    else:
        click.echo(f"{plural(forgotten, 'bag')} forgotten")
