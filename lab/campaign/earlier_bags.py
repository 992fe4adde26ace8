"""Distance of a bag's mean runtime to the forecast by earlier bags of its kind, on traces of real jobs.

Three or more completed jobs of one user, executable and size stand for a bag, if each is submitted within
half an hour of the one before it. The forecast by bags that had ended before it is computed by the product's
own rule (`adaptor.kinds.earlier`).

    python -m lab.campaign.earlier_bags ../shared/traces/CTC-SP2-1996-3.1-cln.swf.gz

Where a trace has no executables (SDSC BLUE), or a number of its own for nearly each job (SDSC SP2), kinds are
told by user and size, which mixes programs that a command would tell apart.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import numpy as np

from adaptor.bag_spec import TaskKind
from adaptor.kinds.earlier import KEPT, earlier_tasks, record_of
from adaptor.runtimes.known import EarlierTasks
from adaptor_simulation.traces.swf import Field, Trace
from adaptor_simulation.traces.swf_read import read_trace

_GAP = 1800.0
"""Seconds between two submissions of a bag, at most."""
_FEWEST = 3
_COMPLETED = (1, -1)
"""Values of the field STATUS; -1: the trace does not say."""
KEYS = {
    "user": (Field.USER,),
    "user and size": (Field.USER, Field.ALLOCATED),
    "user, executable": (Field.USER, Field.APPLICATION),
    "user, executable, size": (Field.USER, Field.APPLICATION, Field.ALLOCATED),
}


class TracedBag(msgspec.Struct):
    kind: tuple[float, ...]
    first: float
    """The first submission, seconds."""
    last: float
    end: float
    """End of its last job."""
    runtimes: list[float]


class Foretold(msgspec.Struct, frozen=True):
    """A bag of a known kind."""

    before: int
    """Bags of its kind that had ended."""
    earlier: EarlierTasks
    mean: float
    """Seconds, of its jobs."""
    longest: float

    @property
    def error(self) -> float:
        """The factor, 1 or more, between its mean and what was foretold."""
        return math.exp(abs(math.log(self.mean / self.earlier.mean)))


def bags_of(trace: Trace, key: Iterable[Field]) -> list[TracedBag]:
    """In the order of their first submissions."""
    columns = [trace.column(field) for field in (*key, Field.SUBMIT, Field.WAIT, Field.RUN, Field.STATUS)]
    open_bags: dict[tuple[float, ...], TracedBag] = {}
    found: list[TracedBag] = []
    for row in np.argsort(trace.column(Field.SUBMIT), kind="stable").tolist():
        *kind, submit, wait, run, status = (float(column[row]) for column in columns)
        if run <= 0 or status not in _COMPLETED:
            continue
        end = submit + max(0.0, wait) + run
        bag = open_bags.get(tuple(kind))
        if bag is None or submit - bag.last > _GAP:
            bag = open_bags[tuple(kind)] = TracedBag(tuple(kind), submit, submit, end, [])
            found.append(bag)
        bag.last, bag.end = submit, max(bag.end, end)
        bag.runtimes.append(run)
    return [bag for bag in found if len(bag.runtimes) >= _FEWEST]


def foretold(bags: Iterable[TracedBag]) -> Iterator[Foretold]:
    """Bags of which earlier ones had ended."""
    by_kind: dict[tuple[float, ...], list[TracedBag]] = defaultdict(list)
    for bag in bags:
        known = sorted(
            (each for each in by_kind[bag.kind] if each.end < bag.first), key=lambda each: -each.end
        )
        records = [record_of(len(each.runtimes), each.runtimes, ()) for each in known[:KEPT]]
        earlier = earlier_tasks([TaskKind("k", "k", 1)], {"k": {"here": records}}, "here")
        if earlier is not None:
            mean = math.fsum(bag.runtimes) / len(bag.runtimes)
            yield Foretold(len(known), earlier, mean, max(bag.runtimes))
        by_kind[bag.kind].append(bag)


def line(name: str, bags: int, found: list[Foretold]) -> str:
    errors = np.array([each.error for each in found])
    quantiles = np.quantile(errors, (0.5, 0.68, 0.9, 0.95))
    within = np.mean([each.error <= each.earlier.factor for each in found])
    enough = np.mean([each.longest <= each.earlier.high for each in found])
    shares = (np.mean(errors <= 2), within, enough, np.mean(errors > 10))
    told = [f"{each:6.2f}" for each in quantiles] + [f"{100 * each:6.1f} %" for each in shares]
    return f"{name:24} {len(found):6,} of {bags:6,}  {' '.join(told)}"


HEAD = (
    f"{'kinds by':24} {'bags foretold':>16}    50 %   68 %   90 %   95 %     <= 2   factor  longest     > 10"
)
"""Quantiles of the error; then how many have an error of at most 2, of at most the factor that the rule
tells, how many have no task beyond what 95 % of the earlier ones took, and how many an error of more
than 10."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("trace", type=Path, nargs="+")
    for path in parser.parse_args().trace:
        trace = read_trace(path, lenient=True)
        print(f"{path.name}\n{HEAD}")
        for name, key in KEYS.items():
            if Field.APPLICATION in key and len(np.unique(trace.column(Field.APPLICATION))) < 2:
                continue
            bags = bags_of(trace, key)
            found = list(foretold(bags))
            if found:
                print(line(name, len(bags), found))
        if found:
            for few, many in ((1, 1), (2, 3), (4, 9), (10, 10**9)):
                some = [each for each in found if few <= each.before <= many]
                label = f"  after {few}" + (
                    f" to {many}" if few < many < 10**9 else " or more" if many > few else ""
                )
                if some:
                    print(line(label, len(found), some))


if __name__ == "__main__":
    main()
