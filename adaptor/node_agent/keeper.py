"""Lends one node: `python -m adaptor.node_agent.keeper ORDER`, started there through the site's launcher.

It claims the node, detaches, and keeps the worker until its time is up, its work is done, or somebody
wants the node. The command returns as soon as the node is claimed (exit code 0, one line on stdout), or
says on stderr why it is not: with REFUSED certainly nothing was started. The standard library only.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

from adaptor.node_agent.claiming import Claim, RefusedError, claim
from adaptor.node_agent.keeping import keep
from adaptor.node_agent.lease import lease_file
from adaptor.node_agent.order import REFUSED, Order, read_order
from adaptor.processes.detaching import Answer, in_background
from adaptor.processes.notes import END, note_path, write_patiently
from adaptor.processes.supervisor import SIGNALS

_CLAIMED = "lent "


def main(arguments: list[str]) -> int:
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        path = Path(arguments[0])
        order = read_order(path)
    except (IndexError, OSError, ValueError) as error:
        sys.stderr.write(f"the order cannot be read: {error} (is its folder shared with the nodes?)\n")
        return REFUSED
    answer = in_background(lambda answer: _lend(order, path.parent, answer))
    if answer.startswith(_CLAIMED):
        print(answer)
        return 0
    sys.stderr.write(f"{answer or 'the keeper died before it had claimed the node'}\n")
    return REFUSED if answer else 1


def _lend(order: Order, notes: Path, answer: Answer) -> None:
    started = time.time()
    try:
        claimed = claim(order, notes, started)
    except (RefusedError, OSError) as error:
        answer(str(error))
        return
    answer(f"{_CLAIMED}{order['node']} {order['tag']} {claimed.lease['keeper']['pid']}")
    _keep(order, claimed, notes, started)


def _keep(order: Order, claimed: Claim, notes: Path, started: float) -> None:
    end = keep(order, claimed, started)
    write_patiently(note_path(notes, order["tag"], END), end)
    claimed.place.remove(lease_file(order["node"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
