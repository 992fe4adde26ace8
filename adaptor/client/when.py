"""Forecast starts of any request, by the daemon or by one look at the queue; no bag is needed.

from adaptor.client.when import when

for place in when(processors=64, time="3h"):
    print(place.site, place.partition, place.start)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import msgspec

from adaptor import api
from adaptor.client.asking import SCHEDULERS_TIMEOUT, ask
from adaptor.config.schema import SiteConfig
from adaptor.errors import NoDaemonError, UsageError
from adaptor.forecast.asked import AskedRequest
from adaptor.units import parse_duration, parse_size

Sites = Mapping[str, SiteConfig]


def when(
    *,
    processors: int | None = None,
    time: str | float = 0.0,
    nodes: int | None = None,
    memory: str | None = None,
    gpus: int = 0,
    gpu_type: str = "",
    job: str = "",
    site: str = "",
    partition: str = "",
    at: float | None = None,
    config: str | None = None,
) -> list[api.StartView]:
    """The forecast at each place, the earliest first; of a job that waits, one.

    Args:
        processors: in all; None: all of `nodes`, or one.
        time: the walltime, in seconds or as `3h`.
        memory: of each node, such as `8G`.
        gpus: of each node.
        job: a job that waits, by the scheduler's id; then no request is given.
        at: when the request will be made, in epoch seconds; None: now.
        config: the configuration that is read where no daemon runs; None: as the command line finds it.

    Raises:
        UsageError: no place can hold the request, or there is no such site, partition or job.
        AdaptorError: the daemon could not answer.
    """
    request = None
    if not job:
        request = request_of(processors, time, nodes, memory, gpus, gpu_type)
    return read(api.GetStart(request=request, job=job, site=site, partition=partition, at=at), config)


def start_map(
    *, site: str = "", partition: str = "", at: float | None = None, config: str | None = None
) -> list[api.StartView]:
    """Starts of all sizes and walltimes, from one reading of each queue. Arguments and errors are those of
    `when`.

    Raises UsageError, AdaptorError.
    """
    return read(api.GetStart(map=True, site=site, partition=partition, at=at), config)


def request_of(
    processors: int | None,
    time: str | float,
    nodes: int | None,
    memory: str | None,
    gpus: int,
    gpu_type: str,
) -> AskedRequest:
    """The request by the arguments of `when`. Raises UsageError: one of them has no such value."""
    try:
        size = None if memory is None else parse_size(memory)
        return AskedRequest(
            tr=parse_duration(time),
            processors=processors,
            nodes=nodes,
            memory=size,
            gpus=gpus,
            gpu_type=gpu_type,
        )
    except ValueError as error:
        raise UsageError(str(error)) from error


def in_words(form: Mapping[str, str]) -> list[api.StartView]:
    """Forecasts by the fields of a form, named as options: `p`, `t`, `nodes`, `mem`, `gpus`, `job`, `map`.

    Raises UsageError, AdaptorError.
    """
    given = {name: value.strip() for name, value in form.items() if value.strip()}
    if "map" in given:
        return start_map()
    if "job" not in given and "t" not in given:
        raise UsageError("say how long it may run, such as 3h")
    kind, _, count = given.get("gpus", "0").rpartition(":")
    counts = {"processors": given.get("p"), "nodes": given.get("nodes"), "gpus": count}
    for name, text in counts.items():
        if text is not None and not (text.isascii() and text.isdigit() and len(text) < 10):
            raise UsageError(f"{name}: {text!r} is not a number")
    return when(
        processors=int(given["p"]) if "p" in given else None,
        time=given.get("t", 0.0),
        nodes=int(given["nodes"]) if "nodes" in given else None,
        memory=given.get("mem"),
        gpus=int(count),
        gpu_type=kind,
        job=given.get("job", ""),
    )


def read(
    question: api.GetStart, config: str | None, *, offline: Callable[[], None] = lambda: None
) -> list[api.StartView]:
    """Answer by the daemon; if none runs, by one look at the queue. `offline`: called before that look."""
    try:
        return ask(question, timeout=SCHEDULERS_TIMEOUT)
    except NoDaemonError:
        offline()
    from adaptor.daemon.start_view import check_question, read_start, told

    check_question(question)
    found = []
    for name, site in _sites(question, config).items():
        own = question
        if question.partition and not site.partitions and site.partition is not None:
            # A site of one partition is asked in whichever is named.
            site = msgspec.structs.replace(site, partition=question.partition)
            own = msgspec.structs.replace(question, partition="")
        found += read_start(name, site, own)
    return told(question, found)


def _sites(question: api.GetStart, config: str | None) -> Sites:
    """The sites that are asked: of the configuration, or of the scheduler that answers here."""
    from adaptor.config.loading import config_path, load_config
    from adaptor.decisions.new_bags import check_sites
    from backends.registry import described_here

    path = config_path(config)
    sites = load_config(path).sites if path else _described(described_here(), question.partition)
    check_sites(filter(None, [question.site]), sites)
    return {name: each for name, each in sites.items() if question.site in ("", name)}


_CHOICES = re.compile(r"# partitions: (\{.*\})$", re.MULTILINE)
"""The line of a description that names all partitions which could be one site."""


def _described(text: str, partition: str) -> Sites:
    """The first site of a description, in all the partitions among which its requests could choose.

    `partition`: that is asked for; empty: all of them.
    """
    from adaptor.config.loading import parse_config

    sites = parse_config(text, "the scheduler here").sites
    choices = _CHOICES.search(text)
    if choices is None:
        return sites
    (site, *_) = sites.values()
    each = parse_config(f"sites: {{x: {{backend: {site.backend}, partitions: {choices[1]}}}}}", "partitions")
    together = each.sites["x"].partitions
    if partition not in ("", *together):
        return sites
    return {"here": msgspec.structs.replace(site, partition=None, partitions=together)}
