"""5,000 × /bin/true on two slots: a whole `adaptor run` beside `xargs` and HyperQueue."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

from bench.hyperqueue_rate import hyperqueue_seconds
from bench.private_daemon import private_folder
from bench.stopwatch import seconds
from bench.table import Row

TASKS = 5_000
SLOTS = 2


def rows() -> Iterator[Row]:
    """xargs runs before and after, for the machine may be busier at one time than at another."""
    before = seconds(_xargs)
    adaptor = _adaptor_seconds()
    after = seconds(_xargs)
    xargs = (before + after) / 2
    hyperqueue = hyperqueue_seconds(TASKS, SLOTS)
    yield Row(f"xargs -P{SLOTS} -n1 /bin/true, {TASKS:,} times", f"{TASKS / xargs:,.0f}/s")
    ratio = xargs / adaptor
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
