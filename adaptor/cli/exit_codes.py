"""Exit codes of bags and of errors; an error is one line on stderr, and one JSON value with --json."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence

import click

from adaptor import api
from adaptor.cli.printing import printable
from adaptor.errors import AdaptorError, ObstaclesError, os_problem

SOME_TASKS_FAILED = 3
HALTED = 4
TIME_UP = 124
INTERRUPTED = 130
BROKEN_PIPE = 1  # click's exit code


def exit_code(bags: Sequence[api.BagView]) -> int:
    """Exit code for bags: 0: all tasks done; 3: some failed or were cancelled; 4: a bag has paused by
    itself."""
    if any(bag.halted for bag in bags):
        return HALTED
    return SOME_TASKS_FAILED if any(bag.failed or bag.cancelled for bag in bags) else 0


def guarded(action: Callable[[], object], arguments: Sequence[str]) -> int:
    """The exit code of `action`: what it returns where that is an integer, else that of its error.

    With `$ADAPTOR_TRACEBACK` an internal error keeps its traceback.
    """
    try:
        result = action()
        if sys.stdout is not None:  # it was closed
            sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except BrokenPipeError:
        # The reader has gone, as in `adaptor results | head`: nothing is left to say, or to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (KeyboardInterrupt, click.Abort):
        return _told("interrupted", INTERRUPTED, arguments)
    except click.ClickException as error:
        message = error.format_message().rstrip(".")
        context = getattr(error, "ctx", None)
        return _told(
            (f"{message} (see {context.command_path} --help)" if context is not None else message),
            error.exit_code,
            arguments,
        )
    except ObstaclesError as error:
        return _told(error.problem, error.exit_code, arguments, error.lines)
    except AdaptorError as error:
        return _told(str(error), error.exit_code, arguments)
    except OSError as error:
        return _told(os_problem(error), 1, arguments)
    except Exception as error:
        if os.environ.get("ADAPTOR_TRACEBACK"):
            raise
        problem = (
            f"internal error: {type(error).__name__}: {error}; set ADAPTOR_TRACEBACK=1 for the traceback"
        )
        return _told(problem, 1, arguments)


def _told(message: str, code: int, arguments: Sequence[str], details: Sequence[str] = ()) -> int:
    """Print an error; return the exit code. `details`: lines below the message."""
    line, *below = (" ".join(text.split()) for text in (message, *details))
    click.echo(f"adaptor: {printable(line)}", err=True)
    for text in below:
        click.echo(f"  {printable(text)}", err=True)
    if "--json" in arguments:
        click.echo(json.dumps({"error": "; ".join((line, *below))}))
    return code
