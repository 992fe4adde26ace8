"""`adaptor submit`: a new bag."""

from __future__ import annotations

import click

from adaptor.cli.daemon_process import ask_daemon, tell_started
from adaptor.cli.daily.bag_options import bag_options
from adaptor.cli.json_output import print_json
from adaptor.cli.options import config_option, json_option
from adaptor.cli.words import plural
from adaptor.protocol import control

SUBMIT_TIMEOUT = 300.0
"""Seconds; a daemon on a slow file system may need them for a million tasks."""


@click.command()
@bag_options
@config_option
@json_option
def submit(bag: control.BagInput, config: str | None, as_json: bool) -> None:
    """Submit a bag of tasks; starts a daemon if none is running.

    FILE has one shell line per task (`#` comments; `#ADAPTOR cpus=2 retries=0` sets options, the
    command line wins), or is JSON Lines: {"argv": […]} or {"command": "…"}, with cwd, env, name.

    \b
    Examples:
      adaptor submit tasks.bag --cpus 2 --mem 4G
      adaptor submit --template 'render {scene} -f {frame}' -P scene=a,b -P frame=1:100
    """
    answer, started = ask_daemon(control.Submit(bag), control.Submitted, config, timeout=SUBMIT_TIMEOUT)
    if started:
        tell_started()
    if as_json:
        print_json({"bag": answer.bag, "tasks": len(bag.tasks)})
    else:
        click.echo(f"bag {answer.bag}: {plural(len(bag.tasks), 'task')}")
