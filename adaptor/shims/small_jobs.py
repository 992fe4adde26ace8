"""A job that fits into a bag: read as `adaptor submit` reads a script, and made a task."""

from __future__ import annotations

import getpass
import hashlib
import os
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from adaptor.api import TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.bagfile.scripts.getopt import GivenOption
from adaptor.bagfile.scripts.sbatch import SBATCH
from adaptor.bagfile.scripts.script import ScriptBag, Submission, script_bag
from adaptor.batch_script import OWN_SCRIPT, BatchScript, OwnScript
from adaptor.client.environment import captured, current_umask
from adaptor.errors import AdaptorError, ObstaclesError
from adaptor.guard_rails import TimeLimit
from adaptor.option_kinds import BAG_NAME
from adaptor.resources import OwnNeeds
from adaptor.shims.real import tell
from adaptor.shims.rules import OF_SHIM, Dependencies, Rules, TooLarge, check, time_limit

if TYPE_CHECKING:
    from adaptor.config.schema import SiteConfig

IDLE = 600.0  # seconds without a job after which an open bag closes
OF_ARRAY = "SLURM_ARRAY_TASK_"  # prefix of the variables of an array
BAG = "ADAPTOR_SHIM_BAG"  # the variable that names the bag of a caller


class SmallJob:
    """A job that fits into a bag. Raises TooLarge where it does not."""

    def __init__(
        self,
        data: bytes,
        name: str,
        given: Sequence[GivenOption],
        arguments: Sequence[str],
        rules: Rules,
        awaited: Dependencies,
    ) -> None:
        self.rules = rules
        self.awaited = awaited
        check(given, data.decode(errors="replace"), os.environ)
        self.limit = time_limit(given, self.rules)
        self.partition = next((each.value for each in reversed(given) if each.name == "partition"), "")
        try:
            self._read(data, name, given, arguments)
        except ObstaclesError as error:
            raise TooLarge(error.first) from error
        except AdaptorError as error:
            raise TooLarge(str(error)) from error

    def _read(self, data: bytes, name: str, given: Sequence[GivenOption], arguments: Sequence[str]) -> None:
        of_site = any(each.name in SBATCH.of_sites or each.name == "mail-type" for each in given)
        sites, notified = _configured(self.rules) if of_site else ({}, False)
        submission = Submission(
            folder=str(Path.cwd()),
            user=getpass.getuser(),
            host=socket.gethostname(),
            home=str(Path.home()),
            environment=captured(os.environ)[0],
            arguments=arguments,
            given=[each for each in given if each.name not in OF_SHIM],
            now=time.time(),
            sites=sites,
            notified=notified,
        )
        self.made: ScriptBag = script_bag(data, name, name, submission)
        for remark in self.made.remarks:
            if remark.changes:
                raise TooLarge(remark.text)
            tell(remark.text)
        options = dict(self.made.options)
        script: BatchScript = options.pop("script")
        # Of an array, in its tasks alone: a job without one may come into the same bag.
        self._of_array = {
            name: value for name, value in script.variables.items() if name.startswith(OF_ARRAY)
        }
        others = {name: value for name, value in script.variables.items() if name not in self._of_array}
        self.script: BatchScript = msgspec.structs.replace(script, variables=others)
        self.name: str = options.pop("name")
        cwd = os.path.join(submission.folder, os.path.expanduser(self.made.cwd))  # noqa: PTH111, PTH118
        if not os.path.isdir(cwd):  # noqa: PTH112
            raise TooLarge(f"{cwd}: no such folder")
        self.cwd = os.path.normpath(cwd)
        of_spec = {key: value for key, value in options.items() if key in BagSpec.__struct_fields__}
        of_spec |= {"timeout": TimeLimit(part=1.0), "time": self.limit, "canary": "no"}
        self.spec = BagSpec(
            **{**of_spec, "sites": self.made.sites, "close_idle": IDLE},
            name=_bag_name(),
            cwd=self.cwd,
            environment=self.made.environment,
            umask=current_umask(),
            script=msgspec.structs.replace(self.script, array=False, jobs=True),
        )

    @property
    def alone(self) -> bool:
        """Whether it needs a bag of its own: an array of which only some run at a time."""
        return self.spec.max_running is not None

    def shape(self, **same: None) -> str:
        """Key that is equal for jobs that share a bag. `same`: in place of their sizes, or nothing."""
        parts: dict[str, Any] = {"cwd": "", "output": "", "environment": {}, "script": None, **same}
        common = msgspec.structs.replace(self.spec, **parts)
        empty = not self.made.environment
        return hashlib.sha256(msgspec.msgpack.encode((common, empty))).hexdigest()[:24]

    def rest(self) -> str:
        """Key that is equal for jobs of which one may join the bag of the other: only their sizes differ."""
        return self.shape(cpus=None, memory=None, gpus=None, time=None)

    @property
    def variables(self) -> dict[str, str]:
        return {**self.made.environment, **self.script.variables}

    def tasks(self, known: Mapping[str, str], body: bytes) -> list[TaskInput]:
        """Tasks of the job in a bag. `known`, `body`: the variables and the script of the bag."""
        changed = {name: value for name, value in self.variables.items() if known.get(name) != value}
        found = []
        for place, task in enumerate(self.made.tasks):
            own = OwnScript(
                output=self.script.output,
                error=self.script.error,
                append=self.script.append,
                body=b"" if self.script.body == body else self.script.body,
                place=place if self.script.array else None,
                submitted=time.time(),
                cpus=self.spec.cpus,
                limit=self.limit,
            )
            written = {OWN_SCRIPT: msgspec.json.encode(own).decode()}
            environment = {**changed, **self._of_array, **(task.environment or {}), **written}
            found.append(TaskInput(task.command, self.name, self.cwd, environment))
        return found

    def needs(self) -> OwnNeeds:
        gpus, memory = self.spec.gpus, self.spec.task.memory
        return OwnNeeds(
            cpus=self.spec.cpus,
            memory=memory,
            gpus=gpus.count if gpus is not None else 0,
            gpu_type=gpus.type if gpus is not None else "",
            time=self.limit,
        )


def _bag_name() -> str:
    """The name of the bag, by the caller's variable. Raises TooLarge: it is none."""
    try:
        return str(BAG_NAME.parse(os.environ.get(BAG, "jobs"), 0.0))
    except ValueError as error:
        raise TooLarge(f"{BAG}: {error}") from None


def _configured(rules: Rules) -> tuple[Mapping[str, SiteConfig], bool]:
    """The sites of the configuration, and whether it says who is notified; few jobs ask for them."""
    from adaptor.config.loading import config_path, load_config

    config = load_config(config_path(rules.config or None))
    return config.sites, bool(config.notify.default)
