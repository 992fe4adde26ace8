"""The options of squeue, sacct and scancel, as far as they choose jobs or say how these are shown. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from adaptor.bagfile.scripts.getopt import GivenOption, KnownOption, OptionTable, Takes
from adaptor.shims.jobs import SHORT, Job, Named, split


def _table(command: str, values: str, flags: str, perhaps: str = "") -> OptionTable:
    """The options of a command; each word is `name` or `name/letter`."""
    kinds: tuple[tuple[str, Takes], ...] = ((values, "value"), (flags, "nothing"), (perhaps, "perhaps"))
    known = []
    for words, takes in kinds:
        for word in words.split():
            name, _, letter = word.partition("/")
            known.append(KnownOption(name, letter, takes))
    return OptionTable(command, known)


TABLES = {
    "squeue": _table(
        "squeue",
        "account/A clusters/M format/o Format/O iterate/i jobs/j licenses/L name/n nodelist/w partition/p"
        " qos/q reservation/R sort/S states/t state steps/s user/u",
        "all/a array/r array-unique federation help hide local long/l me noconvert noheader/h priority/P"
        " sibling start usage verbose/v version/V only-job-state",
        "json yaml",
    ),
    "sacct": _table(
        "sacct",
        "accounts/A clusters/M delimiter endtime/E format/o fields file/f flags/F gid/g group jobs/j name"
        " ncpus/I nodelist/N nnodes/i partition/r qos/q reason/R starttime/S state/s timelimit-max/K"
        " timelimit-min/k uid/u user units wckeys/W constraints/C",
        "allocations/X allusers/a array brief/b completion/c duplicates/D help/h helpformat/e local/L long/l"
        " noconvert noheader/n parsable/p parsable2/P truncate/T verbose/v version/V federation env-vars"
        " batch-script/B expand-patterns use-local-uid",
        "json yaml whole-hetjob",
    ),
    "scancel": _table(
        "scancel",
        "account/A jobname/n name nodelist/w partition/p qos/q reservation/R signal/s state/t user/u wckey"
        " clusters/M sibling admin-comment",
        "batch/b ctld cron full/f help hurry/H interactive/i me quiet/Q verbose/v version/V",
    ),
}
_NOT_OURS = frozenset({
    "account", "accounts", "batch-script", "clusters", "env-vars", "help", "helpformat", "iterate",
    "licenses", "nodelist", "partition", "qos", "reservation", "start", "steps", "usage", "version", "wckey",
    "wckeys", "yaml",
})  # fmt: skip
"""Options that choose jobs by what ours do not have, or ask for something else than jobs."""


class Asked(msgspec.Struct, frozen=True):
    command: str
    given: list[GivenOption]
    ids: list[Named]  # ours
    other_ids: list[str]  # of the scheduler
    by_id: bool

    def value(self, *names: str) -> str | None:
        """The last value of an option."""
        return next((each.value for each in reversed(self.given) if each.name in names), None)

    def has(self, *names: str) -> bool:
        return any(each.name in names for each in self.given)

    @property
    def for_ours(self) -> bool:
        """Whether any of our jobs may be meant."""
        if self.by_id:
            return bool(self.ids)
        foreign = [each for each in self.given if each.name in _NOT_OURS]
        return all(self._may_have(each) for each in foreign)

    def _may_have(self, given: GivenOption) -> bool:
        """Whether ours are meant in spite of an option.

        Clients look for their jobs in a partition, such as Nextflow; tasks are in none.
        """
        mine = self.command == "squeue" and self.has("user", "me")
        return (given.name == "partition" and mine) or (given.name == "clusters" and given.value == "all")

    @property
    def for_scheduler(self) -> bool:
        return not self.by_id or bool(self.other_ids)

    def words(self) -> list[str]:
        """The options for the real command: without our jobs."""
        given = [each for each in self.given if each.name != "jobs"]
        words = [f"--{each.name}={each.value}" if each.value else f"--{each.name}" for each in given]
        if self.by_id and self.has("jobs"):
            words.append(f"--jobs={','.join(self.other_ids)}")
        return words

    def chooses(self, job: Job, user: str, uid: int) -> bool:
        """Whether a job has the name, the state and the user that were asked for."""
        names, states = self.value("name", "jobname"), self.value("states", "state")
        users = self.value("user", "uid")
        if names is not None and job.name not in names.split(","):
            return False
        if users is not None and not {user, str(uid)} & {*users.split(",")}:
            return False
        wanted = {"ALL"} if states is None else {state.strip().upper() for state in states.split(",")}
        return bool(wanted & {"ALL", job.state, SHORT[job.state]})


def read(command: str, arguments: Sequence[str]) -> Asked:
    """Read the arguments of a command. Raises OptionError: an option is not known here."""
    given, rest = TABLES[command].leading(arguments)
    while rest and command == "scancel":  # ids stand between options
        more, behind = TABLES[command].leading(rest[1:])
        given, ids = [*given, *more], [rest[0]]
        given += [GivenOption("jobs", each, 0, each) for each in ids]
        rest = behind
    texts = [each.value for each in given if each.name == "jobs"]
    ours, others = split(texts)
    return Asked(command, given, ours, others, bool(texts))
