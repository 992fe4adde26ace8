"""The experiment on a small invented trace that stands in for the real ones."""

from __future__ import annotations

import csv
import gzip
import json
import re
from pathlib import Path

import pytest

from adaptor.errors import UsageError
from adaptor_experiments.commands.replay import replay
from adaptor_experiments.derose.design import PARTS, WORKLOADS, JobType, Settings, submission
from adaptor_simulation.files import ReplayError, TraceError
from tests.simulation.invoking_replay import call
from tests.simulation.swf_text import line

SMALL = Path(__file__).parents[3] / "fixtures" / "traces" / "small.swf"


@pytest.fixture
def traces(tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    for workload in WORKLOADS:
        (folder / f"{workload.file}.swf.gz").write_bytes(gzip.compress(SMALL.read_bytes()))
    return folder


def derose(traces, output, *arguments):
    every = ["derose", "--traces", traces, "--output", output, "--tasks", "100", "--mean", "100,1000"]
    every += ["--processes", "1", *arguments]
    return call(replay, *every)


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def cells_of(out):
    """Those of all traces: the kind of bag, by heuristic."""
    found = json.loads((out / "comparison.json").read_text())
    return [cell for trace in found["traces"] for cell in trace["cells"]]


def figures(path):
    """All but the time that the planner took."""
    return [{name: value for name, value in row.items() if name != "planning"} for row in rows_of(path)]


def test_all_that_a_reader_gets(traces, tmp_path):
    out = tmp_path / "out"
    result = derose(traces, out, "--samples", "1", "--max-pending", "1,3")
    assert "SDSC BlueHorizon" in result.output
    rows = rows_of(out / "runs.csv")
    assert len(rows) == len({tuple(row.items()) for row in figures(out / "runs.csv")}) == 4 * 6 * 2 * 2
    assert all(int(row["bound"]) <= int(row["turnaround"]) for row in rows)
    assert len(cells_of(out)) == 4 * 6 * 2 * 2
    page = (out / "report.html").read_text()
    assert {row["paper"] for row in rows_of(out / "table-3.csv")} == {"-"}
    assert "14.74" not in page
    told = "number of tasks per job: 100 (whole: 100, 1,000, 10,000, 100,000)"
    assert told in page.partition("</section>")[0]
    assert told in result.output
    assert [row["paper: load"] for row in rows_of(out / "table-1.csv")] == ["72%", "73%", "54%", "-"]
    claims = {row[""]: row for row in rows_of(out / "claims.csv")}
    assert [*claims] == [*"ABCDEFGHIJKLMNO"]
    assert sum(int(claims["A"][says]) for says in ("confirm", "contradict", "open")) == 3 * 6 * 2
    assert {key for key, row in claims.items() if row["verdict"] == "-"} == {*"BFGHIMN"}
    assert page.count("data:image/svg+xml;base64,") == 3
    assert "SDSC BlueHorizon: adaptive " in page.partition("</section>")[0]
    assert "338" in page
    assert 'src="http' not in page
    assert sorted(path.name for path in (out / "figures").iterdir()) == [
        "figure-3.png", "figure-3.svg", "figure-6.png", "figure-6.svg", "figure-blue.png",
        "figure-blue.svg",
    ]  # fmt: skip


def test_a_quick_sample_has_both_ends_of_the_limit_and_the_middle_heterogeneity(traces, tmp_path):
    derose(traces, tmp_path / "out", "--quick", "--samples", "1", "--trace", "sdsc-sp2")
    kinds = [cell["kind"] for cell in cells_of(tmp_path / "out")]
    assert {(kind["max_pending"], kind["heterogeneity"]) for kind in kinds} == {(1, 2), (6, 2)}
    assert {kind["mean"] for kind in kinds} == {100, 1000}
    page = (tmp_path / "out" / "report.html").read_text()
    assert "submission times: 1 (whole: 100)" in page.partition("</section>")[0]


def test_static_may_ask_for_the_whole_machine(traces, tmp_path):
    arguments = ("--trace", "ctc-sp2-512", "--samples", "1", "--max-pending", "1")
    for output, more in (("share", ()), ("maximum", ("--static-maximum",))):
        derose(traces, tmp_path / output, *arguments, *more)
    share, maximum = (figures(tmp_path / output / "runs.csv") for output in ("share", "maximum"))
    for one, two in zip(share, maximum, strict=True):
        if one["heuristic"] == "adaptive":
            assert one == two
        else:
            assert int(one["held"]) < int(two["held"])
            assert int(two["held"]) % 512 == 0
    page = (tmp_path / "maximum" / "report.html").read_text()
    assert "static asks for the whole machine: yes (whole: no)" in page.partition("</section>")[0]


def test_the_load_may_be_higher_than_the_traces(traces, tmp_path):
    arguments = ("--trace", "ctc-sp2-512", "--samples", "2", "--max-pending", "1")
    for output, more in (("as-it-is", ()), ("loaded", ("--stretch", "0.05"))):
        derose(traces, tmp_path / output, *arguments, *more)
    usual, loaded = (rows_of(tmp_path / output / "runs.csv") for output in ("as-it-is", "loaded"))
    assert max(int(row["submitted"]) for row in loaded) < max(int(row["submitted"]) for row in usual)
    page = (tmp_path / "loaded" / "report.html").read_text()
    assert "interarrival times of local jobs, ×: 0.05 (whole: 1)" in page.partition("</section>")[0]
    (workload,) = rows_of(tmp_path / "loaded" / "table-1.csv")
    assert (workload["paper: load"], workload["reason"]) == ("-", "not in the paper")
    assert {row["verdict"] for row in rows_of(tmp_path / "as-it-is" / "claims.csv")} > {"confirms"}
    assert not (tmp_path / "loaded" / "claims.csv").exists()


def test_a_first_guess_for_all_and_where_they_differ_the_page_says_which(traces, tmp_path):
    arguments = ("--trace", "sdsc-sp2", "--samples", "1", "--max-pending", "1")
    arguments += ("--heuristic", "adaptive,completion")
    for output, more in (("paper", ()), ("same", ("--initial-tr", "1m"))):
        derose(traces, tmp_path / output, *arguments, *more)
    pages = [(tmp_path / output / "report.html").read_text() for output in ("paper", "same")]
    tops = [page.partition("</section>")[0] for page in pages]
    assert "(3,600 s by adaptive, 60 s by completion)" in tops[0]
    assert "begin with different guesses" not in tops[1]
    assert "60 s by adaptive, 60 s by completion" in " ".join(pages[1].split())


def test_the_site_may_schedule_by_easy_backfilling(traces, tmp_path):
    arguments = ("--trace", "ctc-sp2-512", "--samples", "2", "--max-pending", "1", "--stretch", "0.05")
    for output, more in (("conservative", ()), ("easy", ("--scheduler", "easy"))):
        derose(traces, tmp_path / output, *arguments, *more)
    usual, easy = (rows_of(tmp_path / output / "runs.csv") for output in ("conservative", "easy"))
    assert [row["submitted"] for row in usual] == [row["submitted"] for row in easy]
    assert [row["turnaround"] for row in usual] != [row["turnaround"] for row in easy]
    assert "easy backfilling" in " ".join((tmp_path / "easy" / "report.html").read_text().split())


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
    assert f"<li>{first}</li>" in (out / "report.html").read_text().partition("</section>")[0]
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
    arguments = ("--trace", "sdsc-sp2", "--samples", "1", "--heuristic", "static", "--max-pending", "1")
    result = derose(traces, tmp_path / "out", *arguments)
    assert "Table 3: average speedup" not in result.output
    rows = {row["figure"]: row["static"] for row in rows_of(tmp_path / "out" / "compared-sdsc-sp2.csv")}
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
    ],
)
def test_a_trace_that_cannot_be_meant(tmp_path, monkeypatch, arguments, told):
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


@pytest.mark.parametrize("wrong", ["", "best", "static,best"])
def test_a_heuristic_that_does_not_exist(traces, tmp_path, wrong):
    with pytest.raises(UsageError, match=r"--heuristic: '\w*' is none of static, adaptive"):
        derose(traces, tmp_path / "out", "--heuristic", wrong)


def test_it_goes_on_where_it_was_stopped_and_counts_nothing_twice(traces, tmp_path):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    arguments = ("--trace", "sdsc-sp2", "--max-pending", "2")
    derose(traces, whole, *arguments, "--samples", "3")
    derose(traces, stopped, *arguments, "--samples", "1")
    (first,) = (stopped / "samples").iterdir()
    made = first.stat().st_mtime_ns
    derose(traces, stopped, *arguments, "--samples", "3")
    assert first.stat().st_mtime_ns == made
    assert figures(stopped / "runs.csv") == figures(whole / "runs.csv")
    assert (stopped / "table-3.csv").read_text() == (whole / "table-3.csv").read_text()


def test_traces_that_are_not_there(tmp_path):
    with pytest.raises(ReplayError, match="adaptor trace fetch"):
        derose(tmp_path, tmp_path / "out")


def test_no_folder_of_traces_at_all(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="--traces"):
        call(replay, "derose", "--output", tmp_path / "out")


@pytest.mark.parametrize("wrong", ["7", "", "100,x", ","])
def test_a_part_that_does_not_exist(traces, tmp_path, wrong):
    with pytest.raises(UsageError, match="is none of 100, 1000, 10000, 100000"):
        derose(traces, tmp_path / "out", "--tasks", wrong)


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
