"""`adaptor submit`, `run`, `append`: bags, and more tasks for open ones."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import click

from adaptor import api
from adaptor.cli.bags import bag_options
from adaptor.cli.bags.bag_input import NO_TASKS, TaskSource, more_tasks
from adaptor.cli.bags.task_output import print_in_order
from adaptor.cli.bags.watch import until_failed, watch_bags
from adaptor.cli.daemon_process import (
    ask_daemon,
    ensure_daemon,
    reload_daemon,
    stop_daemon,
    submit_bag,
    with_daemon,
)
from adaptor.cli.exit_codes import INTERRUPTED
from adaptor.cli.follow import follow
from adaptor.cli.login_node import LoginNodeError
from adaptor.cli.option_sections import sectioned
from adaptor.cli.options import config_option, json_option
from adaptor.cli.printing import plural, print_json, printable
from adaptor.client.bags import Client
from adaptor.client.reading import Reader
from adaptor.errors import AdaptorError, NoDaemonError, UsageError
from adaptor.guard_rails import MostFails


def tell_submitted(
    bag: api.BagInput,
    answer: api.Submitted,
    *,
    opened: bool = False,
    resume: bool = False,
    as_json: bool = False,
    err: bool = False,
) -> None:
    """The number of the new bag and of its tasks, and what earlier bags have of what was asked.

    `err`: whether it goes to stderr, since stdout has what the tasks write.
    """
    known = sum(each.done + each.to_run for each in answer.taken_over)
    new, spec = len(bag.tasks) - known, bag.spec
    if as_json:
        told: dict[str, Any] = {"bag": answer.bag or None, "tasks": new}
        if resume:
            told["taken_over"] = [
                {"bag": each.bag, "done": each.done, "to_run": each.to_run} for each in answer.taken_over
            ]
        print_json({**told, "refused": answer.refused} if answer.refused else told)
        tell_refused(answer.refused, answer.reasons)
        return
    if answer.bag:
        click.echo(f"bag {answer.bag}: {'open, ' if opened else ''}{plural(new, 'task')}", err=err)
    for each in answer.taken_over:
        states = ((each.done, "done"), (each.to_run, "still to run"))
        held = " and ".join(f"{plural(count, 'task')} {state}" for count, state in states if count)
        click.echo(f"not run again: {held} in bag {each.bag}", err=err)
    if not answer.bag:
        click.echo("nothing is left to run: no new bag", err=err)
    elif resume and not answer.taken_over:
        click.echo(f"no earlier bag {spec.name} of this folder has any of these tasks", err=err)
    if new >= MANY and spec.output_files == "each" and spec.script is None:
        folder = printable(spec.output.replace("{bag}", str(answer.bag)))
        click.echo(
            f"adaptor: each task makes up to 2 files in {folder}; --output-files packed makes a few archives",
            err=True,
        )
    tell_refused(answer.refused, answer.reasons)


MANY = 1_000  # new tasks of a bag from which on its user learns how many files they make


def tell_refused(refused: int, reasons: Sequence[str], what: str = "failed at once") -> None:
    """Say what became of tasks that nothing can ever run. `reasons`: of the first of them."""
    if not refused:
        return
    click.echo(f"adaptor: {plural(refused, 'task')} can never run, and {what}:", err=True)
    for reason in reasons:
        click.echo(f"  {printable(reason)}", err=True)
    if refused > len(reasons):
        click.echo(f"  and {refused - len(reasons):,} more", err=True)


@click.command(cls=bag_options.WithWords)
@bag_options.open_bag_options
@bag_options.resume_option
@click.option("--parsable", is_flag=True, help="Print the number of the bag alone, for a script.")
@config_option
@json_option
def submit(
    bag: api.BagInput, opened: bool, resume: bool, parsable: bool, config: str | None, as_json: bool
) -> None:
    """Submit a bag of tasks; starts a daemon if none is running.

    \b
    FILE is one of:
      a list       one shell line per task; `#ADAPTOR cpus=2` sets options
      JSON Lines   {"argv": […]} or {"command": "…"}, with cwd, env, name,
                   id, after, cpus, mem, gpus, nodes, time
      a script     begins with #!; its #SBATCH, #PBS or #$ lines count

    The command line wins over options in the file. After -- stands a single command, or arguments of
    the script. An open bag may begin without tasks; it ends when `adaptor append BAG --close` has
    closed it and its last task has ended.

    \b
    Examples:
      adaptor submit tasks.bag --cpus 2 --mem 4G
      adaptor submit --array 1-1000%50 job.sh
      adaptor submit -- ./prog a b
      adaptor submit second.bag --after last
      adaptor submit --template 'render {scene} -f {frame}' -P scene=a,b -P frame=1:100
    """
    answer = submit_bag(bag, config, open=opened, resume=resume)
    if parsable and answer.bag and not as_json:
        click.echo(answer.bag)
        tell_refused(answer.refused, answer.reasons)
        return
    tell_submitted(bag, answer, opened=opened, resume=resume, as_json=as_json)


@click.command(cls=bag_options.WithWords, short_help="Append tasks to an open bag.")
@click.argument("bag", type=str, metavar="BAG")
@bag_options.task_options
@click.option("--close", "last", is_flag=True, help="Then close the bag: it takes no more tasks.")
@config_option
@json_option
def append(bag: str, source: TaskSource, last: bool, config: str | None, as_json: bool) -> None:
    """Append tasks to an open bag (a number, or `last`); once this returns they are kept for good.

    They have the options and the environment of the bag, and their numbers go on after its last task.
    With --close and no tasks, only closes the bag.

    \b
    Examples:
      adaptor append 7 more.bag
      ./next-candidates | adaptor append last -
      adaptor append last --close
    """
    found = Reader(time.time).bag(bag)
    tasks, file = more_tasks(source, found.shell)
    if not tasks and not last:
        raise UsageError(NO_TASKS)
    number, answers, closed = found.id, list[api.Added](), False
    if tasks:
        with Client(start=lambda: ensure_daemon(config, sites=found.sites)) as client:
            answers = list(client.appending(number, tasks, file))
    numbers = [answer.first + task for answer in answers for task in range(answer.tasks)]
    if last:
        closed = bool(ask_daemon(api.Close([number]), config))
    if as_json:
        print_json({"bag": number, "tasks": numbers, "closed": last})
    elif numbers:
        which = f"task {numbers[0]}" if len(numbers) == 1 else f"tasks {numbers[0]} to {numbers[-1]}"
        click.echo(f"bag {number}: {plural(len(numbers), 'task')} appended ({which})")
    if last and not as_json:
        click.echo(f"bag {number}: {'closed' if closed else 'was closed already'}")
    for answer in answers:
        tell_refused(answer.refused, answer.reasons)


@click.command(cls=bag_options.WithWords)
@bag_options.bag_options
@bag_options.resume_option
@sectioned(
    "Output",
    "--stdout",
    "printed",
    is_flag=True,
    help="Print what the tasks write to stdout, in their order as they end; the progress goes to stderr.",
)
@sectioned(
    "Limits",
    "--halt",
    is_flag=True,
    help="Cancel the bag at its first failed task, or at --max-fails of them.",
)
@sectioned("Output", "--tag", is_flag=True, help="The same; each line begins with the task's name or number.")
@config_option
@json_option
@click.pass_context
def run(
    ctx: click.Context,
    bag: api.BagInput,
    resume: bool,
    printed: bool,
    halt: bool,
    tag: bool,
    config: str | None,
    as_json: bool,
) -> int:
    """Run a bag of tasks and show its progress until it has ended.

    Takes tasks as `submit` does. Without a daemon, starts a private one that runs until all bags are done;
    Ctrl-C then stops it and its pilots, and keeps the results. Exit code: 0 all tasks done, 3 some
    failed, 4 the bag has paused by itself.

    \b
    Example:
      adaptor run tasks.bag --cpus 2
      adaptor run --template 'render -f {frame}' -P frame=1:100
      adaptor run gzip -k {} ::: *.csv
    """
    printed = printed or tag
    if printed and as_json:
        raise UsageError("--stdout and --json are mutually exclusive; --json names the files")
    submitted = partial(
        with_daemon,
        config,
        lambda client: client.submit(bag, resume=resume),
        sites=bag.spec.sites,
        until_idle=True,
    )
    try:
        answer, private = submitted()
    except LoginNodeError as refused:
        if not on_terminal():
            raise
        from adaptor.cli.operating.sites import init

        click.echo(f"adaptor: {refused}", err=True)
        click.confirm("Write a configuration for this cluster (adaptor site init)?", abort=True, err=True)
        ctx.invoke(init, output=None, force=False, config=config, as_json=False)
        with contextlib.suppress(NoDaemonError):
            reload_daemon()
        answer, private = submitted()
    number = answer.bag
    if not (as_json and number):
        tell_submitted(bag, answer, resume=resume, as_json=as_json, err=printed)
    else:
        tell_refused(answer.refused, answer.reasons)
    if not number:
        return 0
    try:
        most = bag.spec.max_fails or MostFails(tasks=1)
        snapshots = until_failed(number, most) if halt else follow([number])
        if printed:
            snapshots = print_in_order(snapshots, number, tag=tag)
        return watch_bags(snapshots, as_json, err=printed)
    except KeyboardInterrupt:
        click.echo(f"adaptor: interrupted: {_interrupted(number, private)}", err=True)
        return INTERRUPTED


def on_terminal() -> bool:
    """True if a person can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _interrupted(number: int, private: bool) -> str:
    """A message after Ctrl-C: what has stopped, what is kept, and how to continue."""
    if not private:
        return f"bag {number} continues (adaptor watch {number}, adaptor cancel {number})"
    try:
        stop_daemon(pilots=True)
        bag = Reader(time.time).kept(api.GetBags(str(number))).bags[0]
    except AdaptorError as error:
        return f"the daemon may still be running: {error}"
    return (
        f"stopped the daemon and its pilots; bag {number} is kept with {bag.done:,} of {bag.tasks:,} tasks"
        f" done; to continue: `adaptor daemon start`, to drop it: `adaptor cancel {number}`"
    )
