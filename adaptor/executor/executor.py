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
from concurrent.futures import wait as wait_for
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, overload

import msgspec

from adaptor import api
from adaptor.bag_spec import DEFAULT_OUTPUT, BagSpec, Interpreter
from adaptor.bagfile.options import parse_option
from adaptor.client.bags import GONE, new_key
from adaptor.client.environment import current_umask
from adaptor.executor import call_files
from adaptor.executor.chunks import chunks, run_chunk
from adaptor.executor.pickling import LARGE, Call, name_of, new_file, pickled, task_of
from adaptor.executor.resources import CallTerms, Resources
from adaptor.executor.session import CallFuture, R, Session, client, ensure, inherited
from adaptor.extras import require_extra
from adaptor.option_kinds import LABEL
from adaptor.protocol.messages import INLINE, INPUT_FILE

if TYPE_CHECKING:
    from typing_extensions import Unpack

P = ParamSpec("P")


def interpreter(command: str | Sequence[str] | None = None) -> Interpreter:
    """The command by which a node starts Python.

    `command`: a path, or words such as `["apptainer", "exec", "image.sif", "python3"]`, that start the same
    version of Python, which finds its own modules; None: this interpreter with these paths.
    """
    version = ".".join(map(str, sys.version_info[:2]))
    if command is not None:
        return Interpreter((command,) if isinstance(command, str) else tuple(command), version)
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    path = tuple(os.path.abspath(each) for each in sys.path)  # noqa: PTH100 (of "" too: the current folder)
    return Interpreter((sys.executable, *flags), version, path)


class Executor(StandardExecutor):
    """An executor like those of `concurrent.futures`, on the processors of the configured sites.

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
        mem: str | None = None,
        gpus: str | float | None = None,
        time: str | float | None = None,
        site: str | Sequence[str] | None = None,
        name: str | None = None,
        output: str | os.PathLike[str] = DEFAULT_OUTPUT,
        python: str | Sequence[str] | None = None,
        stage: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
    ) -> None:
        """Open a bag; its calls run in the current folder.

        Args:
            max_workers: calls at the same time, at most; None: as many as the sites give.
            cpus: processors of each call, all on one node.
            mem: memory of each call, such as "4G".
            gpus: GPUs of each call, such as 2, "a100:1", or 0.5 where two calls share one.
            time: how long a call is expected to take, such as "10m", or seconds; None: that is learned.
            site: the sites that may run it; None: all.
            name: of the bag; None: that of the program.
            output: the folder for what calls print and for results of more than 64 KB; `{bag}` becomes the
                number of the bag, and a relative one is in the current folder.
            python: the interpreter on the nodes, as a path or words; None: this one.
            stage: folders and files, such as `sys.prefix`, that each node copies to its own disk once; where
                Python or its modules lie in these, calls use the copies.
            initializer: called in each Python process on the nodes before its first call; if it raises, the
                executor is broken.
            initargs: the arguments of the initializer.

        Raises:
            ValueError: an argument is out of its range.
            TypeError: the initializer is not callable.
            UsageError: no site could ever run such a call, calls would run on a login node, or what it
                stages cannot be packed.
            AdaptorError: cloudpickle or tblib is not installed; no daemon could be started.
        """
        require_extra("executor", "cloudpickle", "tblib")
        if max_workers is not None and max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        first = b"" if initializer is None else pickled((initializer, initargs, {}))
        file = new_file() if len(first) > LARGE else ""
        here = Path.cwd()
        payload = INPUT_FILE + file.encode() if file else first and INLINE + first
        spec = BagSpec(
            name=_parsed("name", name) if name else LABEL.parse(_program(), 0.0),
            cpus=_parsed("cpus", cpus),
            memory=_parsed("mem", mem),
            gpus=_parsed("gpus", gpus),
            time=_parsed("time", time),
            sites=_parsed("site", site if site is None or isinstance(site, str) else ",".join(site)) or (),
            max_running=max_workers,
            canary="no",  # the program sees what its calls raise
            retries=0,
            replicas=0,
            cwd=str(here),
            output=str(here / output),
            environment=inherited(),
            umask=current_umask(),
            close_idle=GONE,
            stage=tuple(os.path.normpath(here / each) for each in _listed(stage)),
            interpreter=msgspec.structs.replace(interpreter(python), initializer=payload),
        )
        ensure(spec.sites)
        key = new_key()
        with client() as asking:
            sites = asking.ask(api.GetSites())
            self._processors = sum(
                site.processors or site.max_proc or 0 for site in sites if spec.allows(site.name)
            )
            bag = asking.open_bag(spec, key=key)
        folder = Path(spec.output.replace("{bag}", str(bag)))
        if file:
            call_files.write(folder, file, first)
        self._session = Session(client, bag, key, folder, payload)
        self._most, self._size, self._terms = max_workers, spec.task, CallTerms()
        self._max_workers = self._most_at_once()
        self._end = weakref.finalize(self, self._session.close)

    @property
    def bag(self) -> int:
        """The number of its bag: `adaptor status`, `adaptor results` and `adaptor why` show more of it."""
        return self._session.bag

    def with_resources(self, **resources: Unpack[Resources]) -> Executor:
        """A view: an executor whose calls need this, and the rest as before, in the same bag.

        It shares the connection and `max_workers`. Its `shutdown` ends the view alone.

        Args:
            cpus, mem, gpus, time: of each call, as of the executor.
            env: variables that its calls have besides those of the program.

        Raises ValueError: there is no such resource, or a value is out of its range.
        """
        return _View(self, self._terms.but(resources))

    @overload
    def submit(
        self, fn: Callable[..., R], /, *args: Any, adaptor_resources: Resources, **kwargs: Any
    ) -> CallFuture[R]: ...
    @overload
    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> CallFuture[R]: ...
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> CallFuture[Any]:
        """Have `fn(*args, **kwargs)` called; its future.

        The function and its arguments are pickled at once. What that raises, the future raises. If no site
        can ever hold the call, the future raises CallError with the limit.

        `adaptor_resources`: what this call needs, as for `with_resources`; None: as the others.

        Raises:
            ValueError: there is no such resource, or a value is out of its range.
            RuntimeError: the executor was shut down.
            BrokenExecutor: the daemon is gone.
        """
        resources = kwargs.pop("adaptor_resources", None)
        terms = self._terms if resources is None else self._terms.but(resources)
        return self._submit(name_of(fn), (fn, args, kwargs), terms)

    def _submit(self, name: str, call: Call, terms: CallTerms) -> CallFuture[Any]:
        """Submit a call. `name`: its name for people."""
        future: CallFuture[Any] = CallFuture(self._session.cancel)
        try:
            task = task_of(name, call, self._session.folder, terms)
        except Exception as error:
            future.begin()
            future.set_exception(error)
            return future
        self._session.submit(future, task)
        return future

    def map(
        self,
        fn: Callable[..., R],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[R]:
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

        def submitted(most: int | None) -> Iterator[CallFuture[Any]]:
            for many in islice(lists, most):
                call: Call = (fn, many[0], {}) if chunksize == 1 else (run_chunk, (fn, many), {})
                yield self._submit(name, call, self._terms)

        results = self._results(deque(submitted(buffersize)), submitted, deadline)
        return results if chunksize == 1 else chain.from_iterable(map(_popped, results))

    def abort(self, futures: Iterable[CallFuture[Any]], *, enough: bool = False) -> None:
        """Cancel these futures, and end their calls, also those that run.

        `enough`: what the calls have done is all that is wanted of them: their tasks end as done.
        """
        self._session.abort(futures, enough=enough)

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

    def _most_at_once(self) -> int:
        """Calls that may run at the same time, as far as the sites say.

        Dask sends this number at a time, and joblib counts its batches by it.
        """
        return self._most or max(1, self._processors // self._terms.needs.over(self._size).processors)

    def _results(
        self,
        pending: deque[CallFuture[Any]],
        submitted: Callable[[int], Iterator[CallFuture[Any]]],
        deadline: float | None,
    ) -> Iterator[Any]:
        """Results of the futures in turn; after each the next one is submitted. No result stays referred to
        from here."""
        try:
            while pending:
                yield _first(pending, None if deadline is None else deadline - clock.monotonic())
                pending.extend(submitted(1))
        finally:
            self._session.cancel_all(pending)


class _View(Executor):
    """Calls with other resources in the bag of an executor, which stays open as long as its views."""

    def __init__(self, of: Executor, terms: CallTerms) -> None:
        self._of = of
        self._session, self._terms = of._session, terms
        self._most, self._size, self._processors = of._most, of._size, of._processors
        self._max_workers = self._most_at_once()
        self._pending: set[CallFuture[Any]] = set()
        self._closed = False

    def _submit(self, name: str, call: Call, terms: CallTerms) -> CallFuture[Any]:
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future = super()._submit(name, call, terms)
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls; the executor goes on."""
        self._closed = True
        pending = list(self._pending)
        if cancel_futures:
            self._session.cancel_all(pending)
        if wait:
            wait_for(pending)


def _first(pending: deque[CallFuture[Any]], left: float | None) -> Any:
    """The result of the first future, which is taken out."""
    value = pending[0].result(left)
    pending.popleft()
    return value


def _popped(values: list[Any]) -> Iterator[Any]:
    """The values in their order; they are referred to no longer."""
    values.reverse()
    while values:
        yield values.pop()


def _program() -> str:
    return Path(sys.argv[0]).stem if sys.argv and sys.argv[0] not in ("", "-c", "-m") else "executor"


def _listed(
    given: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
) -> Sequence[str | os.PathLike[str]]:
    return [given] if isinstance(given, (str, os.PathLike)) else given


def _parsed(key: str, value: Any) -> Any:
    """The value of an option as people write it on the command line, or as a number. Raises ValueError."""
    return None if value is None else parse_option(key, str(value), 0.0)[1]
