"""The GPUs of this machine, and the variables by which a worker learns which of them are its own."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

_CHOSEN = "CUDA_VISIBLE_DEVICES"
_NONE = frozenset({"", "-1", "NoDevFiles"})
_DEVICE = re.compile(r"nvidia(\d+)")
VARIABLES = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")
"""What the libraries of NVIDIA, AMD and Intel read."""
_FURTHER = ("HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
"""They choose again among the devices that are seen."""


def devices(
    configured: int | Collection[int | str] | None,
    environment: Mapping[str, str] = os.environ,
    folder: Path = Path("/dev"),
) -> tuple[str, ...]:
    """Their ids, as the site's `gpus` says: a number of them from 0 on, or these.

    Else those that this process may use by its environment, or else those of NVIDIA that are there.
    """
    if isinstance(configured, int):
        return tuple(map(str, range(configured)))
    if configured is not None:
        return _once(map(str, configured))
    if _CHOSEN in environment:
        words = [word.strip() for word in environment[_CHOSEN].split(",")]
        return _once(word for word in words if word not in _NONE)
    found = (_DEVICE.fullmatch(path.name) for path in folder.glob("nvidia[0-9]*"))
    return tuple(map(str, sorted(int(match[1]) for match in found if match)))


def _once(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids))


def of_worker(held: Collection[str] | None, inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of a worker that holds these devices; None: the site has none, so nothing changes."""
    if held is None:
        return dict(inherited)
    kept = {name: value for name, value in inherited.items() if name not in _FURTHER}
    return {**kept, **dict.fromkeys(VARIABLES, ",".join(held)), "ADAPTOR_GPUS": str(len(held))}
