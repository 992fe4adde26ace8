"""`adaptor replay bag`: a bag on somebody's queue."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from adaptor.crafting.situation import SiteRules
from adaptor.errors import ConfigError, UsageError
from adaptor.model import Limits
from adaptor_experiments.commands.replay import replay
from adaptor_experiments.figures.gantt import bars, time_unit
from adaptor_simulation.cluster import cluster_of_processors
from adaptor_simulation.files import ReplayError, TraceError
from adaptor_simulation.grid_job import INSTANT_WORKERS, GridTerms
from adaptor_simulation.what_if import what_if
from tests.examples import examples
from tests.simulation.grid_strategies import bags, scenes, terms
from tests.simulation.invoking_replay import call
from tests.simulation.swf_text import line
from tests.simulation.trace_strategies import PROCESSORS, jobs_from

SMALL = Path(__file__).parents[2] / "fixtures" / "traces" / "small.swf"


def ask(*arguments, tasks=50, time="10m"):
    return call(replay, "bag", "--trace", SMALL, "--tasks", tasks, "--task-time", time, *arguments).output


def site_file(folder, text):
    path = folder / "site.yaml"
    path.write_text(text)
    return path


@given(scenes, bags, terms())
@examples(150)
def test_the_chart_holds_every_job_once_and_nothing_overlaps(scene, runtimes, terms):
    jobs, policy, at = scene
    (found,) = what_if(cluster_of_processors(jobs, PROCESSORS, policy), at, np.array(runtimes), [terms])
    local, ours = bars(jobs, PROCESSORS, found, (-1, 10_000))
    assert sum(map(area, local)) == jobs.area
    assert sum(map(area, ours)) == found.result.held
    assert sum(area(bar) * bar.used for bar in ours) == pytest.approx(found.result.work)
    taken = np.zeros((1 + max(bar.end for bar in local + ours), PROCESSORS), int)
    for bar in local + ours:
        assert bar.low + bar.processors <= PROCESSORS
        taken[bar.start : bar.end, bar.low : bar.low + bar.processors] += 1
    assert taken.max() == 1


def area(bar):
    return (bar.end - bar.start) * bar.processors


@pytest.mark.parametrize(
    ("span", "unit"),
    [(60, (1, "seconds")), (3600, (60, "minutes")), (86400, (3600, "hours")), (10**6, (86400, "days"))],
)
def test_the_axis_of_a_short_bag_has_short_units(span, unit):
    assert time_unit(span) == unit


def test_the_chart_has_a_title_and_shows_requests_that_wait_or_are_withdrawn(tmp_path):
    """In an SVG with text as text, what a reader sees can be looked for."""
    import matplotlib

    picture = tmp_path / "bag.svg"
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        ask("--heuristic", "static,adaptive", "--gantt", picture, "--max-pending", "6", tasks=400)
    drawn = picture.read_text(encoding="utf-8")
    assert "400 tasks of 10m on small.swf, submitted at" in drawn
    for label in ("request waits", "request is withdrawn", "pilots: used", "pilots: wasted", "local jobs"):
        assert drawn.count(f">{label}<") == 1, label
    assert ">static: " in drawn
    assert "hours since the bag was submitted" in drawn


def test_what_it_means_for_the_local_jobs():
    """Ours takes the hole of 10 s in front of a wide job; the narrow job behind comes too late for it."""
    jobs = jobs_from([(0, 4, 10, 10), (0, 8, 20, 20), (5, 4, 5, 5)])
    rules = SiteRules(limits=Limits(max_pending_requests=1, max_proc=4, max_tr=100))
    terms = GridTerms(rules=rules, heuristic="adaptive", workers=INSTANT_WORKERS, initial_tr=10.0)
    (found,) = what_if(cluster_of_processors(jobs, PROCESSORS, "conservative"), 0, np.full(4, 10), [terms])
    assert found.result.turnaround == found.bound == 10
    assert found.starts.tolist() == [0, 10, 30]
    waits = found.waits
    assert (waits.jobs, waits.mean_without, waits.mean_with) == (2, 5.0, 17.5)
    assert (waits.delayed, waits.advanced, waits.largest_delay) == (1, 0, 25)


def test_a_bag_beside_the_other_heuristic_for_people(tmp_path):
    picture = tmp_path / "bag.png"
    output = ask("--heuristic", "adaptive,static", "--gantt", picture, "--seed", "3", time="lognormal(5m, 1)")
    assert output.splitlines()[0].split() == ["static", "adaptive"]
    for title in ("turnaround", "processor-hours wasted", "mean wait with us"):
        assert title in output
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_as_json_with_a_site_and_other_limits(tmp_path):
    site = site_file(
        tmp_path,
        "sites:\n  hpc:\n    backend: slurm\n    pad: 1m\n    heuristic: static\n"
        "    limits: {max_pending_requests: 2, max_proc: 16, max_tr: 2h}\n",
    )
    (told,) = json.loads(ask("--site", site, "--json", "--at", "1d", tasks=300))
    assert told["heuristic"] == "static"
    assert told["submitted"] == 86400
    assert {(request["p"], request["tr"]) for request in told["requests"]} == {(16, 7200)}
    assert sum(request["tasks"] for request in told["requests"]) == 300
    assert told["processor_seconds_used"] == 300 * 600
    (told,) = json.loads(ask("--site", site, "--json", "--max-proc", "8", "--max-tr", "1h", tasks=300))
    assert {(request["p"], request["tr"]) for request in told["requests"]} == {(8, 3600)}


@pytest.mark.parametrize(("backend", "margin"), [("local", 0), ("pbs", 20), ("slurm", 100)])
def test_the_slot_margin_of_a_sites_scheduler_holds_in_replay(tmp_path, backend, margin):
    """A hole before a job on all processors takes a request of 480 s only with the margin to spare."""
    site = site_file(tmp_path, f"sites:\n  hpc: {{backend: {backend}, pad: 1m, initial_tr: 1m}}\n")
    for hole in (480 + margin, 479 + margin):
        trace = tmp_path / f"{hole}.swf"
        held = line(1, 0, 2 + hole, allocated=4, requested=4, limit=2 + hole)
        wide = line(2, 1, 600, allocated=8, requested=8, limit=600)
        trace.write_text(f"; MaxProcs: 8\n{held}{wide}")
        asked = ("--trace", trace, "--site", site, "--json", "--at", "2")
        (told,) = json.loads(ask(*asked, tasks=2000, time="10"))
        first = told["requests"][0]
        assert first["started"] == 2
        assert (first["tr"] == 480) == (hole - margin == 480)


def test_the_same_seed_gives_the_same_answer():
    one, two = (ask("--json", "--seed", "5", time="exponential(10m)") for _ in range(2))
    assert one == two
    assert one != ask("--json", "--seed", "6", time="exponential(10m)")


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (("--max-tr", "5m"), ReplayError, "600 s fits into no request"),
        (("--max-tr", "soon"), UsageError, "--max-tr"),
        (("--at", "-3"), UsageError, "--at"),
        (("--at", "400d"), UsageError, r"--at 400d: the jobs of .*small\.swf come and run from .* to "),
        (("--at", "999999999999999999999d"), UsageError, "--at"),
        (("--heuristic", "adaptive,greedy"), UsageError, "'greedy' is none of static, adaptive"),
        (("--site", "no.yaml"), ConfigError, r"no\.yaml"),
    ],
)
def test_what_cannot_be_done_is_said_at_once(arguments, error, says):
    with pytest.raises(error, match=says):
        ask(*arguments)


def test_a_trace_without_requested_times_can_be_used_all_the_same(tmp_path):
    trace = tmp_path / "t.swf"
    trace.write_text("; MaxProcs: 8\n" + "".join(line(n, 100 * n, 50, limit=-1) for n in range(9)) + "oops\n")
    asked = ("--trace", trace, "--lenient", "--max-tr", "1h")
    with pytest.raises(TraceError, match="--missing-request run"):
        ask(*asked)
    assert "turnaround" in ask(*asked, "--missing-request", "run", "--zero-run", "second")


@pytest.mark.parametrize("option", ["--tasks", "--max-pending", "--max-proc", "--processors"])
def test_numbers_beyond_all_measure_are_refused(option):
    result = call(replay, "bag", "--trace", SMALL, "--task-time", "1m", "--tasks", 5, option, 10**20)
    assert result.exit_code == 2
    assert f"'{option}': {10**20} is not in the range" in result.output


def test_a_site_among_several_must_be_named(tmp_path):
    site = site_file(tmp_path, "sites:\n  a: {backend: local}\n  b: {backend: local}\n")
    with pytest.raises(UsageError, match="--site-name: a, b"):
        ask("--site", site)
    with pytest.raises(UsageError, match="no site 'c'; there are a, b"):
        ask("--site", site, "--site-name", "c")
    assert "turnaround" in ask("--site", site, "--site-name", "b")


def test_a_partition_among_several_must_be_named(tmp_path):
    text = "sites: {c: {backend: slurm, partitions: {short: {limits: {max_tr: 1h}}, long: {}}}}"
    site = site_file(tmp_path, text)
    with pytest.raises(UsageError, match="--site-name: c/short, c/long"):
        ask("--site", site)
    assert "turnaround" in ask("--site", site, "--site-name", "c/short")


def test_a_picture_that_cannot_be_written(tmp_path):
    for name in ("no-such-folder/bag.png", "bag.nonsense"):
        with pytest.raises(ReplayError, match="bag"):
            ask("--gantt", tmp_path / name)
