"""5,000 × /bin/true on two slots: a whole `adaptor run` beside `xargs` and HyperQueue."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Iterator

from bench.hyperqueue_rate import hyperqueue_seconds
from bench.private_daemon import private_folder
from bench.stopwatch import seconds
from bench.table import Row

TASKS = 5_000
SLOTS = 2
PAIRS = 3


def rows() -> Iterator[Row]:
    """xargs and the adaptor in turn, for the machine is busier at one time than at another."""
    pairs = [(seconds(_xargs), _adaptor_seconds()) for _ in range(PAIRS)]
    hyperqueue = hyperqueue_seconds(TASKS, SLOTS)
    xargs = statistics.median(pair[0] for pair in pairs)
    adaptor = statistics.median(pair[1] for pair in pairs)
    ratio = statistics.median(pair[0] / pair[1] for pair in pairs)
    yield Row(f"xargs -P{SLOTS} -n1 /bin/true, {TASKS:,} times, median of {PAIRS}", _rate(xargs))
    yield Row(
        "adaptor run, start of the daemon included", f"{_rate(adaptor)} = {ratio:.2f} × xargs", "≥ 0.50"
    )
    if hyperqueue is None:
        yield Row("HyperQueue", "not installed")
    else:
        yield Row("HyperQueue", f"{_rate(hyperqueue)} = {xargs / hyperqueue:.2f} × xargs")


def _rate(took: float) -> str:
    return f"{TASKS / took:,.0f}/s"


def _xargs() -> None:
    numbers = "\n".join(map(str, range(TASKS))).encode()
    # `true` does not mind the number that `-n1` hands to it.
    subprocess.run(["xargs", f"-P{SLOTS}", "-n1", "/bin/true"], input=numbers, check=True)


def _adaptor_seconds() -> float:
    with private_folder(SLOTS) as place:
        bag = place.folder / "true.jsonl"
        bag.write_text(f"{json.dumps({'argv': ['/bin/true']})}\n" * TASKS)
        return seconds(lambda: place.adaptor("run", str(bag)))
