"""`adaptor.Executor`: functions run as the tasks of an open bag, wherever the adaptor finds processors."""

from __future__ import annotations

import os
import subprocess
import sys
import time as clock
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor as StandardExecutor
from itertools import chain, islice
from pathlib import Path
from typing import Any

from adaptor import api
from adaptor.api import SiteView
from adaptor.bag_spec import DEFAULT_OUTPUT, BagSpec, Interpreter
from adaptor.client.environment import captured
from adaptor.executor.chunks import chunks, run_chunk
from adaptor.executor.pickling import name_of, task_of
from adaptor.executor.session import CallFuture, Session, client, ensure
from adaptor.extras import require_extra
from adaptor.option_kinds import DURATION, GPUS, LABEL, LABELS, MEMORY, Kind


def interpreter(command: str | Sequence[str] | None = None) -> Interpreter:
    """How a node starts Python.

    Args:
        command: a path, or words such as `["apptainer", "exec", "image.sif", "python3"]`, that start the same
            version of Python, which finds its own modules; None: this interpreter with these paths.
    """
    version = ".".join(map(str, sys.version_info[:2]))
    if command is not None:
        return Interpreter((command,) if isinstance(command, str) else tuple(command), version)
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    path = tuple(os.path.abspath(each) for each in sys.path)  # noqa: PTH100 (of "" too: the current folder)
    return Interpreter((sys.executable, *flags), version, path)


class Executor(StandardExecutor):
    """As the executors of `concurrent.futures`, on the processors of the configured sites.

        with adaptor.Executor(cpus=2, mem="4G", time="10m") as executor:
            for result in executor.map(simulate, range(1000)):
                print(result)

    A daemon is started where none runs. Calls of a lost node run again elsewhere, so each runs at least once,
    and each future gets one result.
    """

    def __init__(
        self,
        max_workers: int | None = None,
        *,
        cpus: int = 1,
        mem: str | int | None = None,
        gpus: str | float | None = None,
        time: str | float | None = None,
        site: str | Sequence[str] | None = None,
        name: str | None = None,
        output: str | os.PathLike[str] = DEFAULT_OUTPUT,
        python: str | Sequence[str] | None = None,
    ) -> None:
        """Open a bag; its calls run in the current folder.

        Args:
            max_workers: calls at the same time, at most; None: as many as the sites give.
            cpus: processors of each call, all on one node.
            mem: memory of each call, such as "4G", or bytes.
            gpus: GPUs of each call, such as 2, "a100:1", or 0.5 where two calls share one.
            time: how long a call is expected to take, such as "10m", or seconds; None: that is learned.
            site: the sites that may run it; None: all.
            name: of the bag; None: that of the program.
            output: the folder for what calls print and for results of more than 64 KB; `{bag}` becomes the
                number of the bag, and a relative one is in the current folder.
            python: the interpreter on the nodes, as a path or words; None: this one.

        Raises:
            ValueError: an argument is out of its range.
            UsageError: no site could ever run such a call, or calls would run on a login node.
            AdaptorError: cloudpickle or tblib is not installed; no daemon could be started.
        """
        require_extra("executor", "cloudpickle", "tblib")
        if max_workers is not None and max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        here = Path.cwd()
        spec = BagSpec(
            name=_parsed(LABEL, name or _program()),
            cpus=cpus,
            memory=_parsed(MEMORY, mem),
            gpus=_parsed(GPUS, gpus),
            time=_parsed(DURATION, time),
            sites=_parsed(LABELS, site if site is None or isinstance(site, str) else ",".join(site)) or (),
            max_running=max_workers,
            canary="no",  # the program sees what its calls raise
            retries=0,
            replicas=0,
            cwd=str(here),
            output=str(here / output),
            environment=captured(os.environ)[0],
            interpreter=interpreter(python),
        )
        ensure(spec.sites)
        with client() as asking:
            sites = asking.ask(api.GetSites())
            self._max_workers = max_workers or _most_at_once(spec, sites)
            bag = asking.open_bag(spec)
        folder = Path(spec.output.replace("{bag}", str(bag)))
        self._session = Session(client, bag, folder)
        self._end = weakref.finalize(self, self._session.close)

    @property
    def bag(self) -> int:
        """The number of its bag: `adaptor status`, `adaptor results` and `adaptor why` show more of it."""
        return self._session.bag

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> CallFuture:
        """Have `fn(*args, **kwargs)` called; its future.

        The function and its arguments are pickled at once. What that raises, the future raises.

        Raises:
            RuntimeError: the executor was shut down.
            BrokenExecutor: the daemon is gone.
        """
        return self._submit(name_of(fn), fn, args, kwargs)

    def _submit(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> CallFuture:
        """`name`: what people see of it."""
        future = CallFuture(self._session.cancel)
        try:
            task = task_of(name, (function, args, kwargs), self._session.folder)
        except Exception as error:
            future.begin()
            future.set_exception(error)
            return future
        self._session.submit(future, task)
        return future

    def map(
        self,
        fn: Callable[..., Any],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[Any]:
        """The results of `fn` for these arguments, in their order.

        Args:
            timeout: seconds from now for the results; None: as long as it takes.
            chunksize: calls in one task.
            buffersize: chunks whose results are not taken yet, at most, for iterables that are long or
                endless; None: all are submitted at once.

        Raises:
            TypeError: buffersize is no integer.
            ValueError: chunksize or buffersize is less than 1.
            TimeoutError: by the iterator, when a result is not there in time.
        """
        # In the words of the standard library, whose tests expect them.
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        if buffersize is not None and not isinstance(buffersize, int):
            raise TypeError("buffersize must be an integer or None")
        if buffersize is not None and buffersize < 1:
            raise ValueError("buffersize must be None or > 0")
        deadline = None if timeout is None else clock.monotonic() + timeout
        lists = chunks(zip(*iterables, strict=False), chunksize)
        name = name_of(fn)

        def submitted(most: int | None) -> Iterator[CallFuture]:
            for many in islice(lists, most):
                if chunksize == 1:
                    yield self._submit(name, fn, many[0], {})
                else:
                    yield self._submit(name, run_chunk, (fn, many), {})

        results = self._results(deque(submitted(buffersize)), submitted, deadline)
        return results if chunksize == 1 else chain.from_iterable(map(_popped, results))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls, and close the bag.

        Args:
            wait: until all calls have ended.
            cancel_futures: cancel the calls that have not started.
        """
        self._end.detach()
        self._session.close(cancel=cancel_futures)
        if wait:
            self._session.wait()

    def _results(
        self,
        pending: deque[CallFuture],
        submitted: Callable[[int], Iterator[CallFuture]],
        deadline: float | None,
    ) -> Iterator[Any]:
        """Of each future in turn, after which the next one is submitted; none stays referred to from here."""
        try:
            while pending:
                yield _first(pending, None if deadline is None else deadline - clock.monotonic())
                pending.extend(submitted(1))
        finally:
            self._session.cancel_all(pending)


def _first(pending: deque[CallFuture], left: float | None) -> Any:
    """The result of the first future, which is taken out."""
    value = pending[0].result(left)
    pending.popleft()
    return value


def _popped(values: list[Any]) -> Iterator[Any]:
    """In their order; they are referred to no longer."""
    values.reverse()
    while values:
        yield values.pop()


def _program() -> str:
    """What this program is called."""
    return Path(sys.argv[0]).stem if sys.argv and sys.argv[0] not in ("", "-c", "-m") else "executor"


def _parsed(kind: Kind, value: Any) -> Any:
    """The value of an option as people write it on the command line, or as a number. Raises ValueError."""
    return None if value is None else kind.parse(str(value), 0.0)


def _most_at_once(spec: BagSpec, sites: Sequence[SiteView]) -> int:
    """Calls that may run at the same time, as far as the sites say.

    Dask sends this number at a time, and joblib counts its batches by it.
    """
    processors = sum(site.processors or site.max_proc or 0 for site in sites if spec.allows(site.name))
    return max(1, processors // spec.cpus)
