"""`adaptor run`: submit a bag and watch it to its end, with a private daemon where none runs."""

from __future__ import annotations

import click

from adaptor import api
from adaptor.cli.daemon_process import ask_starting, stop_daemon
from adaptor.cli.daily.bag_options import WithWords, bag_options, resume_option
from adaptor.cli.daily.submit import SUBMIT_TIMEOUT, tell_refused, tell_submitted
from adaptor.cli.daily.watch_wait import watch_bags
from adaptor.cli.exit_codes import INTERRUPTED
from adaptor.cli.options import config_option, json_option
from adaptor.cli.reader import Reader
from adaptor.errors import AdaptorError


@click.command(cls=WithWords)
@bag_options
@resume_option
@config_option
@json_option
def run(bag: api.BagInput, resume: bool, config: str | None, as_json: bool) -> int:
    """Run a bag of tasks and show its progress until it has ended.

    Takes tasks as `submit` does. Without a daemon, starts a private one that runs until all bags are done;
    Ctrl-C then stops it and its pilots, and keeps the results. Exit code: 0 all tasks done, 3 some
    failed, 4 the bag has paused by itself.

    \b
    Example:
      adaptor run tasks.bag --cpus 2
      adaptor run --template 'render -f {frame}' -P frame=1:100
    """
    question = api.Submit(bag, resume=resume)
    answer, private = ask_starting(question, config, SUBMIT_TIMEOUT, until_idle=True)
    number = answer.bag
    if not (as_json and number):
        tell_submitted(question, answer, as_json=as_json)
    else:
        tell_refused(answer)
    if not number:
        return 0
    try:
        return watch_bags([number], as_json)
    except KeyboardInterrupt:
        click.echo(f"adaptor: interrupted: {_interrupted(number, private)}", err=True)
        return INTERRUPTED


def _interrupted(number: int, private: bool) -> str:
    """What Ctrl-C has stopped, what is kept, and how to continue."""
    if not private:
        return f"bag {number} continues (adaptor watch {number}, adaptor cancel {number})"
    try:
        stop_daemon(pilots=True)
        bag = Reader().kept(api.GetBags(str(number))).bags[0]
    except AdaptorError as error:
        return f"the daemon may still be running: {error}"
    return (
        f"stopped the daemon and its pilots; bag {number} is kept with {bag.done:,} of {bag.tasks:,} tasks"
        f" done; to continue: `adaptor daemon start`, to drop it: `adaptor cancel {number}`"
    )
