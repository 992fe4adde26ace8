"""The messages between the command line and the daemon (msgpack over ZMQ with CURVE).

One question, one answer. `Failure` answers any question that could not be served.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from adaptor import views
from adaptor.bag_spec import BagSpec, Option
from adaptor.option_kinds import CREDITS
from adaptor.protocol.decoding import decoded


class TaskInput(msgspec.Struct, frozen=True, array_like=True):
    """One task of a new bag."""

    command: str | list[str]
    """A shell line, or the arguments of a program that is started without a shell."""
    name: str | None = None
    cwd: str | None = None
    environment: dict[str, str] | None = None


class BagInput(msgspec.Struct, frozen=True, kw_only=True):
    """A new bag."""

    spec: BagSpec
    budget: Annotated[float | None, Option("credits that the bag may cost at most", CREDITS)] = None
    tasks: list[TaskInput]


class Submit(msgspec.Struct, frozen=True, tag=True):
    bag: BagInput


class Submitted(msgspec.Struct, frozen=True, tag=True):
    bag: int


class GetBags(msgspec.Struct, frozen=True, tag=True):
    """Bags by a selector: `last`, `all`, `7`, `1-10`, `1,3,5-7`."""

    selector: str = "all"
    record: bool = False
    """Whether the record of the forecasts is wanted too."""


class Bags(msgspec.Struct, frozen=True, tag=True):
    bags: list[views.BagView]
    record: views.ForecastRecordView | None = None
    """Of all bags; None: it was not asked for."""


class GetTasks(msgspec.Struct, frozen=True, tag=True):
    """Tasks of one bag with a number above `after`, at most `limit`, in order of their numbers."""

    bag: int
    states: list[str] = []
    """Words of TaskState; empty: all."""
    after: int = -1
    limit: int = 10_000


class Tasks(msgspec.Struct, frozen=True, tag=True):
    tasks: list[views.TaskView]


class GetPilots(msgspec.Struct, frozen=True, tag=True):
    ended: bool = False
    """Whether the ended ones are wanted too."""


class Pilots(msgspec.Struct, frozen=True, tag=True):
    pilots: list[views.PilotRecord]


class GetReport(msgspec.Struct, frozen=True, tag=True):
    bag: int


class Report(msgspec.Struct, frozen=True, tag=True):
    report: views.BagReport


class GetWhy(msgspec.Struct, frozen=True, tag=True):
    """Explanations: of a bag, of a pilot, or (neither given) the newest of all sites."""

    bag: int | None = None
    pilot: int | None = None
    limit: int = 20


class Why(msgspec.Struct, frozen=True, tag=True):
    lines: list[views.Explanation]


class GetSites(msgspec.Struct, frozen=True, tag=True):
    pass


class Sites(msgspec.Struct, frozen=True, tag=True):
    sites: list[views.SiteView]


class GetSlots(msgspec.Struct, frozen=True, tag=True):
    """The free slots of these sites' queues, read now; empty: of all."""

    sites: list[str] = []


class Slots(msgspec.Struct, frozen=True, tag=True):
    sites: list[views.SlotsView]


class GetDaemon(msgspec.Struct, frozen=True, tag=True):
    pass


class Daemon(msgspec.Struct, frozen=True, tag=True):
    daemon: views.DaemonView


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """Cancel the unfinished tasks of these bags."""

    bags: list[int]


class Retry(msgspec.Struct, frozen=True, tag=True):
    """Put the failed and cancelled tasks of these bags back, with fresh retries."""

    bags: list[int]


class Changed(msgspec.Struct, frozen=True, tag=True):
    """The answer to Cancel and Retry."""

    tasks: int


class GetCredits(msgspec.Struct, frozen=True, tag=True):
    """What sites and bags have cost. `bags` is a selector."""

    bags: str = "all"


class Credits(msgspec.Struct, frozen=True, tag=True):
    credits: views.CreditsView


class SetBudget(msgspec.Struct, frozen=True, tag=True):
    """Set or change the budget of a bag; answered by its Credits."""

    bag: int
    credits: float


class SettleSite(msgspec.Struct, frozen=True, tag=True):
    """Settle the pilots of a site that the configuration no longer has; answered by Settled."""

    site: str
    ended: float | None = None
    """When they ended, epoch seconds; None: by what the daemon knows."""


class Settled(msgspec.Struct, frozen=True, tag=True):
    pilots: int


class Stop(msgspec.Struct, frozen=True, tag=True):
    """End the daemon. `pilots`: cancel its pilots too; otherwise they go on and are met again."""

    pilots: bool = False


class Stopping(msgspec.Struct, frozen=True, tag=True):
    pass


class Failure(msgspec.Struct, frozen=True, tag=True):
    """Why a question was not served."""

    message: str
    usage: bool = False
    """Whether the question itself was at fault (exit code 2)."""


Question = (
    Submit
    | GetBags
    | GetTasks
    | GetPilots
    | GetReport
    | GetWhy
    | GetSites
    | GetSlots
    | GetDaemon
    | Cancel
    | Retry
    | GetCredits
    | SetBudget
    | SettleSite
    | Stop
)
Answer = (
    Submitted | Bags | Tasks | Pilots | Report | Why | Sites | Slots | Daemon | Changed | Credits
    | Settled | Stopping | Failure
)  # fmt: skip

_encoder = msgspec.msgpack.Encoder()
_question: msgspec.msgpack.Decoder[Question] = msgspec.msgpack.Decoder(Question)
_answer: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)


def encode(message: Question | Answer) -> bytes:
    return _encoder.encode(message)


def decode_question(data: bytes) -> Question:
    """Raises msgspec.DecodeError (or its subclass ValidationError) on anything else."""
    return decoded(_question.decode, data)


def decode_answer(data: bytes) -> Answer:
    """Raises msgspec.DecodeError (or its subclass ValidationError) on anything else."""
    return decoded(_answer.decode, data)
