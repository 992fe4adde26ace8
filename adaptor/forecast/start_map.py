"""The wait of a new request over its processors and its walltime, from one reading of a queue. Pure."""

from __future__ import annotations

import math

from adaptor.forecast.asked import AskedRequest
from adaptor.forecast.asked_at import request_at, why_never
from adaptor.forecast.start import QueueFutures, StartRequest
from adaptor.model import Estimate, QueueState
from adaptor.units import round_down

WALLTIMES = (900.0, 3600.0, 4 * 3600.0, 12 * 3600.0, 86400.0, 3 * 86400.0, 7 * 86400.0)
_USUAL = 3 * 86400.0  # seconds that requests run at most where no limit is known
_MOST_SIZES = 10


def walltimes(most: float = math.inf) -> list[float]:
    """Walltimes that are shown, seconds, up to a limit, which is shown too."""
    most = most if most < math.inf else _USUAL
    return [*(each for each in WALLTIMES if each < most), most]


def sizes(most: int, step: int = 1) -> list[int]:
    """Processors that are shown: powers of two of the step, of four where these are many, and the most.

    Args:
        step: of which requests are multiples: whole nodes, cores.
    """
    most = max(step, round_down(most, step))
    for factor in (2, 4, 10, 100):
        count = math.ceil(math.log(most // step, factor) - 1e-9) if most > step else 0
        found = [step * factor**power for power in range(count)]
        if len(found) < _MOST_SIZES or factor == 100:
            break
    return [*found, most]


def start_of(
    futures: QueueFutures, processors: int, tr: float, queue: QueueState, node: int, at: float
) -> Estimate | None:
    """Forecast start of such a request, as `adaptor when -p -t` shows it; None: never, or no start can be
    foreseen.

    Args:
        node: processors of a node where only whole nodes are given; else 1.
    """
    request: StartRequest = request_at(AskedRequest(processors=processors, tr=tr), queue, node)
    return None if why_never(request, queue) else futures.request(request, at).start
