"""Results of every backend for all recorded answers: states of queues, nodes, limits, findings, descriptions.

`python -m tests.backends.recorded_clusters` writes `fixtures/golden/observed.json` anew.
"""

from __future__ import annotations

import functools
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec

from adaptor.config.donation import DonationConfig
from adaptor.config.schema import LimitsConfig, SiteConfig
from adaptor.errors import AdaptorError
from adaptor.resources import TaskSize
from backends.base import Backend
from backends.commands import CommandAnswer, Commands
from backends.machines.base import Machine
from backends.machines.here import Here
from backends.pbs import discover as pbs
from backends.pbs.backend import PbsBackend
from backends.slurm import discover as slurm
from backends.slurm.backend import SlurmBackend
from tests.backends.answering import answer_of
from tests.backends.orders import order
from tests.backends.pbs.openpbs_recordings import dsv_line, flat, recorded_jobs, recorded_nodes
from tests.backends.pbs.openpbs_recordings import recorded as of_openpbs
from tests.backends.slurm.answers import FIXTURES as SLURM
from tests.backends.slurm.answers import HEADER, MARK, RELEASES

GOLDEN = Path(__file__).parents[2] / "fixtures" / "golden" / "observed.json"

Said = Callable[[str, str], CommandAnswer]
"""The answer of a program to its arguments in one line."""
Sites = Mapping[str, dict[str, Any]]
"""By name, the keys of a site beside its backend."""


class Scene(msgspec.Struct, frozen=True):
    """A recorded cluster at the instant `now`."""

    name: str
    backend: str
    now: float
    says: Said
    sites: Sites
    describes: bool = True


class Recorded(Here):
    """A machine on which a recorded cluster answers; what it is told to submit is kept in `submitted`."""

    def __init__(self, says: Said) -> None:
        super().__init__()
        self._says = says
        self.submitted = ""

    def variables(self) -> dict[str, str]:
        return {"LOGNAME": "alice"}

    def run(self, arguments: Sequence[str], variables: Mapping[str, str], timeout: float) -> CommandAnswer:
        program, *words = arguments
        if program in ("sbatch", "qsub"):
            self.submitted = " ".join(words)
        return self._says(program, " ".join(words))

    def write_private(self, path: Path, data: bytes) -> None:
        """Nothing is written."""


def scenes() -> Iterator[Scene]:
    """All of them."""
    for release in RELEASES:
        yield Scene(release, "slurm", 1795370432.0, _slurm(release), _SLURM_SITES)
    yield Scene("plain", "slurm", 1795250493.0, _slurm("plain"), _PLAIN_SITES)
    for situation in ("01-idle", "02-busy", "06-down"):
        parts = {part: of_openpbs(f"{situation}-{part}") for part in ("pbsnodes-av", "qstat-f-dsv")}
        yield _openpbs(situation, 1795241278.0, parts["pbsnodes-av"], parts["qstat-f-dsv"])
    nodes = recorded_nodes()
    for name, jobs in (
        ("02b-pbsnodes-suspended", ("02b-job",)),
        ("05-D-pbsnodes-av", ("05-D-preemptor",)),
        ("05-S-pbsnodes-av", ("05-S-preempted", "05-S-preemptor")),
        ("06b-after-40s-pbsnodes", ("06b-after-40s-job",)),
    ):
        yield _openpbs(name, 1795241500.0, nodes[name], _jobs(*jobs))
    for shift in (-240.0, 120.0):  # before and within the reservation
        now = 1795241700.0 + shift
        yield _openpbs(f"09-reservation {shift:g}", now, nodes["09-pbsnodes-av"], _jobs("02-job-"))


_SLURM_SITES: Sites = {
    **{name or "default": {"partition": name} for name in (None, "short", "whole", "user", "asked")},
    "whole nodes": {"whole_nodes": True, "processors_per_node": 4},
    "some nodes": {"constraint": "fast|slow", "exclude": "n1", "limits": LimitsConfig(max_proc=100)},
    "gpus": {"gres": "gpu:1", "nodelist": "n[3-4]", "licenses": "matlab:2"},
    "licences": {"licenses": "matlab:1", "extra_args": ("--reservation=service", "--exclusive")},
    "donating": {"donation": DonationConfig(mode="preemptible", partition="scavenger")},
    "nowhere": {"partition": "nowhere"},
}
_PLAIN_SITES: Sites = {
    name: _SLURM_SITES[name] for name in ("default", "whole nodes", "some nodes", "donating")
}
_PBS_SITES: Sites = {
    **{name or "default": {"partition": name} for name in (None, "express", "limited", "route", "closed")},
    "whole nodes": {"whole_nodes": True, "processors_per_node": 4},
    "one node": {"nodelist": "node01", "qos": "high"},
    "marked": {"constraint": "arch=linux"},
    "donating": {"donation": DonationConfig(mode="preemptible", partition="scavenger")},
    "nowhere": {"partition": "nowhere"},
}


def _slurm(release: str) -> Said:
    def says(program: str, words: str) -> CommandAnswer:
        if program == "squeue":
            mark = words.partition(",Name:0")[2].partition(",")[0]
            question = "preempted" if not mark else "own_jobs" if "--me" in words else "queue"
            text = (HEADER if mark else "") + _text(SLURM / release, question)
            return answer_of(0, text.replace(MARK, mark or MARK), "")
        if program == "scontrol" and " job " in f" {words} " and not words.endswith("-o"):
            return answer_of(0, _text(SLURM / release, "job_details-alone"), "")
        if program == "sacctmgr" and (SLURM / release / "qos.txt").exists():
            kind = "qos" if "show qos" in words else "associations" if "show assoc" in words else ""
            return answer_of(0, _text(SLURM / release, kind) if kind else "physics", "")
        known = {"node": "node_details", "job": "job_details", "license": "licenses"}
        known |= {"reservation": "reservations", "partition": "partitions", "config": "settings"}
        if program == "scontrol":
            return answer_of(0, _text(SLURM / release, known[words.split()[1]]), "")
        if program == "sinfo":
            return answer_of(0, _text(SLURM / release, "nodes"), "")
        return (
            answer_of(0, "77", "") if program == "sbatch" else answer_of(1, "", f"{program}: no accounting")
        )

    return says


def _text(folder: Path, name: str) -> str:
    path = folder / f"{name}.txt"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _openpbs(name: str, now: float, nodes: str, jobs: str) -> Scene:
    situation = "06-down" if name.startswith("06") else "02-busy"
    known = {
        "qstat --version": "pbs_version = 23.06.06\n",
        "qstat -B -f": of_openpbs(f"{situation}-qstat-Bf"),
        "qstat -Q -f": of_openpbs(f"{situation}-qstat-Qf"),
        "qstat -f -F dsv": jobs,
        "pbsnodes -a -v": nodes,
        "pbs_rstat -f": of_openpbs("09-rstat-f"),
        "id -Gn": "users\n",
    }

    def says(program: str, words: str) -> CommandAnswer:
        if (program, words[:14]) == ("qstat", "-f -F dsv 3[0]"):
            return answer_of(0, _jobs("02-job-array-subjobs"), "")
        text = "77.pbshead" if program == "qsub" else known.get(f"{program} {words}")
        return answer_of(1, "", f"{program}: no answer") if text is None else answer_of(0, text, "")

    return Scene(name, "pbs", now, says, _PBS_SITES, describes=name == "02-busy")


def _jobs(*recordings: str) -> str:
    """As `qstat -F dsv` prints the jobs of all recordings that begin so, each once."""
    found = {
        id: dsv_line(id, flat(attributes))
        for name, jobs in recorded_jobs().items()
        if name.startswith(recordings)
        for id, attributes in jobs.items()
    }
    return "".join(f"{line}\n" for line in found.values())


def answers(scene: Scene) -> Iterator[tuple[str, dict[str, Any]]]:
    """Answers of each site's backend in a scene to each question; errors as their text."""
    with mock.patch.object(time, "time", return_value=scene.now):
        for name, keys in scene.sites.items():
            site = SiteConfig(backend=scene.backend, **keys)
            machine = Recorded(scene.says)
            yield f"{scene.name}: {name}", dict(_of_site(site, machine, scene))
        if scene.describes:
            yield f"{scene.name}: description", {"text": _told(lambda: _described(scene))}


def _of_site(site: SiteConfig, machine: Recorded, scene: Scene) -> Iterator[tuple[str, Any]]:
    made: type[SlurmBackend | PbsBackend] = SlurmBackend if scene.backend == "slurm" else PbsBackend
    backend: Backend = made(site, machine)
    state = _told(backend.queue_state)
    yield from state.items() if isinstance(state, dict) else [("state", state)]
    running = [job["id"] for job in state["running"]] if isinstance(state, dict) else []
    yield "nodes", _told(lambda: backend.nodes([]))
    yield "nodes donated", _told(lambda: backend.nodes([id.partition(".")[0] for id in running]))
    yield "limits", _told(backend.advertised_limits)
    checked = slurm.check_site if scene.backend == "slurm" else pbs.check_site
    yield "findings", _told(lambda: [f"{each.level}: {each.text}" for each in checked(site, machine)])
    for size in _SIZES:
        yield f"submits {size}", _told(functools.partial(_submitted, backend, machine, size))


_SIZES = {
    "small": (4, TaskSize(processors=1), ""),
    "memory": (8, TaskSize(processors=2, memory=3 * 2**30), ""),
    "huge": (1000, TaskSize(processors=1000), ""),
    "gpus": (2, TaskSize(processors=1, gpus=1), ""),
    "several nodes": (8, TaskSize(processors=4, nodes=2), ""),
    "donated": (4, TaskSize(processors=1), "node01"),
}


def _submitted(backend: Backend, machine: Recorded, size: str) -> str:
    processors, task, node = _SIZES[size]
    backend.submit(order(processors, task=task, tag="adaptor-x.hpc.1", directory=Path("/pilot"), node=node))
    return machine.submitted


def _described(scene: Scene) -> str:
    """Description of the cluster here: its commands are answered as recorded."""
    machine: Machine = Recorded(scene.says)

    def run(self: Commands, program: str, *words: str) -> CommandAnswer:
        return machine.run([program, *words], {}, 1.0)

    with mock.patch.object(Commands, "run", run), mock.patch.object(Commands, "user", return_value="alice"):
        return slurm.describe_sites() if scene.backend == "slurm" else pbs.describe_sites()


def _told(ask: Callable[[], Any]) -> Any:
    try:
        return msgspec.json.decode(msgspec.json.encode(ask(), order="deterministic"))
    except AdaptorError as problem:
        return f"{type(problem).__name__}: {problem}"


class Golden(msgspec.Struct):
    """Equal values stand there once."""

    cases: dict[str, dict[str, str]]
    """By question, the key of the answer."""
    values: dict[str, Any]


def key_of(value: Any) -> str:
    """The same for equal values."""
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:10]


def record() -> Golden:
    """Present results."""
    golden = Golden({}, {})
    for scene in scenes():
        for case, found in answers(scene):
            golden.cases[case] = {question: key_of(value) for question, value in found.items()}
            golden.values |= {key_of(value): value for value in found.values()}
    return golden


if __name__ == "__main__":
    made = record()
    lines = {
        name: ",\n".join(f'"{key}": {msgspec.json.encode(value).decode()}' for key, value in part.items())
        for name, part in (("cases", made.cases), ("values", made.values))
    }
    GOLDEN.write_text(f'{{"cases": {{\n{lines["cases"]}}},\n"values": {{\n{lines["values"]}}}}}\n')
