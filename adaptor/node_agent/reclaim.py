"""Takes a node back for a local job: `python -I -m adaptor.node_agent.reclaim NODE --job ID`.

It is run by the scheduler's prolog and needs nobody else: no daemon, no file system but the node's own.
The exit code is always 0, for a prolog that fails would take the node out of service; what went wrong is
said on stderr and in the system's log. The standard library only.
"""

from __future__ import annotations

import argparse
import sys
import time

from adaptor.defaults import RUNTIME_DIRECTORY
from adaptor.node_agent.everyone import Reclaim, reclaim
from adaptor.node_agent.lease import CANCELLED, RECLAIMED
from adaptor.node_agent.names import check_job, check_name
from adaptor.node_agent.offering import offer, take
from adaptor.node_agent.runtime import UnsafeError

TIMEOUT = 5.0


def main(arguments: list[str]) -> int:
    try:
        options = _parser().parse_args(arguments)
    except SystemExit:
        return 0
    lines, problems = answer(options)
    for line in lines:
        print(line)
    if problems:
        _complain(problems)
    return 0


def answer(options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """What was done, and what went wrong, in sentences."""
    began = time.monotonic()
    node, runtime = options.node, options.runtime
    try:
        _check(options)
        if options.offer:
            offer(runtime, node, options.job)
            return [], []
        marking = take(runtime, node, options.job, options.user) if options.job else []
        wanted = Reclaim(
            runtime, node, CANCELLED if options.cancel else RECLAIMED, options.job, options.cancel
        )
        lines, problems = reclaim(wanted, began, options.timeout)
        return lines, marking + problems
    except (UnsafeError, ValueError, OSError) as error:
        return [], [f"{node}: {error}"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m adaptor.node_agent.reclaim", description=__doc__)
    parser.add_argument("node")
    parser.add_argument("--job", default="", help="for which the node is kept from being lent")
    parser.add_argument("--offer", action="store_true", help="the job has ended: the node may be lent again")
    parser.add_argument("--cancel", default="", metavar="TAG", help="end this lease only")
    parser.add_argument("--timeout", type=float, default=TIMEOUT, metavar="SECONDS")
    parser.add_argument("--runtime", default=RUNTIME_DIRECTORY, metavar="FOLDER")
    parser.add_argument("--user", type=int, action="append", default=[], help="who lends nodes, by number")
    return parser


def _check(options: argparse.Namespace) -> None:
    """Raises ValueError."""
    check_name(options.node)
    if options.job:
        check_job(options.job)
    if options.cancel:
        check_name(options.cancel)


def _complain(problems: list[str]) -> None:
    import syslog

    syslog.openlog("adaptor-reclaim", 0, syslog.LOG_DAEMON)
    for problem in problems:
        print(f"adaptor: {problem}", file=sys.stderr)
        syslog.syslog(syslog.LOG_WARNING, problem)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
