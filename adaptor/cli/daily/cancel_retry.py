"""`adaptor cancel` and `adaptor retry`: end the unfinished tasks of bags, or run the failed ones again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

from adaptor import api
from adaptor.bagfile.options import parse_option
from adaptor.cli.daemon_process import ask_daemon
from adaptor.cli.json_output import print_json
from adaptor.cli.options import config_option, json_option
from adaptor.cli.reader import Reader
from adaptor.cli.selectors import numbers as task_numbers
from adaptor.cli.selectors import selector_argument
from adaptor.cli.words import plural
from adaptor.errors import UsageError
from adaptor.resources import OwnNeeds, TaskGpus

_MOST_TASKS = 10_000_000
"""That can be named; more is taken for a typing error."""


def _tasks_option(help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option("--task", "numbers", type=task_numbers, metavar="NUMBERS", help=help)


def _need_option(key: str, metavar: str, help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option whose value is read as for a new bag."""

    def checked(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
        if value is None:
            return None
        try:
            return parse_option(key, value, 0.0)[1]
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None

    return click.option(f"--{key}", metavar=metavar, callback=checked, help=help)


@click.command()
@selector_argument("SEL", required=True)
@_tasks_option("Only these tasks, such as 1-10; an open bag then stays open.")
@config_option
@json_option
def cancel(selector: str, numbers: list[range] | None, config: str | None, as_json: bool) -> None:
    """Cancel the unfinished tasks of bags, which take no more tasks.

    \b
    Example:
      adaptor cancel last
      adaptor cancel 7 --task 100-199
    """
    change(selector, numbers, api.Cancel, "cancelled", config, as_json)


@click.command(short_help="Run failed and cancelled tasks of bags again.")
@selector_argument("SEL", required=True)
@_tasks_option("Only these tasks, such as 1-10.")
@_need_option("cpus", "N", "Processors of each of these tasks from now on.")
@_need_option("mem", "SIZE", "Memory of each from now on, such as 8G.")
@_need_option("gpus", "[TYPE:]N", "GPUs of each from now on; 0: none.")
@_need_option("nodes", "N", "Nodes of each from now on.")
@_need_option("time", "DURATION", "How long each is expected to take, such as 2h.")
@config_option
@json_option
def retry(
    selector: str,
    numbers: list[range] | None,
    cpus: int | None,
    mem: int | None,
    gpus: TaskGpus | None,
    nodes: int | None,
    time: float | None,
    config: str | None,
    as_json: bool,
) -> None:
    """Run failed and cancelled tasks of bags again, with other resources if options say so.

    \b
    Examples:
      adaptor retry 7 && adaptor watch 7
      adaptor retry 7 --task 3,7-9 --mem 8G --time 2h
    """
    no_gpus = click.get_current_context().get_parameter_source("gpus") is ParameterSource.COMMANDLINE
    needs = OwnNeeds(
        cpus=cpus,
        memory=mem,
        gpus=gpus.count if gpus else 0.0 if no_gpus else None,
        gpu_type=gpus.type if gpus else "",
        nodes=nodes,
        time=time,
    )
    given = None if needs == OwnNeeds() else needs

    def question(bags: list[int], tasks: list[int] | None) -> api.Retry:
        return api.Retry(bags, tasks, given)

    change(selector, numbers, question, "put back into the queue", config, as_json)


def change(
    selector: str,
    numbers: list[range] | None,
    question: Callable[[list[int], list[int] | None], api.Cancel | api.Retry],
    done: str,
    config: str | None,
    as_json: bool,
) -> None:
    """Change the selected bags, and print how many tasks changed.

    The bags are looked up first, so that a wrong selector starts no daemon.
    """
    bags = [bag.id for bag in Reader().bags(selector)]
    changed = ask_daemon(question(bags, _flat(numbers)), config)
    if as_json:
        print_json({"bags": bags, "tasks": changed})
    else:
        names = f"bag {bags[0]}" if len(bags) == 1 else plural(len(bags), "bag")
        click.echo(f"{names}: {plural(changed, 'task')} {done}")


def _flat(numbers: list[range] | None) -> list[int] | None:
    if numbers is None:
        return None
    if sum(map(len, numbers)) > _MOST_TASKS:
        raise UsageError(f"--task: names more than {_MOST_TASKS:,} tasks")
    return sorted({task for some in numbers for task in some})
