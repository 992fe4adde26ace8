"""The batch scripts of pilots: what they are made of, how they are submitted, what the answer means."""

from __future__ import annotations

import re
import shlex
import string
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from adaptor.private_files import write_private
from adaptor.reports import Remedy
from backends.base import PilotOrder, SchedulerError, SubmitRefused, SubmitUncertain
from backends.commands import CommandAnswer, CommandHung, Commands
from backends.machines.base import Machine

_PROLOGUE = Path(__file__).with_name("prologue.template")
_ARRAY = Path(__file__).with_name("array.template")


class _Template(string.Template):
    """`$` is the shell's own, therefore another mark for what we fill in."""

    delimiter = "@@"


def render(
    template: Path,
    *,
    processors: int,
    command: Sequence[str],
    environment: Mapping[str, str],
    prologue: str,
    worker: Sequence[str],
    index: str = "",
    **own: str,
) -> str:
    """The text of a script.

    Args:
        command: how it is submitted, for the person who reads the script.
        environment: variables for the workers; nothing secret.
        prologue: shell lines that run once before the workers, verbatim.
        worker: the program and its arguments that run on each node.
        index: of an array, as the shell computes the index of one of its jobs from 0 on; empty: it is none.
        own: what only this scheduler's template asks for.
    """
    # The site's lines, verbatim, and what makes their effect known.
    lines = "\n" + fill(_PROLOGUE, prologue=prologue.strip("\n")).rstrip("\n") if prologue.strip() else ""
    exports = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    if index:
        exports.append(fill(_ARRAY, index=index).rstrip("\n"))
    return fill(
        template,
        processors=str(processors),
        command=shlex.join(command).replace("\n", " "),
        exports="\n".join(exports),
        prologue=lines,
        worker=shlex.join(worker),
        **own,
    )


def fill(template: Path, **values: str) -> str:
    """The text of a template with its `@@name` replaced."""
    return _Template(template.read_text(encoding="utf-8")).substitute(values)


def submit(
    machine: Machine, commands: Commands, command: Sequence[str], script: Path, text: str
) -> CommandAnswer:
    """Write the script and run the command that submits it.

    Raises:
        SubmitUncertain: the command hung.
        SchedulerError: the script cannot be written or the command cannot be run; nothing was submitted.
    """
    machine.write_private(script, text.encode())
    try:
        return commands.run(*command)
    except CommandHung as error:
        raise SubmitUncertain(str(error)) from error


_OF_SIZE = re.compile(
    r"(time ?limit|wall ?time|run ?time|\b(seconds?|minutes?|hours?|days?|long|longer|longest|shorter|cpus?"
    r"|ncpus|cores?|processors?|nodes?|memory|mem|gpus?|tasks?|size|large|larger|small|smaller|wide|limits?"
    r"|exceeds?|exceeded|max|maximum|min|minimum|resources?)\b)",
    re.IGNORECASE,
)
_OF_TERMS = re.compile(
    r"\b(accounts?|project|charge ?codes?|allocation|qos|wckey|queue|partition|reservation|licen[cs]es?"
    r"|permission|permitted|denied|authori[sz]ed|user|group|member|credentials?|password|expired|e-?mail"
    r"|options?|directives?|comment|--[a-z][-a-z]+)\b",
    re.IGNORECASE,
)


def remedy_in_words(said: str) -> Remedy:
    """The change by which a request might be taken, from the free text of a site's hook or submit plugin.

    A sentence about accounts, queues, options or rights that names no size is no matter of size. All others
    may be.
    """
    terms = _OF_TERMS.search(said) and not _OF_SIZE.search(said)
    return Remedy.OTHER if terms else Remedy.SMALLER


class Submitter(msgspec.Struct, frozen=True, kw_only=True):
    """A scheduler's submit command, and how to read its answers."""

    program: str
    scheduler: str  # its name for people
    id_in: Callable[[str], str | None]  # the id of a job in what the command printed; None: there is none
    refused: Callable[[CommandAnswer], bool]
    """Whether an answer of failure says that the scheduler does not take the request."""
    never_arrived: tuple[str, ...]  # words of an answer after which the request is certainly not queued
    no_answer: tuple[str, ...] = ()  # words after which it may be, whatever else is said
    hint: str = ""
    remedy: Callable[[str], Remedy] = remedy_in_words
    """Finds the change by which the scheduler might take a request, from its message on the refused one."""

    def accepted_id(self, answer: CommandAnswer) -> str:
        """The job's id.

        Raises:
            SubmitRefused: the scheduler said no.
            SubmitUncertain: the answer leaves open whether the request is queued.
            SchedulerError: the scheduler was not reached, so the request is certainly not queued.
        """
        if answer.status == 0:
            id = self.id_in(answer.output)
            if id is None:
                raise SubmitUncertain(f"{self.program} printed no job id but {answer.output.strip()[:200]!r}")
            return id
        problem = f"{self.program} failed with status {answer.status}: {answer.complaint}"
        if any(words in answer.errors for words in self.no_answer):
            raise SubmitUncertain(problem)
        if any(words in answer.errors for words in self.never_arrived):
            raise SchedulerError(problem)
        if answer.status < 0 or not self.refused(answer):
            raise SubmitUncertain(problem)
        raise SubmitRefused(
            f"{self.scheduler} refused the request: {answer.complaint}{self.hint}",
            self.remedy(f"{answer.errors}\n{answer.output}"),
        )


def last_line_with(pattern: str) -> Callable[[str], str | None]:
    """Finds the last line that matches: sites print greetings before an id."""
    line_of = re.compile(pattern)

    def find(output: str) -> str | None:
        lines = (line.strip() for line in reversed(output.splitlines()))
        return next((line for line in lines if line_of.fullmatch(line)), None)

    return find


_TEMPLATE = Path(__file__).parent / "local" / "pilot.template"


def with_prologue(
    order: PilotOrder, prologue: str, write: Callable[[Path, bytes], None] = write_private
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The command and the environment of an order's worker; writes the script that it may need.

    `write`: how a 0600 file is written where the pilot's folder lies.

    Raises OSError: the pilot's folder cannot be written; or what `write` raises.
    """
    if not prologue.strip():
        return order.worker, order.environment
    script = order.directory / "pilot.sh"
    before = order.directory / "env.before"
    text = string.Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(prologue=prologue.rstrip("\n"))
    write(script, text.encode())
    write(before, b"")  # so that it is ours alone when the script writes to it
    return ("/bin/sh", str(script), *order.worker), {**order.environment, "ADAPTOR_ENV_BEFORE": str(before)}
