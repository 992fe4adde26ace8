"""The tools of an agent: each asks the daemon with the agent's key, and answers in bounded JSON.

The agent reads the docstrings. The tools check nothing: what a key may do is for the daemon to say
(`daemon/client/admission.py`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any, Literal

from adaptor import api
from adaptor.bagfile.options import parse_option
from adaptor.bagfile.parse import BagFile
from adaptor.bagfile.template import Axis, expand, parse_parameter
from adaptor.cli.bags.bag_input import bag_of, plan_of
from adaptor.cli.bags.task_output import outputs_of
from adaptor.cli.printing import readable
from adaptor.client.asking import SCHEDULERS_TIMEOUT, ask
from adaptor.client.bags import SUBMIT_TIMEOUT, Client
from adaptor.client.environment import captured
from adaptor.client.when import request_of
from adaptor.errors import UsageError
from adaptor.option_kinds import plain_text
from adaptor.outputs.finding import tail

Json = dict[str, Any]
Values = dict[str, list[str] | str]
LONGEST_WAIT = 60.0  # seconds of one `watch`
_ITEMS, _LETTERS = 50, 2_000  # of a list and of a text in an answer
_MOST_TASKS = 100
_MOST_OUTPUT = 40_000  # characters of all outputs in one answer


def plan(
    tasks: list[str] | None = None,
    template: str = "",
    parameters: Values | None = None,
    options: dict[str, str] | None = None,
    budget: float | None = None,
) -> Json:
    """Forecast a bag of tasks without submitting it: requests that would be made now, end, credits.

    Arguments as of submit. Also shows the limits of this key and what is left of them.
    """
    bag = _bag(tasks, template, parameters, options, budget)
    found = ask(plan_of(bag), SCHEDULERS_TIMEOUT)
    return _json({"plan": found, "limits": _limits()})


def when(
    processors: int, time: str, site: str = "", memory: str | None = None, gpus: int = 0, gpu_type: str = ""
) -> Json:
    """Forecast the start of a request for processors and a walltime (such as 3h), by place, the earliest
    first."""
    request = request_of(processors, time, None, memory, gpus, gpu_type)
    return _json({"places": ask(api.GetStart(request=request, site=site), SCHEDULERS_TIMEOUT)})


def submit(
    tasks: list[str] | None = None,
    template: str = "",
    parameters: Values | None = None,
    options: dict[str, str] | None = None,
    budget: float | None = None,
    environment: dict[str, str] | None = None,
) -> Json:
    """Submit a bag of independent tasks; each is a shell line that runs on the cluster.

    Give tasks (one line each), or a template such as "render -f {frame}" with parameters: lists of values, or
    a range such as "1:100"; all combinations run. options are those of `adaptor submit`, as text: cpus, mem,
    gpus, time (of a task), timeout, retries, max-fails, max-running, canary, name, cwd, output, deadline.
    budget: credits that the bag may cost; without it, all that this key has left.
    """
    bag = _bag(tasks, template, parameters, options, budget, environment)
    with Client() as client:
        answer = client.submit(bag)
    return _json({"submitted": answer, "tasks": len(bag.tasks), "limits": _limits()})


def watch(bag: int | None = None, wait: float = 30.0) -> Json:
    """The state of a bag. Waits up to `wait` seconds (60 at most) until it has ended or paused.

    Without a bag: the bags of this key, the newest 20, at once. Call it again while the state is running.
    """
    if bag is None:
        return _json({"bags": ask(api.GetBags("recent")).bags, "limits": _limits()})
    until = time.monotonic() + max(0.0, min(wait, LONGEST_WAIT))
    while True:
        (view,) = ask(api.GetBags(str(bag))).bags
        left = until - time.monotonic()
        if view.state != "running" or view.paused or left <= 0:
            return _json({"bag": view, "limits": _limits()})
        seconds = min(left, api.LONGEST_POLL)
        ask(api.GetEvents({bag: view.events}, seconds), seconds + SCHEDULERS_TIMEOUT)


def why(bag: int, lines: int = 20) -> Json:
    """Why requests for a bag were made or not, why it paused, and what this key did: the newest last."""
    return _json(ask(api.GetWhy(bag=bag, limit=max(1, min(lines, _ITEMS)))))


def results(
    bag: int,
    states: list[Literal["waiting", "running", "done", "failed", "cancelled"]] | None = None,
    after: int = -1,
    limit: int = 20,
    output: Literal["none", "stdout", "stderr"] = "none",
) -> Json:
    """Tasks of a bag with exit codes and runtimes, from the one after number `after` on, 100 at most.

    output: also the last 20 lines of each task's stdout or stderr.
    """
    tasks = ask(api.GetTasks(bag, list(states or []), after, max(1, min(limit, _MOST_TASKS))))
    outputs = outputs_of(ask(api.GetBags(str(bag))).bags[0]) if output != "none" else None
    found, room = [], _MOST_OUTPUT
    for task in tasks:
        line: Json = {"task": task}
        if outputs is not None and output != "none":
            text = tail(outputs.find_one(task.task, task.attempt, output))[-room:] if room else ""
            line[output], room = text, room - len(text)
        found.append(line)
    return _json({"tasks": found}, _MOST_TASKS)


def cancel(bag: int, tasks: list[int] | None = None) -> Json:
    """Cancel the unfinished tasks of a bag, or those with these numbers."""
    return _json({"cancelled": ask(api.Cancel([bag], tasks), SUBMIT_TIMEOUT)})


def report(bag: int) -> Json:
    """Cost and use of a bag, request by request: credits, waste, forecasts."""
    return _json(ask(api.GetReport(bag)))


READING = (plan, when, watch, why, results, report)
CHANGING = (submit, cancel)


def _limits() -> Any:
    """The grant of this key and what is left of it; None: it is no key with a grant."""
    keys = ask(api.GetKeys())
    return keys[0] if keys else None


def _bag(
    tasks: list[str] | None,
    template: str,
    parameters: Values | None,
    options: Mapping[str, str] | None,
    budget: float | None,
    environment: Mapping[str, str] | None = None,
) -> api.BagInput:
    """The bag that an agent submits. Raises UsageError: there are no tasks, or an option is unknown or has no
    such value."""
    if bool(tasks) == bool(template):
        raise UsageError("give either tasks or a template")
    given: Json = {}
    for key, text in (options or {}).items():
        try:
            field, given[field] = parse_option(key, text, time.time())
        except ValueError as error:
            raise UsageError(str(error)) from None
    if budget is not None:
        given["budget"] = budget
    if template:
        made = expand(template, [_axis(name, values) for name, values in (parameters or {}).items()])
    else:
        made = [_task(number, line) for number, line in enumerate(tasks or ())]
    variables, _ = captured(os.environ)
    return bag_of(BagFile(made), "agent", given, {**variables, **(environment or {})})


def _task(number: int, line: str) -> api.TaskInput:
    try:
        return api.TaskInput(plain_text(line))
    except ValueError as error:
        raise UsageError(f"task {number}: {error}") from None


def _axis(name: str, values: list[str] | str) -> Axis:
    """Values of a parameter. Raises UsageError: it names a file, which an agent writes as values."""
    if isinstance(values, list):
        return Axis((name,), [(value,) for value in values])
    if values.startswith("@"):
        raise UsageError(f"parameter {name}: give the values instead of a file")
    name, found = parse_parameter(f"{name}={values}")
    return Axis((name,), [(value,) for value in found])


def _json(value: Any, items: int = _ITEMS) -> Json:
    """Views as `--json` has them, with long lists and texts cut."""
    found = _bounded(readable(value), items)
    assert isinstance(found, dict)
    return found


def _bounded(value: Any, items: int) -> Any:
    if isinstance(value, dict):
        return {str(key): _bounded(item, items) for key, item in list(value.items())[:items]}
    if isinstance(value, list):
        return [_bounded(item, items) for item in value[:items]]
    if isinstance(value, str) and len(value) > _LETTERS:
        return f"{value[:_LETTERS]}…"
    return value
