"""Options that several commands share."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from adaptor import api
from adaptor.client.reading import Asker, Reader
from adaptor.defaults import HOW_TO_ADD
from adaptor.did_you_mean import did_you_mean
from adaptor.errors import UsageError
from adaptor.journal.selectors import check_selector
from adaptor.option_kinds import BAG_WORDS, GPUS, MEMORY, Kind
from adaptor.protocol.access import KEY_VARIABLE
from adaptor.resources import TaskGpus, TaskSize
from adaptor.units import parse_duration

Command = TypeVar("Command", bound=Callable[..., Any])


def json_option(command: Command) -> Command:
    """Option `--json`: the parameter `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON value.")(command)


def config_option(command: Command) -> Command:
    """`--config FILE`, before or after the command's name."""
    return click.option(
        "--config", metavar="FILE", callback=_absolute_config, help="Site configuration (YAML)."
    )(command)


def _absolute_config(ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """The option of the command, else that of the program; absolute, for the daemon may live elsewhere."""
    named = value or ctx.find_root().params.get("config")
    return str(Path(named).expanduser().absolute()) if named else None


def confirm(question: str) -> None:
    """Ask on the terminal; a command that calls this has the option `--yes`.

    Raises:
        click.Abort: the answer is no.
        UsageError: the input has ended, as that of a program in the background.
    """
    try:
        click.confirm(question, abort=True, err=True)
    except click.Abort as abort:
        if isinstance(abort.__context__, EOFError):
            raise UsageError(f"cannot ask '{question}' because the input has ended: add --yes") from None
        raise


def duration(text: str) -> float:
    """A parameter's type: seconds from `90`, `1h 30m` or `HH:MM:SS`."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


class OneOf(click.Choice[str]):
    """A parameter's type: one of these words."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:  # noqa: ARG002 - its name is part of the call
        hint = did_you_mean(str(value), self.choices, f"known are {', '.join(self.choices)}")
        return f"no such word '{value}' ({hint})"


def of_kind(kind: Kind) -> Callable[[str], Any]:
    """A parameter's type: read as the option of a bag that has this kind of value."""

    def value(text: str) -> Any:
        try:
            return kind.parse(text, 0.0)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return value


def no_such_site(name: str, sites: Iterable[str]) -> UsageError:
    """The error for a name that is not among these sites."""
    known = list(sites)
    hint = did_you_mean(name, known, f"configured: {', '.join(known)}")
    return UsageError(f"no site '{name}' ({hint}){HOW_TO_ADD.get(name, '')}")


F = TypeVar("F", bound=Callable[..., object])


def size_options(command: F) -> F:
    for option in (
        click.option("--nodes", type=click.IntRange(1), metavar="N", help="Whole nodes of each task."),
        click.option(
            "--gpus", type=of_kind(GPUS), metavar="[TYPE:]N", help="GPUs of each task: 1, a100:2 or 0.5."
        ),
        click.option("--mem", type=of_kind(MEMORY), metavar="SIZE", help="Memory of each task, such as 4G."),
        click.option("--cpus", type=click.IntRange(1), metavar="N", help="Processors of each task."),
    ):
        command = option(command)
    return command


def chosen_task(
    *, cpus: int | None, mem: int | None, gpus: TaskGpus | None, nodes: int | None
) -> TaskSize | None:
    """Size of a task by the options; None: no option was given, or only `--gpus 0`."""
    if (cpus, mem, gpus, nodes) == (None, None, None, None):
        return None
    wanted = gpus or TaskGpus(1)
    return TaskSize(
        processors=cpus or 1,
        memory=mem,
        gpus=wanted.count if gpus else 0,
        gpu_type=wanted.type if gpus else "",
        nodes=nodes or 1,
    )


_ITEM = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def selector(text: str) -> str:
    """Bags; checked here for a clear error, and sent to the daemon as text."""
    try:
        check_selector(text.strip())
    except UsageError as error:
        raise click.BadParameter(str(error)) from None
    return text.strip()


def selector_argument(metavar: str, **more: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The argument `selector` (`more`: of click.argument); shells complete it by its words."""
    return click.argument(
        "selector",
        metavar=metavar,
        type=selector,
        shell_complete=lambda _ctx, _param, begun: [w for w in BAG_WORDS if w.startswith(begun)],
        **more,
    )


def selected(selector: str) -> list[int]:
    """The numbers of these bags; asked first, so that a wrong selector starts no daemon."""
    return [bag.id for bag in Reader(time.time).bags(selector)]


def check_tasks(bags: Sequence[api.BagView], numbers: Sequence[range] | None) -> None:
    """Raises UsageError: no bag has tasks of one of the ranges; None: no tasks are named."""
    most = max(bag.tasks for bag in bags)
    for some in numbers or ():
        if some.start >= most and len(bags) > 1:
            raise UsageError(f"--task: none of these bags has a task {some.start}")
        if some.start >= most:
            its = f"its tasks are 0 to {most - 1}" if most else "it has no tasks"
            raise UsageError(f"--task: bag {bags[0].id} has no task {some.start}; {its}")


def numbers(text: str) -> list[range]:
    """Task numbers: `7`, `1-10`, `1,3,5-7`."""
    return [_range(item.strip()) for item in text.split(",")]


def _range(item: str) -> range:
    match = _ITEM.fullmatch(item) if item.isascii() else None
    if match is None:
        raise click.BadParameter(f"'{item}' is not a number or a range; write 7, 1-10 or 1,3,5-7")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise click.BadParameter(f"'{item}' runs backwards; write {last}-{first}")
    return range(first, last + 1)


def with_key() -> bool:
    """Whether a key with a grant asks, which sees its own bags and neither pilots nor advice."""
    return bool(os.environ.get(KEY_VARIABLE))


def pilots_in_system(get: Asker) -> list[api.PilotRecord]:
    """The pilots that are queued or run; none with a key."""
    return [] if with_key() else get(api.GetPilots())
