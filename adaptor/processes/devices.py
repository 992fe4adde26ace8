"""The GPUs that the scheduler gave a pilot on this node, and how a task learns which of them are its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping

VARIABLES = (
    *("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"),
    *("ZE_AFFINITY_MASK", "GPU_DEVICE_ORDINAL"),
)
"""Environment variables that the libraries of NVIDIA, AMD and Intel read."""
WHERE_NONE_IS_SET = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")
"""The others choose again among the devices that are seen."""
_NONE = frozenset({"", "NoDevFiles", "-1", "none", "void"})  # words of schedulers and containers for: no GPU


class Devices:
    """The GPUs of a worker, in an order that stays. Ids are passed on as they came, UUIDs too."""

    def __init__(self, by_variable: Mapping[str, tuple[str, ...]]) -> None:
        """`by_variable`: the ids of the same GPUs in the terms of each variable; the first names them."""
        self._by_variable = dict(by_variable)
        self.ids: tuple[str, ...] = next(iter(self._by_variable.values()), ())

    def of_task(self, places: Collection[int]) -> dict[str, str]:
        """The variables of a task that holds these; a task that holds none sees none.

        Without GPUs on the node, the variables are left as they are.
        """
        if not self.ids:
            return {}
        told = {name: _joined(ids, places) for name, ids in self._by_variable.items()}
        return {**told, "ADAPTOR_GPUS": _joined(self.ids, places)}


def devices_of(environment: Mapping[str, str]) -> Devices:
    """The GPUs that a worker's environment names: for the libraries, else for the scheduler."""
    named = {name: found for name in VARIABLES if (found := ids_of(environment.get(name, "")))}
    if named:
        count = len(next(iter(named.values())))
        return Devices({name: ids for name, ids in named.items() if len(ids) == count})
    for name in ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS"):
        if ids := ids_of(environment.get(name, "")):
            return _unnamed(ids)
    if "SLURM_STEP_ID" in environment:  # Slurm names all that it gives
        return Devices({})
    return _unnamed(_counted(environment))


def of_worker(held: Collection[str] | None, inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of a worker that holds these devices; None: the site has none, so nothing changes."""
    if held is None:
        return dict(inherited)
    kept = {name: value for name, value in inherited.items() if name not in VARIABLES}
    return {**kept, **dict.fromkeys(WHERE_NONE_IS_SET, ",".join(held)), "ADAPTOR_GPUS": str(len(held))}


def _unnamed(ids: tuple[str, ...]) -> Devices:
    return Devices(dict.fromkeys(WHERE_NONE_IS_SET, ids) if ids else {})


def ids_of(text: str) -> tuple[str, ...]:
    """Ids of GPUs in a list, each once: a GPU that is named twice is still one."""
    if text.strip() in _NONE:
        return ()
    found: dict[str, None] = {}
    for word in filter(None, (word.strip() for word in text.split(","))):
        first, dash, last = word.partition("-")
        if dash and first.isdecimal() and last.isdecimal() and int(last) - int(first) < 1000:
            found.update(dict.fromkeys(map(str, range(int(first), int(last) + 1))))
        else:
            found[word] = None
    return tuple(found)


def _counted(environment: Mapping[str, str]) -> tuple[str, ...]:
    """GPU ids from 0 up, if only the number of GPUs is known; else empty."""
    text = environment.get("ADAPTOR_GPUS", "")
    return tuple(map(str, range(int(text)))) if text.isdecimal() and len(text) <= 4 else ()


def _joined(ids: tuple[str, ...], places: Collection[int]) -> str:
    return ",".join(ids[place] for place in sorted(places))
