"""The experiment on a small invented trace that stands in for the real ones."""

from __future__ import annotations

import json
import re

import pytest

from adaptor.errors import UsageError
from adaptor_experiments.commands.replay import replay
from adaptor_experiments.derose.design import PARTS, WORKLOADS, JobType, Settings, submission
from adaptor_simulation.files import ReplayError, TraceError
from tests.experiments.conftest import SMALL
from tests.experiments.leavings import rows_of, top_of
from tests.simulation.invoking_replay import call
from tests.simulation.swf_text import line


def derose(traces, output, *arguments):
    every = ["derose", "--traces", traces, "--output", output, "--tasks", "100", "--mean", "100,1000"]
    every += ["--processes", "1", *arguments]
    return call(replay, *every)


def one_limit(traces, folder, trace, samples, **runs):
    """The folder of each run of one trace by one limit, with these options."""
    common = ("--trace", trace, "--samples", samples, "--max-pending", "1")
    for name, options in runs.items():
        derose(traces, folder / name, *common, *options)
    return [folder / name for name in runs]


def cells_of(out):
    """Those of all traces: the kind of bag, by heuristic."""
    found = json.loads((out / "comparison.json").read_text())
    return [cell for trace in found["traces"] for cell in trace["cells"]]


def figures(out):
    """All but the time that the planner took."""
    return [{name: of for name, of in row.items() if name != "planning"} for row in rows_of(out / "runs.csv")]


@pytest.mark.nightly  # 96 cells
def test_all_that_a_reader_gets(traces, tmp_path):
    out = tmp_path / "out"
    result = derose(traces, out, "--samples", "1", "--max-pending", "1,3")
    assert "SDSC BlueHorizon" in result.output
    rows = rows_of(out / "runs.csv")
    assert len(rows) == len({tuple(row.items()) for row in figures(out)}) == 4 * 6 * 2 * 2
    assert all(int(row["bound"]) <= int(row["turnaround"]) for row in rows)
    assert len(cells_of(out)) == 4 * 6 * 2 * 2
    page = (out / "report.html").read_text()
    assert {row["paper"] for row in rows_of(out / "table-3.csv")} == {"-"}
    assert "14.74" not in page
    told = "number of tasks per job: 100 (whole: 100, 1,000, 10,000, 100,000)"
    assert told in top_of(out)
    assert told in result.output
    assert [row["paper: load"] for row in rows_of(out / "table-1.csv")] == ["72%", "73%", "54%", "-"]
    claims = {row[""]: row for row in rows_of(out / "claims.csv")}
    assert [*claims] == [*"ABCDEFGHIJKLMNO"]
    assert sum(int(claims["A"][says]) for says in ("confirm", "contradict", "open")) == 3 * 6 * 2
    assert {key for key, row in claims.items() if row["verdict"] == "-"} == {*"BFGHIMN"}
    assert page.count("data:image/svg+xml;base64,") == 3
    assert "SDSC BlueHorizon: adaptive " in top_of(out)
    assert "338" in page
    drawn = {path.name for path in (out / "figures").iterdir()}
    assert drawn == {f"figure-{name}.{kind}" for name in ("3", "6", "blue") for kind in ("png", "svg")}


def test_a_quick_sample_has_both_ends_of_the_limit_and_the_middle_heterogeneity(traces, tmp_path):
    derose(traces, tmp_path / "out", "--quick", "--samples", "1", "--trace", "sdsc-sp2")
    kinds = [cell["kind"] for cell in cells_of(tmp_path / "out")]
    assert {(kind["max_pending"], kind["heterogeneity"]) for kind in kinds} == {(1, 2), (6, 2)}
    assert {kind["mean"] for kind in kinds} == {100, 1000}
    assert "submission times: 1 (whole: 100)" in top_of(tmp_path / "out")


def test_static_may_ask_for_the_whole_machine(traces, tmp_path):
    runs = one_limit(traces, tmp_path, "ctc-sp2-512", 1, share=(), maximum=("--static-maximum",))
    for one, two in zip(*map(figures, runs), strict=True):
        if one["heuristic"] == "adaptive":
            assert one == two
        else:
            assert int(one["held"]) < int(two["held"])
            assert int(two["held"]) % 512 == 0
    assert "static asks for the whole machine: yes (whole: no)" in top_of(tmp_path / "maximum")


@pytest.mark.nightly  # three runs; each option has its own test of the simulation
def test_the_load_may_be_higher_than_the_traces_and_the_site_may_schedule_by_easy(traces, tmp_path):
    stretch = ("--stretch", "0.05")
    easy = (*stretch, "--scheduler", "easy")
    runs = one_limit(traces, tmp_path, "ctc-sp2-512", 2, usual=(), loaded=stretch, easy=easy)
    usual, loaded, backfilled = map(figures, runs)
    assert max(int(row["submitted"]) for row in loaded) < max(int(row["submitted"]) for row in usual)
    assert "interarrival times of local jobs, ×: 0.05 (whole: 1)" in top_of(tmp_path / "loaded")
    (workload,) = rows_of(tmp_path / "loaded" / "table-1.csv")
    assert (workload["paper: load"], workload["reason"]) == ("-", "not in the paper")
    assert {row["verdict"] for row in rows_of(tmp_path / "usual" / "claims.csv")} > {"confirms"}
    assert not (tmp_path / "loaded" / "claims.csv").exists()
    assert [row["submitted"] for row in loaded] == [row["submitted"] for row in backfilled]
    assert [row["turnaround"] for row in loaded] != [row["turnaround"] for row in backfilled]
    assert "easy backfilling" in " ".join((tmp_path / "easy" / "report.html").read_text().split())


def test_a_first_guess_for_all_and_where_they_differ_the_page_says_which(traces, tmp_path):
    two = ("--heuristic", "adaptive,completion")
    one_limit(traces, tmp_path, "sdsc-sp2", 1, paper=two, same=(*two, "--initial-tr", "1m"))
    assert "(3,600 s by adaptive, 60 s by completion)" in top_of(tmp_path / "paper")
    assert "begin with different guesses" not in top_of(tmp_path / "same")
    page = (tmp_path / "same" / "report.html").read_text()
    assert "60 s by adaptive, 60 s by completion" in " ".join(page.split())


def test_looks_at_the_queue_may_be_rare_and_the_page_says_so(traces, tmp_path):
    (out,) = one_limit(traces, tmp_path, "sdsc-sp2", 1, out=("--poll-interval", "1h"))
    assert "time between two looks at the queue, s: 3,600 (whole: 0)" in top_of(out)


def test_heuristics_are_compared_on_a_trace_of_ones_own(tmp_path):
    mine = tmp_path / "mine (1).swf"
    mine.write_bytes(SMALL.read_bytes())
    out = tmp_path / "out"
    arguments = ("--trace", mine, "--processors", "64", "--heuristic", "adaptive,static", "--samples", "2")
    result = derose(tmp_path, out, *arguments, "--max-pending", "1,3")
    found = json.loads((out / "comparison.json").read_text())
    first, *_ = found["found"]
    assert first.startswith("adaptive ")
    assert "static (geometric mean of 12 cells, " in first
    assert first in result.output.splitlines()
    assert f"<li>{first}</li>" in top_of(out)
    (trace,) = found["traces"]
    assert (trace["trace"], trace["processors"]) == ("mine-1--64p", 64)
    assert [cell["heuristic"] for cell in trace["cells"]] == ["static", "adaptive"] * 12
    for static, adaptive in zip(trace["cells"][::2], trace["cells"][1::2], strict=True):
        ratio = static["means"]["turnaround"] / adaptive["means"]["turnaround"]
        assert adaptive["over"]["static"]["value"] == pytest.approx(ratio)
    mine.write_text(SMALL.read_text() + ";\n")
    derose(tmp_path, out, *arguments, "--max-pending", "1,3")
    assert len(list((out / "samples").iterdir())) == 4  # another file by the same name is another trace


def test_one_heuristic_alone_is_measured_too(traces, tmp_path):
    (out,) = one_limit(traces, tmp_path, "sdsc-sp2", 1, out=("--heuristic", "static"))
    assert not (out / "table-3.csv").exists()
    rows = {row["figure"]: row["static"] for row in rows_of(out / "compared-sdsc-sp2.csv")}
    assert float(rows["requests for each bag"]) >= 1


def test_the_cells_of_the_goals_are_54(traces, tmp_path):
    goals = PARTS["goals"]
    assert len(Settings(**goals).job_types) * len(goals["max_pending"]) == 54
    derose(traces, tmp_path / "out", "--cells", "goals", "--samples", "1", "--trace", "sdsc-sp2")
    kinds = [cell["kind"] for cell in cells_of(tmp_path / "out")]
    assert {(kind["heterogeneity"], kind["max_pending"]) for kind in kinds} == {
        (heterogeneity, limit) for heterogeneity in (1, 4) for limit in (1, 3, 6)
    }
    assert len(kinds) == 2 * 2 * 3 * 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--trace", "sdsc"), "none of sdsc-sp2, sdsc-blue, ctc-sp2-512, ctc-sp2-338, and no file"),
        (("--trace", "sdsc-sp2", "--processors", "64"), "--processors is for a --trace FILE"),
        (("--trace", "a/t.swf", "--trace", "b/t.swf"), "have one name"),
        (("--heuristic", "static,best"), "--heuristic: 'best' is none of static, adaptive"),
        (("--tasks", "100,x"), "--tasks: 'x' is none of 100, 1000, 10000, 100000"),
        (("--tasks", "7"), "--tasks: '7' is none of 100"),
        (("--tasks", ","), "--tasks: ',' is none of 100"),
        (("--mean", ""), "--mean: '' is none of 100"),
    ],
)
def test_a_trace_or_part_that_cannot_be_meant(tmp_path, monkeypatch, arguments, told):
    monkeypatch.chdir(tmp_path)
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "t.swf").write_bytes(SMALL.read_bytes())
    with pytest.raises(UsageError, match=re.escape(told)):
        derose(tmp_path, tmp_path / "out", *arguments)


def test_a_trace_without_requested_times_is_no_trace_for_this(tmp_path):
    bare = tmp_path / "bare.swf"
    bare.write_text("; MaxProcs: 8\n" + line(1, 0, 10, allocated=4, limit=-1))
    with pytest.raises(TraceError, match=r"bare.swf: no job .*; the jobs need requested times$"):
        derose(tmp_path, tmp_path / "out", "--trace", bare)


def test_it_goes_on_where_it_was_stopped_and_counts_nothing_twice(traces, tmp_path):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    arguments = ("--trace", "sdsc-sp2", "--max-pending", "2", "--mean", "1000")
    derose(traces, whole, *arguments, "--samples", "2")
    derose(traces, stopped, *arguments, "--samples", "1")
    (first,) = (stopped / "samples").iterdir()
    made = first.stat().st_mtime_ns
    derose(traces, stopped, *arguments, "--samples", "2")
    assert first.stat().st_mtime_ns == made
    assert figures(stopped) == figures(whole)
    assert (stopped / "table-3.csv").read_text() == (whole / "table-3.csv").read_text()


def test_traces_that_are_not_there(tmp_path, monkeypatch):
    with pytest.raises(ReplayError, match="adaptor trace fetch"):
        derose(tmp_path, tmp_path / "out")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="--traces"):
        call(replay, "derose", "--output", tmp_path / "out")


def test_the_whole_experiment_is_that_of_the_paper():
    settings = Settings()
    assert len(settings.job_types) == 36
    assert settings.jobs_per_sample * 100 * 3 == 129_600


@pytest.mark.parametrize(("heterogeneity", "low", "high"), [(1, 1000, 1000), (2, 500, 1500), (4, 250, 1750)])
def test_runtimes_are_those_of_table_2(heterogeneity, low, high):
    kind = JobType(10_000, 1000, heterogeneity)
    runtimes = kind.runtimes(1, 0)
    assert low <= runtimes.min() <= runtimes.max() <= high
    assert abs(runtimes.mean() - 1000) < 20
    assert (runtimes == kind.runtimes(1, 0)).all()
    assert heterogeneity == 1 or (runtimes != kind.runtimes(1, 1)).any()


def test_submissions_cover_the_trace():
    drawn = [submission(WORKLOADS[0], 50, 150, 1, sample) for sample in range(200)]
    assert 50 <= min(drawn) < 60
    assert 140 < max(drawn) <= 150
