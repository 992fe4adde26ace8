"""`adaptor mcp`: the server for an agent, and the keys that bound what agents may do."""

from __future__ import annotations

import os
import time

import click

from adaptor import api
from adaptor.cli.daemon_process import ask_daemon
from adaptor.cli.options import config_option, json_option
from adaptor.cli.printing import NumberCell, clock, print_json, print_lines, printable, table
from adaptor.cli.sentences import amount
from adaptor.client.asking import ask
from adaptor.client.reading import Reader
from adaptor.errors import UsageError
from adaptor.option_kinds import CREDITS, INSTANT
from adaptor.protocol.access import KEY_VARIABLE


@click.group(invoke_without_command=True, short_help="Serve an agent within the limits of a key.")
@click.option("--key", metavar="NAME|FILE", help="The agent's key, made by `adaptor mcp grant`.")
@click.option("--read-only", is_flag=True, help="Without the tools that submit and cancel.")
@click.pass_context
def mcp(ctx: click.Context, key: str | None, read_only: bool) -> None:
    """Serve an agent by the Model Context Protocol, on standard input and output.

    The daemon enforces the limits of the key: a budget of credits for all its bags, a cap on their
    processors, and a canary. The tools see only bags that were submitted with the key.

    \b
    Examples:
      adaptor mcp grant agent --budget 20 --max-proc 64
      adaptor mcp --key agent
    """
    if ctx.invoked_subcommand is not None:
        return
    key = key or os.environ.get(KEY_VARIABLE)
    if not key:
        raise UsageError(
            "--key: name the agent's key; make one: adaptor mcp grant NAME --budget 20 --max-proc 64"
        )
    os.environ[KEY_VARIABLE] = key
    from adaptor_mcp.server import make_server

    make_server(read_only=read_only).run("stdio")


@mcp.command()
@click.argument("name")
@click.option("--budget", required=True, metavar="CREDITS", help="That all its bags may cost together.")
@click.option(
    "--max-proc", required=True, type=click.IntRange(1), metavar="N", help="Processors at a time, at most."
)
@click.option(
    "--canary",
    default=3,
    show_default=True,
    type=click.IntRange(1),
    metavar="N",
    help="Tasks of each bag that must succeed before more start.",
)
@click.option("--read-only", is_flag=True, help="It may not submit or cancel.")
@click.option("--all-bags", is_flag=True, help="It may read all your bags, not only its own.")
@click.option("--until", metavar="TIME", help="When it ends: 12h, tomorrow, or 2026-11-22T08:00.")
@config_option
def grant(
    name: str,
    budget: str,
    max_proc: int,
    canary: int,
    read_only: bool,
    all_bags: bool,
    until: str | None,
    config: str | None,
) -> None:
    """Make a key for an agent, or change its limits.

    Prints the path of its access file. What its bags have used so far counts.

    \b
    Example:
      adaptor mcp grant agent --budget 20 --max-proc 64 --until 12h
    """
    try:
        credits = CREDITS.parse(budget, 0.0)
        at = None if until is None else INSTANT.parse(until, time.time())
    except ValueError as error:
        raise UsageError(str(error)) from None
    given = api.Grant(
        budget=credits, max_proc=max_proc, canary=canary, read_only=read_only, all_bags=all_bags, until=at
    )
    click.echo(printable(ask_daemon(api.GrantKey(name, given), config)))


@mcp.command()
@click.argument("name")
def revoke(name: str) -> None:
    """Refuse a key from now on.

    Its bags continue within the limits; `adaptor cancel` ends them.

    \b
    Example:
      adaptor mcp revoke agent
    """
    ask(api.RevokeKey(name))


@mcp.command()
@json_option
def keys(as_json: bool) -> None:
    """Show all keys, their limits and what is left.

    \b
    Example:
      adaptor mcp keys
    """
    found = ask(api.GetKeys())
    if as_json:
        print_json(found)
    elif not found:
        click.echo("no keys; make one: adaptor mcp grant NAME --budget 20 --max-proc 64")
    else:
        print_lines(
            table(
                found,
                {
                    "key": "name",
                    "budget": lambda key: NumberCell(amount(key.grant.budget)),
                    "used": lambda key: NumberCell(amount(key.used)),
                    "left": lambda key: NumberCell(amount(key.left)),
                    "processors": lambda key: f"{key.held} of {key.grant.max_proc}",
                    "bags": lambda key: NumberCell(str(key.bags)),
                    "may": _rights,
                },
            )
        )


def _rights(key: api.KeyView) -> str:
    if key.revoked:
        return "revoked"
    told = "read" if key.grant.read_only else f"submit, canary {key.grant.canary}"
    told += ", read all bags" if key.grant.all_bags else ""
    return told if key.grant.until is None else f"{told}, until {clock(key.grant.until)}"


@mcp.command()
@click.argument("name", required=False)
@click.option("-n", "--lines", default=100, type=click.IntRange(1), help="The newest lines (default: 100).")
@json_option
def log(name: str | None, lines: int, as_json: bool) -> None:
    """Show what was done with keys.

    Grants, bags, cancellations, and refusals (20 an hour at most for each key).

    \b
    Example:
      adaptor mcp log agent
    """
    told = Reader(time.time).get(api.GetWhy(kinds=["key"], limit=lines if name is None else 1_000_000)).lines
    if name is not None:
        told = [line for line in told if line.text.startswith(f"key {name}: ")][-lines:]
    now = time.time()
    shown = (f"{clock(line.time, now)} {printable(line.text)}" for line in told)
    print_json(told) if as_json else print_lines(shown)
