"""Frees a donated node for a local job: `python -I -m adaptor_donation_agents.reclaim NODE --job ID`.

The scheduler's prolog runs it. It needs no daemon, and no file system but the node's own. The exit code is
always 0: a prolog that fails takes the node out of service. Errors go to stderr and to the system's log.
The standard library only.
"""

from __future__ import annotations

import argparse
import sys
import time

from adaptor.defaults import RUNTIME_DIRECTORY
from adaptor_donation_agents.folders import UnsafeError
from adaptor_donation_agents.free_node import Reclaim, reclaim
from adaptor_donation_agents.marks import offer_node, take_node
from adaptor_donation_agents.records import CANCELLED, RECLAIMED, check_job, check_name

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
        import syslog

        syslog.openlog("adaptor-reclaim", 0, syslog.LOG_DAEMON)
        for problem in problems:
            print(f"adaptor: {problem}", file=sys.stderr)
            syslog.syslog(syslog.LOG_WARNING, problem)
    return 0


def answer(options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Returns what was done and what went wrong, in sentences."""
    began = time.monotonic()
    node, runtime = options.node, options.runtime
    try:
        check_name(options.node)
        if options.job:
            check_job(options.job)
        if options.cancel:
            check_name(options.cancel)
        if options.offer:
            offer_node(runtime, node, options.job)
            return [], []
        marking = take_node(runtime, node, options.job, options.user) if options.job else []
        wanted = Reclaim(
            runtime, node, CANCELLED if options.cancel else RECLAIMED, options.job, options.cancel
        )
        lines, problems = reclaim(wanted, began, options.timeout)
        return lines, marking + problems
    except (UnsafeError, ValueError, OSError) as error:
        return [], [f"{node}: {error}"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m adaptor_donation_agents.reclaim", description=__doc__)
    parser.add_argument("node")
    parser.add_argument("--job", default="", help="the local job that takes the node, until --offer")
    parser.add_argument("--offer", action="store_true", help="the job has ended: the node may be used again")
    parser.add_argument("--cancel", default="", metavar="TAG", help="end this use only")
    parser.add_argument("--timeout", type=float, default=TIMEOUT, metavar="SECONDS")
    parser.add_argument("--runtime", default=RUNTIME_DIRECTORY, metavar="FOLDER")
    parser.add_argument("--user", type=int, action="append", default=[], help="an id of who may use it")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
