"""What `cancel` and `retry` have in common."""

from __future__ import annotations

import click

from adaptor.cli.jsonout import print_json
from adaptor.cli.reading import Reader
from adaptor.cli.starting import ask_daemon, tell_started
from adaptor.cli.words import plural
from adaptor.protocol import control


def change(
    selector: str,
    question: type[control.Cancel] | type[control.Retry],
    done: str,
    config: str | None,
    as_json: bool,
) -> None:
    """Ask the change of the selected bags, and tell how many tasks were changed.

    The bags are looked up first, so that a wrong selector starts no daemon.
    """
    bags = [bag.id for bag in Reader().bags(selector)]
    answer, started = ask_daemon(question(bags), control.Changed, config)
    if started:
        tell_started()
    if as_json:
        print_json({"bags": bags, "tasks": answer.tasks})
    else:
        names = f"bag {bags[0]}" if len(bags) == 1 else plural(len(bags), "bag")
        click.echo(f"{names}: {plural(answer.tasks, 'task')} {done}")
