"""The messages between the daemon and its workers (msgpack, over TLS or as files in a spool).

A worker begins (`Hello`) and then reports its news at once, and at least every `Welcome.heartbeat`
seconds; the daemon answers every report, so either side notices silence. The worker repeats each
result until `Orders.acknowledged` names it, so a message may be lost or come twice without harm.

Workers outlive an upgrade of the daemon, so fields are only added, behind the others and with a default
(`tests/protocol/test_worker_shapes.py`). A worker whose messages cannot be decoded gets the order to leave;
one that cannot decode the daemon's leaves. In both cases its tasks go back without a charge.
"""

from __future__ import annotations

import enum
from typing import Annotated

import msgspec

from adaptor.bag_spec import Bundle, Interpreter
from adaptor.batch_script import BatchScript
from adaptor.guard_rails import EarlySignal
from adaptor.protocol.decoding import decoded
from adaptor.resources import TaskSize
from adaptor.shortfalls import Shortfall

INLINE, INPUT_FILE = b"v", b"V"
"""First byte of a call: the pickle of (function, arguments, keyword arguments) follows, or the name of a file
with it in the bag's output folder."""
VALUE, ERROR, ERROR_OF_CHILDREN, TEXT, UNPREPARED = b"v", b"e", b"c", b"t", b"i"
"""First byte of an answer: the pickle of a value follows; of an exception; of the exception of a call whose
child processes have ended, so that it may come from a signal to these; of three texts on an exception that
cannot be pickled: its class, its first line, its traceback; of the same texts on the exception of the
initializer, after which the process runs no call."""
OWN_ERRORS = (ERROR, ERROR.upper(), TEXT, TEXT.upper(), UNPREPARED)
"""Errors that only the call itself can have caused. A capital letter: the name of a file
follows, in the bag's output folder, which has the pickle."""


LAST_SECONDS = 5.0
"""Seconds before its pilot's end, at most, at which a worker ends its tasks: it still has to report."""


Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A number that the journal can hold; a worker's message with a larger one is not understood."""
GpuCount = Annotated[int, msgspec.Meta(ge=0, le=4096)]
Code = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class AttemptKey(msgspec.Struct, frozen=True, array_like=True):
    """One execution of one task of one bag."""

    bag: Count
    task: Count
    attempt: Count


class BagContext(msgspec.Struct, frozen=True, array_like=True):
    """Settings that all tasks of a bag share; sent to a worker once, before the first lease of the bag."""

    bag: int
    cwd: str
    output: str
    """The folder for standard output and error: `<task>.out`, `<task>.err`; from the second attempt
    of a task on `<task>.<attempt>.out`, `<task>.<attempt>.err` (`adaptor/outputs/packing.py`). Empty files
    are removed."""
    environment: dict[str, str]
    task: TaskSize = TaskSize()  # resources that one task needs
    bind: bool = True  # whether each task is bound to its processors
    timeout: float | None = None
    """Seconds after which a task is ended; None: no limit, or one that is not known yet."""
    signal: EarlySignal | None = None  # signal to a task before its pilot's end
    script: BatchScript | None = None
    """Script of which its tasks run a copy, with the arguments behind the first word of their commands."""
    output_files: str = "each"  # `each`, `packed` or `none`, as in `BagSpec`
    interpreter: Interpreter | None = None  # interpreter of its calls
    limit_memory: bool = False
    """Whether the worker ends a task that holds more memory than it needs by its size."""
    umask: int | None = None  # of its tasks and of the files of their output; None: the worker's
    shell: str = ""  # the words of the shell that runs its lines; empty: as the site says
    bundle: Bundle | None = None  # what each node copies to its own disk
    image: str = ""  # the name in the bundle of the image in which its tasks run; empty: in none


class Lease(msgspec.Struct, frozen=True, array_like=True):
    """A task given to a worker."""

    key: AttemptKey
    command: str | list[str]  # a shell line, or the arguments of a program that is started without a shell
    needs: float  # seconds that must be left of the pilot when the task is started
    cwd: str | None = None  # in place of the bag's
    environment: dict[str, str] | None = None  # on top of the bag's
    name: str | None = None
    nodes: list[str] = []  # the nodes of a task that takes several, the one that runs its command first
    takes_part: bool = False
    """Whether another node runs the command: this one is kept for it until the lease is aborted."""
    call: bytes | None = None
    """A pickled call, which a Python process of the bag's interpreter runs in place of the command."""
    task: TaskSize | None = None  # resources that it needs; None: as its bag says
    timeout: float | None = None  # seconds after which it is ended; None: as its bag says
    among: Count = 0  # it starts only while fewer attempts of its bag run at this worker; 0: no limit


class Ending(enum.Enum):
    """End of an attempt, as the worker saw it."""

    EXITED = "exited"
    SIGNALLED = "signalled"  # ended by a signal that the worker did not send
    NOT_STARTED = "not_started"  # the command cannot be executed; `error` says why
    OUT_OF_MEMORY = "out_of_memory"
    """Killed for lack of memory: by the kernel, or by the worker where the bag says `on-oom`."""
    ENDED = "ended"  # the worker ended it: the pilot's time was up, or the worker had to leave
    ABORTED = "aborted"  # the worker ended it at the daemon's request
    TIMED_OUT = "timed_out"
    """The worker ended it after the time that its bag allows a task; `error` says how long that is."""
    RETURNED = "returned"  # the worker returned the lease without a start


class Result(msgspec.Struct, frozen=True, array_like=True):
    """The end of one attempt."""

    key: AttemptKey
    ending: Ending
    started: float = 0.0  # epoch seconds; 0: not started
    wall: float = 0.0
    cpu: float = 0.0  # user and system seconds of all processes of the tree whose parents waited for them
    peak_memory: Count = 0  # bytes; the largest value observed
    exit_code: Code | None = None
    signal: Code | None = None
    error: str | None = None
    peak_gpu_memory: Count = 0  # bytes on all GPUs together, the largest value observed; 0: not known
    answer: bytes = b""
    """Result of a call; its first byte says what follows (`protocol.calls`). Empty: no result."""


class Leaving(enum.Enum):
    """Why a worker leaves."""

    IDLE = "idle"  # no work for `idle_timeout`
    TOLD = "told"  # the daemon asked for it
    TIME_UP = "time_up"  # the end of the pilot is near
    SIGNAL = "signal"  # SIGTERM: a cancel, a preemption, or the scheduler's own warning before the walltime
    ALONE = "alone"  # the daemon has been silent for too long


class Hello(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """The first message of a worker, and its answer to `Orders.say_hello` after a daemon's restart."""

    pilot: Count
    node: str
    pid: int
    version: str
    processors: Count
    memory: Count  # bytes that its tasks may use together
    shortfalls: tuple[Shortfall, ...] = ()
    """Resources of which the worker got less on this node than its pilot asked for; it offers what it got."""
    gpus: GpuCount = 0
    gpu_type: str = ""  # of all its GPUs; empty: not known
    deadline: float  # epoch seconds at which the pilot ends
    holding: list[AttemptKey] = []
    """All leases of the worker, started or not, without those in `unacknowledged`."""
    started: list[AttemptKey] = []  # attempts of `holding` that run
    unacknowledged: list[Result] = []


class BagRemark(msgspec.Struct, frozen=True, array_like=True):
    """News on a bag for those who ask `why`."""

    bag: Count
    text: str


class Report(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """News of a worker since its last report; also the heartbeat."""

    results: list[Result] = []
    started: list[AttemptKey] = []
    free_processors: Count = 0  # processors that no lease of the worker will take
    free_memory: Count = 0
    free_gpus: list[float] = []  # the free part of each GPU
    queued: Count = 0  # leases that are not started yet
    load: list[tuple[AttemptKey, float]] = []
    """Running attempts with their wall seconds so far; in heartbeats only."""
    remarks: list[BagRemark] = []


class Goodbye(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """The last message of a worker; it waits a moment for its acknowledgement."""

    why: Leaving
    results: list[Result] = []
    took: float = 0.0  # seconds from the decision to leave to the end of the last task


FromWorker = Hello | Report | Goodbye


class Welcome(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """The answer to `Hello`."""

    heartbeat: float  # seconds between two reports, at most
    idle_timeout: float
    grace_time: float
    patience: float  # seconds for which a worker without tasks waits for a silent daemon
    acknowledged: list[AttemptKey] = []
    shell: str = ""
    """The words of the site's shell for the lines of bags that name none; empty: the worker's own choice."""
    node_folder: str = ""
    """The folder of nodes for copies of what bags stage, with variables of the worker; empty: any."""


class Orders(msgspec.Struct, tag=True, kw_only=True):
    """The answer to `Report` and `Goodbye`; may also come without a question. Filled until it is sent."""

    acknowledged: list[AttemptKey] = []  # results that are in the journal
    bags: list[BagContext] = []
    ended_bags: list[int] = []  # the worker need not know these any more
    leases: list[Lease] = []
    abort: list[AttemptKey] = []  # end these attempts and report them as ABORTED (RETURNED if not started)
    give_back: list[AttemptKey] = []  # return these as RETURNED unless they have started
    timeouts: dict[Count, float] = {}
    """Seconds after which a task is ended from now on, by bag whose tasks it holds."""
    leave: str = ""  # why the worker must leave at once; empty: it may stay
    say_hello: bool = False  # the daemon does not know this worker (the daemon restarted): send Hello again
    unpaid: float | None = None
    """Seconds before the end of the pilot's walltime at which it ends unless more is paid for; None: as
    before."""


ToWorker = Welcome | Orders


class _Tagged(msgspec.Struct, frozen=True):
    type: str


_encoder = msgspec.msgpack.Encoder()
_from_worker: msgspec.msgpack.Decoder[FromWorker] = msgspec.msgpack.Decoder(FromWorker)
_tagged = msgspec.msgpack.Decoder(_Tagged)
_to_worker: msgspec.msgpack.Decoder[ToWorker] = msgspec.msgpack.Decoder(ToWorker)


def encode(message: FromWorker | ToWorker) -> bytes:
    return _encoder.encode(message)


def decode_from_worker(data: bytes) -> FromWorker:
    """Raises msgspec.DecodeError (or its subclass ValidationError) on anything else."""
    return decoded(_from_worker.decode, data)


def says_goodbye(data: bytes) -> bool:
    """Whether a message that cannot be decoded is the Goodbye of a worker of another version."""
    try:
        return decoded(_tagged.decode, data).type == Goodbye.__name__
    except msgspec.DecodeError:
        return False


def decode_to_worker(data: bytes) -> ToWorker:
    """Raises msgspec.DecodeError (or its subclass ValidationError) on anything else."""
    return decoded(_to_worker.decode, data)
