"""Generic resources as Slurm prints them: `gpu:a100:4(S:0-1)`, `gpu:2`, `gpu:t4:2(IDX:0,2-3)`. Pure.

What `scontrol show node` tells beyond sinfo: memory, generic resources and features.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from adaptor.resources import Gpus
from backends.numbers import not_understood, understood, whole
from backends.observed.remembered import Remembered, decoded, lines_of
from backends.observed.rows import as_gpus, total, without
from backends.slurm.fields import parse_count


class License(msgspec.Struct, frozen=True, kw_only=True):
    total: int
    free: int


def parse_license_rows(text: str) -> dict[str, License]:
    """`scontrol show license -o`, by name.

    Raises:
        SchedulerError: a line is not what that command prints.
    """
    lines = [line for line in text.splitlines() if line.strip() and "No licenses" not in line]
    return dict(understood("scontrol show license", _license, line) for line in lines)


def _license(line: str) -> tuple[str, License]:
    values = dict(word.split("=", 1) for word in line.split() if "=" in word)
    total, free = whole(values["Total"]), whole(values["Free"])
    return values["LicenseName"], License(total=total, free=max(0, free))


def free_from(
    now: float,
    wanted: Mapping[str, int],
    there: Mapping[str, License],
    held: Iterable[tuple[float, Mapping[str, int]]],
) -> dict[str, float]:
    """Epoch seconds from which there are enough of each licence that is scarce now; `math.inf`: no end of a
    job will do.

    Args:
        held: by running job, its end and its licences.
    """
    ends = sorted(held, key=lambda job: job[0])
    late = {name: _from(name, count, there, ends) for name, count in wanted.items()}
    return {name: time for name, time in late.items() if time > now}


def _from(
    name: str, count: int, there: Mapping[str, License], ends: Iterable[tuple[float, Mapping[str, int]]]
) -> float:
    free = there[name].free if name in there else 0
    if free >= count:
        return 0.0
    for end, taken in ends:
        free += taken.get(name, 0)
        if free >= count:
            return end
    return float("inf")


GresCounts = Mapping[tuple[str, str], int]  # by name and type; `("gpu", "")` where the type has no name

_NONE = frozenset({"", "(null)", "N/A", "n/a", "NONE", "none"})
_ITEM = re.compile(r"(?:[^,()]|\([^()]*\))+")
_BRACKETS = re.compile(r"\([^()]*\)")
_IS_COUNT = re.compile(r"[0-9]+(?:\.[0-9]+)?[KMGT]?")


def gres_counts(text: str) -> dict[tuple[str, str], int]:
    """Counts by name and type, from `Gres`, `GresUsed`, a job's `GRES=` or the option `--gres`.

    An item without a number counts as one, as in `--gres`.

    Raises:
        ValueError: the text is no such list.
    """
    if text in _NONE:
        return {}
    items = _ITEM.findall(text)
    if ",".join(items) != text:
        raise ValueError(f"{text[:40]!r} is not a list of generic resources")
    found: Counter[tuple[str, str]] = Counter()
    for item in items:
        name, type, count = _item(_BRACKETS.sub("", item).removeprefix("gres:").removeprefix("gres/"))
        found[name, type] += count
    return {key: count for key, count in found.items() if count}


def _item(text: str) -> tuple[str, str, int]:
    name, *rest = [word for word in text.replace("=", ":").split(":") if word != "no_consume"]
    if not name or len(rest) > 2:
        raise ValueError(f"{text[:40]!r} is not a generic resource")
    if rest and _IS_COUNT.fullmatch(rest[-1]):
        count = parse_count(rest.pop())
    elif len(rest) == 2:
        raise ValueError(f"{text[:40]!r} has no number")
    else:
        count = 1
    return name, "".join(rest), count


def gpus_of(counts: GresCounts) -> Gpus:
    """The GPUs among them; shards of a GPU and all else are left out."""
    return as_gpus({type: count for (name, type), count in counts.items() if name == "gpu"})


_SHARDS = re.compile(r"(?:^|,)shard(?::([^:,()]+))?:[0-9]+\(([-0-9/,]+)\)")


def sharded_gpus(text: str) -> Gpus:
    """GPUs of which shards are in use, from `GresUsed`: of `gpu:0,shard:3(3/4,0/4)` one.

    Slurm gives them to no job as a whole. 22.05 prints no such counts and gives them anyway.
    """
    counts: Counter[str] = Counter()
    for type, shares in _SHARDS.findall(text):
        counts["" if type == "(null)" else type] += sum(
            share.partition("/")[0] not in ("-", "0") for share in shares.split(",")
        )
    return as_gpus(counts)


def parse_gpus(text: str) -> Gpus:
    """GPUs in a list of generic resources. Raises ValueError: the text is no such list."""
    return gpus_of(gres_counts(text)) if text not in _NONE else ()


def covers(have: GresCounts, wanted: GresCounts) -> bool:
    """Whether a node that has these can give those; without a type any will do."""
    return all(
        sum(each for (other, kind), each in have.items() if other == name and type in ("", kind)) >= count
        for (name, type), count in wanted.items()
    )


class NodeDetail(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Memory in bytes, as much of it as jobs may have."""

    memory: int
    allocated_memory: int
    gres: GresCounts
    gpus: Gpus
    """GPUs that are not drained."""
    gpus_used: Gpus
    features: frozenset[str]
    weight: int
    """Weight of the node: Slurm fills the nodes with lower weights first."""
    place: int
    """Place among nodes of the same weight, in the order of slurm.conf."""
    core: int = 1
    """Processors of a core: its threads, where each counts."""
    sockets: int = 1
    processors: int | None = None
    """Processors that jobs may have: without those of specialised cores; None: not shown."""


_KEYS = (
    *("CoresPerSocket", "CPUEfctv", "CPUTot", "Sockets"),
    "ActiveFeatures",
    "Gres",
    "GresDrain",
    "GresUsed",
    "RealMemory",
    "AllocMem",
    "MemSpecLimit",
    "Weight",
)
_VALUE = re.compile(rf" ({'|'.join(_KEYS)})=(\S*)")


def parse_node_details(printed: bytes, known: Remembered[NodeDetail] | None = None) -> dict[str, NodeDetail]:
    """`scontrol show node -a -d -o`, by the nodes' names. `known`: details of the last answer.

    Raises:
        SchedulerError: a line is not what that command prints.
    """
    names = list[str]()
    found = (known or Remembered()).of(_lasting_lines(printed, names), _detail)
    return dict(zip(names, found, strict=True))


_HEAD = b"NodeName="


def _lasting_lines(printed: bytes, names: list[str]) -> Iterator[list[bytes]]:
    """The part of each line that is read, behind the place of its node; `names` get the node's name."""
    for block in lines_of(printed):
        lines = [line for line in block if line.startswith(_HEAD) or b"No nodes" not in line]
        first = len(names)
        for line in lines:
            if not line.startswith(_HEAD):
                raise not_understood("scontrol show node", decoded(line))
            names.append(decoded(line[len(_HEAD) : line.find(b" ")]))
        yield [b"%d %b" % (place, _lasting(line)) for place, line in enumerate(lines, first)]


def _lasting(line: bytes) -> bytes:
    """The line without the load, the free memory, and the times from the boot on: they change, and are not
    read."""
    load, free = line.find(b" CPULoad="), line.find(b" FreeMem=")
    features, sockets, boot = line.find(b" Av", load), line.find(b" So", free), line.find(b" BootTime=")
    cores, held, all_held = (line.find(key) for key in (b" CoresPerSocket=", b" CPUAlloc=", b" CPUEfctv="))
    total = line.find(b" CPUTot=") if all_held < 0 else all_held
    if not 0 <= cores < held < total < load < features < free < sockets < boot:
        return line
    return line[cores:held] + line[total:load] + line[features:free] + line[sockets:boot]


def _detail(text: str) -> NodeDetail:
    place, _, line = text.partition(" ")
    return understood("scontrol show node", lambda line: _of_line(int(place), line), line)


def _of_line(place: int, line: str) -> NodeDetail:
    values: dict[str, str] = {}
    for key, value in _VALUE.findall(line):
        values.setdefault(key, value)  # later words may be part of a comment
    values = {key: value for key, value in values.items() if value}
    gres = gres_counts(values.get("Gres", ""))
    used = values.get("GresUsed", "")
    drained = gpus_of(gres_counts(values.get("GresDrain", "")))
    text = values.get("ActiveFeatures", "")
    there, sockets = (whole(values.get(key, "1")) for key in ("CPUTot", "Sockets"))
    cores = sockets * whole(values.get("CoresPerSocket", "1"))
    return NodeDetail(
        memory=_mebibytes(values, "RealMemory") - _mebibytes(values, "MemSpecLimit"),
        allocated_memory=_mebibytes(values, "AllocMem"),
        gres=gres,
        gpus=without(gpus_of(gres), drained),
        gpus_used=total([parse_gpus(used), sharded_gpus(used)]),
        features=(frozenset() if text == "(null)" else frozenset(filter(None, text.split(",")))),
        weight=whole(values.get("Weight", "1")),
        place=place,
        core=there // cores if cores and there % cores == 0 else 1,
        sockets=sockets,
        processors=whole(values["CPUEfctv"]) if "CPUEfctv" in values else None,
    )


def _mebibytes(values: Mapping[str, str], key: str) -> int:
    return whole(values.get(key, "0").rstrip("M")) * 2**20
