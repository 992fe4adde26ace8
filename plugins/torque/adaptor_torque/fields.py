"""Single values as Torque prints them, beyond those of `backends.pbs.fields`.

Raises (every function):
    ValueError: the text is not of that form.
"""

from __future__ import annotations

from collections import Counter

from backends.numbers import whole
from backends.pbs.fields import amounts_of
from backends.pbs.rows import PbsChunk

_PROPERTY = "neednodes"
"""The resource under which nodes have their properties."""
_GPU_MODES = frozenset(
    {"default", "exclusive", "exclusive_process", "exclusive_thread", "reseterr", "shared"}
)


def parse_indices(text: str) -> int:
    """How many numbers `0-3,5` names."""
    count = 0
    for part in text.split(","):
        first, _, last = part.partition("-")
        count += whole(last or first) - whole(first) + 1
    return count


def parse_exec_host(text: str) -> dict[str, int]:
    """Processors by node: `n1/0+n1/1+n2/0` (Torque up to 4), `n1/0-1,3+n2/0` (since 5)."""
    held: Counter[str] = Counter()
    for part in text.split("+"):
        node, _, indices = part.strip().rpartition("/")
        held[node] += parse_indices(indices)
    return dict(held)


def parse_holders(text: str) -> dict[str, int]:
    """Processors by job, of a node: `0/12.srv, 1/12.srv` (up to 4), `0-3,5/12.srv,4/13.srv` (since 5)."""
    held: Counter[str] = Counter()
    indices: list[str] = []
    for word in text.replace(" ", "").split(","):
        index, slash, job = word.partition("/")
        indices.append(index)
        if slash:
            held[job] += parse_indices(",".join(indices))
            indices = []
    return dict(held)


def parse_exec_gpus(text: str) -> dict[str, int]:
    """GPUs by node: `n1-gpu/0+n1-gpu/1`; several in one as in `exec_host`."""
    held: Counter[str] = Counter()
    for part in text.split("+"):
        node, _, indices = part.strip().rpartition("/")
        held[node.removesuffix("-gpu")] += parse_indices(indices)
    return dict(held)


def parse_wanted(text: str) -> tuple[PbsChunk, ...]:
    """The parts of a node specification: `2:ppn=4+1:ppn=3:fast:gpus=1+n7` (pbs_resources(7)).

    Other words are the properties of nodes, or the mode of GPUs.
    """
    return tuple(_chunk(*part.split(":")) for part in text.split("+"))


def _chunk(first: str, *rest: str) -> PbsChunk:
    numbers = dict(word.split("=", 1) for word in (first, *rest) if "=" in word)
    named = () if first.isdecimal() or "=" in first else (("host", first),)
    wanted = ((_PROPERTY, word) for word in rest if "=" not in word and word not in _GPU_MODES)
    return PbsChunk(
        count=whole(first) if first.isdecimal() else 1,
        each=amounts_of(whole(numbers.get("ppn", "1")), 0, whole(numbers.get("gpus", "0"))),
        traits=(*named, *wanted),
    )
