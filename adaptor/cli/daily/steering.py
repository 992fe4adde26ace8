"""`adaptor pause`, `adaptor resume`, `adaptor change`: hold bags, let them go on, change their options."""

from __future__ import annotations

import time
from typing import Any

import click

from adaptor import api
from adaptor.bagfile.options import parse_option
from adaptor.cli.daemon_process import ask_daemon
from adaptor.cli.json_output import print_json
from adaptor.cli.options import config_option, json_option
from adaptor.cli.reader import Reader
from adaptor.cli.selectors import selector_argument
from adaptor.errors import UsageError


@click.command(short_help="Start no more tasks of bags; those that run go on.")
@selector_argument("SEL", required=True)
@config_option
@json_option
def pause(selector: str, config: str | None, as_json: bool) -> None:
    """Start no more tasks of bags; those that run go on to their end.

    Queued requests that only these bags need are withdrawn.

    \b
    Example:
      adaptor pause 7
    """
    bags = _bags(selector)
    _steer(api.Pause(bags), bags, "paused", "paused already, or ended", config, as_json)


@click.command()
@selector_argument("SEL", required=True)
@config_option
@json_option
def resume(selector: str, config: str | None, as_json: bool) -> None:
    """Let paused bags go on. A bag that had paused by itself goes on without its canary.

    \b
    Example:
      adaptor resume 7
    """
    bags = _bags(selector)
    _steer(api.Resume(bags), bags, "resumed", "not paused", config, as_json)


def _parsed(key: str) -> Any:
    """A click callback that reads a value as bags read it."""

    def checked(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
        if value is None:
            return None
        try:
            return parse_option(key, value, time.time())[1]
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None

    return checked


@click.command()
@selector_argument("SEL", required=True)
@click.option(
    "--priority",
    metavar="N",
    callback=_parsed("priority"),
    help="Bags with a larger one go first among yours.",
)
@click.option(
    "--max-running", type=click.IntRange(min=0), metavar="N", help="Tasks that run at the same time; 0: all."
)
@click.option(
    "--retries", metavar="N", callback=_parsed("retries"), help="How often a failed task runs again."
)
@click.option(
    "--max-fails",
    metavar="N|N%",
    callback=_parsed("max-fails"),
    help="At how many failed tasks the bag pauses.",
)
@config_option
@json_option
def change(
    selector: str,
    priority: int | None,
    max_running: int | None,
    retries: int | None,
    max_fails: Any,
    config: str | None,
    as_json: bool,
) -> None:
    """Change options of bags that have not ended.

    \b
    Example:
      adaptor change 7 --priority 10 --max-running 50
    """
    if (priority, max_running, retries, max_fails) == (None, None, None, None):
        raise UsageError("nothing to change; give --priority, --max-running, --retries or --max-fails")
    bags = _bags(selector)
    wanted = api.ChangeOptions(bags, priority, max_running, retries, max_fails)
    _steer(wanted, bags, "changed", "ended", config, as_json)


def _bags(selector: str) -> list[int]:
    """Looked up first, so that a wrong selector starts no daemon."""
    return [bag.id for bag in Reader().bags(selector)]


def _steer(
    question: api.Pause | api.Resume | api.ChangeOptions,
    bags: list[int],
    done: str,
    otherwise: str,
    config: str | None,
    as_json: bool,
) -> None:
    """Ask the daemon, and print what became of each bag. Raises UsageError: none of them is changed."""
    changed = ask_daemon(question, config)
    if not changed:
        raise UsageError(f"{_named(bags)}: {otherwise}")
    if as_json:
        print_json({"bags": changed})
        return
    click.echo(f"{_named(changed)}: {done}")
    if others := [bag for bag in bags if bag not in changed]:
        click.echo(f"{_named(others)}: {otherwise}")


def _named(bags: list[int]) -> str:
    return f"bag {bags[0]}" if len(bags) == 1 else f"bags {', '.join(map(str, bags))}"
