"""`adaptor open`, `append` and `close`: a bag that gets its tasks as they come."""

from __future__ import annotations

import click

from adaptor import api
from adaptor.cli.daemon_process import ask_daemon, ensure_daemon
from adaptor.cli.daily.bag_options import open_bag_options, task_options
from adaptor.cli.daily.submit import SUBMIT_TIMEOUT
from adaptor.cli.daily.submitted import tell_refused
from adaptor.cli.json_output import print_json
from adaptor.cli.options import config_option, json_option
from adaptor.cli.reader import Reader
from adaptor.cli.selectors import selector_argument
from adaptor.cli.words import plural
from adaptor.client.bags import Client, new_key


@click.command(name="open", short_help="Open a bag to which tasks are appended later.")
@open_bag_options
@config_option
@json_option
def open_command(bag: api.BagInput, config: str | None, as_json: bool) -> None:
    """Open a bag to which tasks are appended later; starts a daemon if none is running.

    Takes options, and if wanted first tasks, as `submit` does. The bag ends when it is closed and its last
    task has ended; without tasks it holds no processors beyond `idle_timeout`.

    \b
    Example:
      adaptor open --name sweep --cpus 2
      adaptor append last first.bag && adaptor append last second.bag
      adaptor close last && adaptor wait last
    """
    question = api.Submit(bag, open=True, key=new_key())
    answer = ask_daemon(question, config, timeout=SUBMIT_TIMEOUT)
    if as_json:
        told = {"bag": answer.bag, "tasks": len(bag.tasks)}
        print_json({**told, "refused": answer.refused} if answer.refused else told)
    else:
        click.echo(f"bag {answer.bag}: open, {plural(len(bag.tasks), 'task')}")
    tell_refused(answer)


@click.command(short_help="Append tasks to an open bag.")
@click.argument("bag", type=str, metavar="BAG")
@task_options
@config_option
@json_option
def append(bag: str, tasks: list[api.TaskInput], config: str | None, as_json: bool) -> None:
    """Append tasks to an open bag (a number, or `last`); once this returns they are kept for good.

    They have the options and the environment of the bag, and their numbers go on after its last task.

    \b
    Examples:
      adaptor append 7 more.bag
      ./next-candidates | adaptor append last -
    """
    number = Reader().bag(bag).id
    with Client(start=lambda: ensure_daemon(config)) as client:
        answers = list(client.appending(number, tasks))
    numbers = [answer.first + task for answer in answers for task in range(answer.tasks)]
    if as_json:
        print_json({"bag": number, "tasks": numbers})
    else:
        which = f"task {numbers[0]}" if len(numbers) == 1 else f"tasks {numbers[0]} to {numbers[-1]}"
        click.echo(f"bag {number}: {plural(len(numbers), 'task')} appended ({which})")
    for answer in answers:
        tell_refused(answer)


@click.command(short_help="Close bags: they take no more tasks.")
@selector_argument("SEL", required=True)
@config_option
@json_option
def close(selector: str, config: str | None, as_json: bool) -> None:
    """Close bags: they take no more tasks, and end with their last one.

    \b
    Example:
      adaptor close last
    """
    bags = [bag.id for bag in Reader().bags(selector)]
    closed = ask_daemon(api.Close(bags), config)
    if as_json:
        print_json({"bags": closed})
        return
    for bag in bags:
        click.echo(f"bag {bag}: {'closed' if bag in closed else 'was closed already'}")
