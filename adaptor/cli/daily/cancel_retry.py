"""`adaptor cancel` and `adaptor retry`: end the unfinished tasks of bags, or run the failed ones again."""

from __future__ import annotations

import click

from adaptor.cli.daemon_process import ask_daemon, tell_started
from adaptor.cli.json_output import print_json
from adaptor.cli.options import config_option, json_option
from adaptor.cli.reader import Reader
from adaptor.cli.selectors import selector_argument
from adaptor.cli.words import plural
from adaptor.protocol import control


@click.command()
@selector_argument("SEL", required=True)
@config_option
@json_option
def cancel(selector: str, config: str | None, as_json: bool) -> None:
    """Cancel the unfinished tasks of bags.

    \b
    Example:
      adaptor cancel last
    """
    change(selector, control.Cancel, "cancelled", config, as_json)


@click.command()
@selector_argument("SEL", required=True)
@config_option
@json_option
def retry(selector: str, config: str | None, as_json: bool) -> None:
    """Run failed and cancelled tasks of bags again.

    \b
    Example:
      adaptor retry 7 && adaptor watch 7
    """
    change(selector, control.Retry, "put back into the queue", config, as_json)


def change(
    selector: str,
    question: type[control.Cancel] | type[control.Retry],
    done: str,
    config: str | None,
    as_json: bool,
) -> None:
    """Change the selected bags, and print how many tasks changed.

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
