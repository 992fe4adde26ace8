"""The arguments of sbatch for an order, and what its answer means."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from adaptor.config.schema import SiteConfig
from adaptor.units import folded
from backends.arrays import job_name
from backends.base import DAEMON_TAG, ChangeRefused, PilotOrder, SchedulerError
from backends.commands import CommandAnswer
from backends.scripts import Submitter
from backends.slurm.fields import expand, fold
from backends.slurm.parse import job_id_of
from backends.slurm.placing.gres import gres_counts
from backends.slurm.placing.restriction import options
from backends.slurm.placing.shape import SlurmShape
from backends.slurm.reasons import refused_remedy

_NEVER_ARRIVED = ("connect failure", "Connection refused", "Name or service not known")
"""The request did not reach slurmctld."""
_NO_ANSWER = (
    "timed out",
    "receive failure",
    "send failure",
    "shutdown failure",
    "Zero Bytes",
    "Connection reset",
    "Communication",
    "standby",
)
"""slurmctld may have taken the request, but its answer did not reach us."""

_COMMENT = '{{"tool":"request-adaptor","kind":"{kind}","tag":"{tag}"}}'
_TAG_IN_COMMENT = re.compile(r'"tool":"request-adaptor".*"tag":"([^"]+)"')


def comment_of(order: PilotOrder) -> str:
    """The comment of a job, by which operators find those of all users; one in `extra_args` takes its place.

    It has the tag too, for submit plugins of some sites rename jobs.
    """
    kind = "donation" if order.node else "daemon" if order.tag.startswith(DAEMON_TAG) else "request"
    return _COMMENT.format(kind=kind, tag=job_name(order))


def tag_in(comment: str) -> str:
    """Name of a job as it was submitted, from our comment; empty: it is none of ours."""
    found = _TAG_IN_COMMENT.search(comment)
    return found[1] if found else ""


DONATED_WAITS = 2  # minutes for which a pilot on a donated node stays in the queue at most


def arguments_of(
    order: PilotOrder, site: SiteConfig, shape: Sequence[str], *, escapes: bool = True
) -> list[str]:
    """The arguments of sbatch, without the script.

    Args:
        site: the configuration; for a pilot on a donated node that of `backends.donation.donation_terms`.
        shape: which processors, memory and GPUs are asked for, and where.
        escapes: see `log_of`.
    """
    arguments = [
        "--parsable",
        f"--job-name={job_name(order)}",
        f"--time={minutes_of(order)}",
        *([] if order.request.least is None else [f"--time-min={least_minutes(order)}"]),
        f"--output={log_of(order, escapes=escapes)}",
        # Of an array, Slurm's own words on all its jobs; each job has a file for the rest (`array.template`).
        *([] if order.pilots == 1 else [f"--array=0-{order.pilots - 1}", "--open-mode=append"]),
        f"--chdir={order.directory}",
        "--no-requeue",  # a pilot that starts again would hold processors that the planner does not know of
        "--no-kill",  # the loss of one node leaves the workers on the others alive
        f"--comment={comment_of(order)}",
        *([f"--dependency=afterany:{order.after}"] if order.after else []),
        *shape,
    ]
    for name, value in (("partition", site.partition), ("account", site.account), ("qos", site.qos)):
        if value is not None:
            arguments.append(f"--{name}={value}")
    return [*arguments, *site.extra_args]


def where_options(site: SiteConfig, names: Iterable[str]) -> list[str]:
    """The keys of a site that say where its requests run, and what each takes besides its nodes.

    Slurm gives a request all nodes of `--nodelist`, and others in addition. What the key says is that it gets
    no others, so all others are excluded; `names` are all nodes of the partition.
    """
    excluded = site.exclude
    if site.nodelist is not None:
        excluded = fold(set(names).difference(expand(site.nodelist))) or None
    given = (
        ("constraint", site.constraint),
        ("exclude", excluded),
        ("gres", site.gres),
        ("licenses", site.licenses),
    )
    return [f"--{name}={value}" for name, value in given if value is not None]


def own_reservation(site: SiteConfig) -> str | None:
    """The reservation that the site's requests are made in; its nodes are not kept from us."""
    named = [value for name, value in options(site.extra_args) if name == "reservation"]
    return named[-1] if named else None


def together(ids: Iterable[str]) -> list[str]:
    """The elements of an array as one word: `12_[0-2,7]`."""
    arrays: dict[str, list[int]] = {}
    words = []
    for id in ids:
        job, _, index = id.partition("_")
        if index.isdecimal():
            arrays.setdefault(job, []).append(int(index))
        else:
            words.append(id)
    return [*words, *(f"{job}_[{folded(indices)}]" for job, indices in arrays.items())]


def minutes_of(order: PilotOrder) -> int:
    return math.ceil(order.request.tr / 60)


def least_minutes(order: PilotOrder) -> int:
    """Minutes of the least time of a request that Slurm may start with less than its limit; 0: any other
    request."""
    return math.ceil((order.request.least or 0) / 60)


def log_of(order: PilotOrder, *, escapes: bool = True) -> str:
    """The file for what Slurm and the script say, as `sbatch --output` takes it.

    sbatch replaces `%` and a letter. In a path with a backslash, as in homes of `DOMAIN\\user`, it replaces
    nothing, and takes each backslash for the mark of the character behind it.

    Args:
        escapes: whether a backslash can be one (`keeps_backslashes`); else the script writes its own log.
    """
    folder = str(order.directory)
    if "\\" in folder:
        return folder.replace("\\", "\\\\") + "/slurm.out" if escapes else "/dev/null"
    return f"{folder.replace('%', '%%')}/slurm-{'%j' if order.pilots == 1 else '%A'}.out"


OWN_LOG = 'exec >>"$ADAPTOR_DIRECTORY/slurm.out" 2>&1'
"""Line in the script of a pilot whose log Slurm cannot write."""


def keeps_backslashes(settings: Mapping[str, str]) -> bool:
    """Whether the path of an output can have a backslash: 26.05.5 takes all of them out, however many there
    are, and makes another folder; 22.05 and 24.11 take two for one."""
    release = settings.get("SLURM_VERSION", "").split(".")[:2]
    return not (all(map(str.isdecimal, release)) and [*map(int, release)] >= [26, 5])


def donated_options(order: PilotOrder, gpus: int) -> list[str]:
    """The whole node, so that no job runs next to it: a job that wants any of it has the pilot make room.

    One that cannot start soon is of no use. If it is not withdrawn, Slurm takes it out of the queue
    itself (with the state DEADLINE) once it could no longer end in time.

    Args:
        gpus: of the node, of the type that the tasks want.
    """
    arguments = [
        "--nodes=1",
        f"--nodelist={order.node}",
        "--exclusive",
        "--mem=0",
        f"--deadline=now+{minutes_of(order) + DONATED_WAITS}minutes",
    ]
    kind = f"{order.task.gpu_type}:" if order.task.gpu_type else ""
    return arguments + ([f"--gpus-per-node={kind}{gpus}"] if gpus else [])


def gave_no_answer(errors: str) -> bool:
    """Whether a command only says that slurmctld was not reached, or did not answer."""
    return any(words in errors for words in (*_NO_ANSWER, *_NEVER_ARRIVED))


accepted_id = Submitter(
    program="sbatch",
    scheduler="Slurm",
    id_in=job_id_of,
    refused=lambda answer: "sbatch" in answer.errors,
    never_arrived=_NEVER_ARRIVED,
    no_answer=_NO_ANSWER,
    remedy=refused_remedy,
).accepted_id


def changes(order: PilotOrder, job: Sequence[str], shape: SlurmShape, *, shrinks: bool) -> list[str]:
    """The arguments of `scontrol` that change a queued job; of whole nodes only the time limit changes.

    `job`: the words that find it (`OwnSlurmJobs.found`).

    Seen on Slurm 22.05, 24.11 and 26.05: an owner may change both ways, and the job keeps its age. `NumTasks`
    is always among the keys, for Slurm then leaves a job that has started as it is; alone, `TimeLimit` would
    be lowered. `NumNodes` is never: Slurm changes the processors and then refuses the nodes. Where Slurm says
    no, it may still have changed the job ("Requested partition configuration not available now").
    """
    keys = [f"TimeLimit={minutes_of(order)}", f"NumTasks={shape.count}"]
    if shrinks:
        keys.insert(1, f"TimeMin={least_minutes(order)}")
    if not shape.whole_nodes:
        keys.append(f"NumCPUs={shape.count * shape.part.processors}")
    return ["update", *job, *keys]


def check_changed(answer: CommandAnswer) -> None:
    """
    Raises:
        ChangeRefused: Slurm said no.
        SchedulerError: Slurm may have changed the job, or was not reached.
    """
    if answer.status == 0:
        return
    problem = f"scontrol failed with status {answer.status}: {answer.complaint}"
    if answer.status < 0 or gave_no_answer(answer.errors):
        raise SchedulerError(problem)
    raise ChangeRefused(f"Slurm did not change the request: {answer.complaint}")


_OF_NODE = {"--gres": "", "--gpus-per-node": "gpu:"}
_OF_TASK = {"--gpus-per-task": "gpu:"}
"""Options of sbatch, with what their values leave out before each type and number."""


def step_gres(arguments: Sequence[str]) -> str:
    """The generic resources of a request, for the steps of its workers.

    A step that names none gets, of those asked for by task, what one task gets.

    Words of a bash array: for each resource its name, how many of each node, and how many of each task.

    `gpu:a100: 0 1`: one GPU of this type for each task. What cannot be read is left out: sbatch refuses it.

    Args:
        arguments: of sbatch; as for sbatch, what stands last counts.
    """
    of_node, of_task = _counted(arguments, _OF_NODE), _counted(arguments, _OF_TASK)
    words = []
    for name, type in sorted({*of_node, *of_task}):
        kind = f"{name}:{type}:" if type else f"{name}:"
        words += [shlex.quote(kind), str(of_node[name, type]), str(of_task[name, type])]
    return " ".join(words)


def _counted(arguments: Sequence[str], options: dict[str, str]) -> Counter[tuple[str, str]]:
    given: dict[str, str] = {}
    for word, following in zip(arguments, [*arguments[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name in options:
            given[name] = value if equals else following
    found: Counter[tuple[str, str]] = Counter()
    for name, value in given.items():
        try:
            items = ",".join(f"{options[name]}{item}" for item in value.split(","))
            found.update(gres_counts(items))
        except ValueError:
            continue
    return found
