"""`adaptor submit`: a new bag."""

from __future__ import annotations

import click

from adaptor import api
from adaptor.cli.daemon_process import ask_daemon
from adaptor.cli.daily.bag_options import WithWords, bag_options, resume_option
from adaptor.cli.daily.submitted import tell_submitted
from adaptor.cli.options import config_option, json_option

SUBMIT_TIMEOUT = 300.0
"""Seconds; a daemon on a slow file system may need them for a million tasks."""


@click.command(cls=WithWords)
@bag_options
@resume_option
@config_option
@json_option
def submit(bag: api.BagInput, resume: bool, config: str | None, as_json: bool) -> None:
    """Submit a bag of tasks; starts a daemon if none is running.

    FILE is a batch script, which begins with #! and whose #SBATCH or #PBS lines count, or has one shell
    line per task (`#` comments; `#ADAPTOR cpus=2 retries=0` sets options, the command line wins), or is
    JSON Lines: {"argv": […]} or {"command": "…"}, with cwd, env, name, id, after, cpus, mem,
    gpus, nodes, time. Behind -- stands a single command, or what is meant for the script.

    \b
    Examples:
      adaptor submit tasks.bag --cpus 2 --mem 4G
      adaptor submit --array 1-1000%50 job.sh
      adaptor submit -- ./prog a b
      adaptor submit --template 'render {scene} -f {frame}' -P scene=a,b -P frame=1:100
    """
    question = api.Submit(bag, resume=resume)
    answer = ask_daemon(question, config, timeout=SUBMIT_TIMEOUT)
    tell_submitted(question, answer, as_json=as_json)
