"""The entry point `adaptor`: the commands by section."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Sequence
from typing import Any

import click

from adaptor import __version__
from adaptor.cli.command_groups import LazyGroup, show_help
from adaptor.cli.exit_codes import guarded
from adaptor.plugins import AGENTS, EXPERIMENTS, MCP

SECTIONS = {
    "Every day": {
        "run": "adaptor.cli.bags.submit:run",
        "submit": "adaptor.cli.bags.submit:submit",
        "append": "adaptor.cli.bags.submit:append",
        "plan": "adaptor.cli.bags.plan:plan",
        "status": "adaptor.cli.bags.status:status",
        "watch": "adaptor.cli.bags.watch:watch",
        "results": "adaptor.cli.bags.results:results",
        "why": "adaptor.cli.bags.why:why",
        "report": "adaptor.cli.bags.report:report",
        "pause": "adaptor.cli.bags.changing:pause",
        "resume": "adaptor.cli.bags.changing:resume",
        "change": "adaptor.cli.bags.changing:change",
        "cancel": "adaptor.cli.bags.changing:cancel",
        "retry": "adaptor.cli.bags.changing:retry",
        "forget": "adaptor.cli.bags.changing:forget",
    },
    "Operating": {
        "daemon": "adaptor.cli.operating.daemon:daemon",
        "when": "adaptor.cli.operating.when:when",
        "site": "adaptor.cli.operating.sites:site",
        "evidence": "adaptor.cli.operating.evidence:evidence",
        "dashboard": "adaptor.cli.operating.dashboard:dashboard",
        "shims": "adaptor.shims.installing:shims",
    },
    "Credits": {"quote": "adaptor.cli.bags.quote:quote", "credits": "adaptor.cli.credits:credits"},
}
"""The commands in the order in which help shows them."""

ADDED = {"Operating": "adaptor.cli.operating", "Research": "adaptor.cli.research"}
"""Groups of entry points by which other packages add commands, by heading."""

ELSEWHERE = {"mcp": MCP, "reclaim": AGENTS, "replay": EXPERIMENTS, "trace": EXPERIMENTS}
"""Commands of packages that need not be installed, with the package."""

_NARROWEST, _WIDEST = 30, 100  # columns of help


class Program(LazyGroup):
    """The whole program: errors become one line and an exit code, never a traceback."""

    def main(self, args: Sequence[str] | None = None, **extra: Any) -> Any:  # type: ignore[override]
        arguments = list(sys.argv[1:] if args is None else args)
        standalone = extra.pop("standalone_mode", True)
        extra["prog_name"] = "adaptor"  # The name in messages and completion, however it was started.
        columns = shutil.get_terminal_size().columns
        extra.setdefault("terminal_width", max(_NARROWEST, min(columns, _WIDEST) - 2))

        def action() -> Any:
            return super(Program, self).main(arguments, standalone_mode=False, **extra)

        code = guarded(action, arguments)
        return sys.exit(code) if standalone else code


@click.group(
    cls=Program,
    sections=SECTIONS,
    added=ADDED,
    elsewhere=ELSEWHERE,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--config",
    metavar="FILE",
    help="Site configuration (default: $ADAPTOR_CONFIG, then ~/.config/adaptor/config.yaml).",
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def program(ctx: click.Context, config: str | None) -> None:
    """Run thousands of independent commands on a cluster. You write no job scripts.

    A file with one command per line is a bag; each line is a task. The adaptor reads the batch scheduler's
    queue, submits jobs whose processors and walltime fit into its free slots, and runs the tasks inside.

    \b
    Try it on this machine:
      printf 'echo %s\\n' one two three > hello.bag
      adaptor run hello.bag
    On a cluster's login node:
      adaptor site init && adaptor site check
      adaptor submit hello.bag
      adaptor watch

    Bags are named by number, name, `last`, `all`, `recent`, or lists such as `1-10` and `1,3,5-7`.

    Exit codes: 0 all tasks done, 1 infrastructure, 2 usage, 3 some tasks failed, 4 a bag has paused
    by itself, 124 timeout of `watch`, 130 interrupted.
    """
    del config  # Commands that start a daemon or read sites take it from the context.
    show_help(ctx)


def main() -> None:
    """Ends the process with the command's exit code. What a terminal's encoding lacks is shown as `?`, and a
    closed standard input is an empty one."""
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BytesIO())
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    program.main()
