"""`adaptor site slots`: table, picture, JSON and figures, through the daemon and without one."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from adaptor import api
from adaptor.api import FreeStep, GpuTotals, SlotsView, SlotView
from adaptor.cli.operating.site_slots import picture
from adaptor.resources import TaskSize
from tests.cli.invoking import Cli, Serve

NOW = 1_700_000_000.0
HPC = SlotsView(
    site="hpc",
    observed=NOW,
    processors=64,
    free=[FreeStep(NOW, 16), FreeStep(NOW + 1200, 0), FreeStep(NOW + 4800, 64)],
    slots=[
        SlotView(start=NOW, end=NOW + 1200, processors=16, p=16, tr=1080),
        SlotView(start=NOW + 4800, end=None, processors=64, p=None, tr=None),
    ],
    problem="",
)
DOWN = SlotsView(site="far", observed=None, processors=0, free=[], slots=[], problem="squeue hangs\x1b[31m")


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("COLUMNS", "60")


def test_the_table_and_the_picture(cli: Cli, serve: Serve) -> None:
    daemon = serve({api.GetSlots: [HPC]})
    outcome = cli("site", "slots", "hpc")
    assert outcome.code == 0
    assert daemon.asked(api.GetSlots) == [api.GetSlots(["hpc"])]
    assert outcome.lines[0].startswith("hpc: 16 of 64 processors free now")
    assert outcome.lines[1].split() == ["processors", "start", "until", "duration", "request"]
    assert outcome.lines[2].split()[:2] == ["16", "now"]
    assert outcome.lines[2].endswith("20m       16 × 18m")
    assert "none fits" not in outcome.out, "a hole for no request says nothing beside the others"
    assert max(map(len, outcome.lines)) <= 60


def test_slots_for_tasks_of_a_size(cli: Cli, serve: Serve) -> None:
    size = TaskSize(processors=3, memory=8 * 2**30, gpus=2, gpu_type="a100")
    slot = SlotView(start=NOW, end=NOW + 1200, processors=16, p=15, tr=1080, tasks=5)
    gpus = [GpuTotals(type="", total=2, free=0), GpuTotals(type="a100", total=8, free=4)]
    view = msgspec.structs.replace(HPC, slots=[slot], task=size, gpus=gpus)
    daemon = serve({api.GetSlots: [view]})
    outcome = cli("site", "slots", "--cpus", "3", "--mem", "8G", "--gpus", "a100:2")
    assert daemon.asked(api.GetSlots) == [api.GetSlots([], size)]
    assert outcome.lines[0].startswith("hpc: 16 of 64 processors, 0 of 2 GPUs, 4 of 8 a100 GPUs free now")
    assert outcome.lines[1].split()[-1] == "tasks"
    assert outcome.lines[2].split()[-1] == "5"


def test_tasks_that_no_node_can_ever_run(cli: Cli, serve: Serve) -> None:
    view = msgspec.structs.replace(HPC, task=TaskSize(processors=99), no_room="each needs 99 processors")
    serve({api.GetSlots: [view]})
    assert cli("site", "slots", "--cpus", "99").lines[1:] == [
        "no such task can ever run there: each needs 99 processors"
    ]


@pytest.mark.parametrize(
    ("option", "value"),
    [("--gpus", "0.7"), ("--gpus", "1.5"), ("--gpus", "a100:"), ("--mem", "much"), ("--mem", "0")],
)
def test_sizes_that_are_none(cli: Cli, option: str, value: str) -> None:
    outcome = cli("site", "slots", option, value)
    assert outcome.code == 2
    assert option in outcome.err


def test_json(cli: Cli, serve: Serve) -> None:
    serve({api.GetSlots: [HPC]})
    (site,) = cli("site", "slots", "--json").value
    assert site["slots"][0] == {
        "start": "2023-11-14T22:13:20.000Z",
        "end": "2023-11-14T22:33:20.000Z",
        "processors": 16,
        "p": 16,
        "tr": 1080.0,
        "tasks": None,
    }
    assert site["free"][1] == {"time": "2023-11-14T22:33:20.000Z", "processors": 0}
    assert site["slots"][1]["end"] is None


def test_a_site_whose_queue_could_not_be_read(cli: Cli, serve: Serve) -> None:
    serve({api.GetSlots: [DOWN, HPC]})
    outcome = cli("site", "slots")
    assert outcome.code == 1
    assert outcome.lines[0] == "far: squeue hangs·[31m"
    assert any(line.startswith("hpc: 16 of 64") for line in outcome.lines), "the others are shown"


def test_without_a_daemon_the_schedulers_are_asked_from_here(cli: Cli, tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("sites:\n  here:\n    backend: local\n    processors: 3\n    limits: {max_tr: 1h}\n")
    outcome = cli("site", "slots", "--config", str(config))
    assert "no daemon is running" in outcome.err
    assert outcome.lines[0].startswith("here: 3 of 3 processors free now")
    assert outcome.lines[2].split() == ["3", "now", "-", "unlimited", "3", "×", "1h"]
    outcome = cli("site", "slots", "hree", "--config", str(config))
    assert outcome.code == 2
    assert "did you mean 'here'?" in outcome.err


@pytest.mark.parametrize("width", [1, 40, 79, 500])
def test_the_picture_shows_the_fewest_that_are_free(width: int) -> None:
    lines = list(picture(HPC, width))
    body = [line[3:] for line in lines[:-1]]
    assert len(body) == 8
    assert all(len(line) <= max(24, min(width, 164)) for line in lines)
    assert body[-1].startswith("█"), "16 are free now"
    assert body[0].strip("█ ") == "", "and all of them at the end"
    assert body[0].endswith("█")
    assert body[-3].startswith(" "), "24 are not free now"
    assert "·" in body[-1], "none are free in the middle"


def test_a_site_with_few_processors_has_a_line_for_each() -> None:
    small = SlotsView(
        site="s", observed=NOW, processors=2, free=[FreeStep(NOW, 2)], slots=[], problem=""
    )  # fmt: skip
    assert [line.split()[0] for line in picture(small, 40)][:2] == ["2", "1"]


def test_partitions_are_named_with_their_site(cli: Cli, serve: Serve) -> None:
    named = [
        msgspec.structs.replace(each, site="hpc", partition=p) for each, p in ((HPC, "short"), (DOWN, "long"))
    ]
    serve({api.GetSlots: named})
    outcome = cli("site", "slots", "hpc")
    assert outcome.code == 1
    assert outcome.lines[0].startswith("hpc/short: 16 of 64 processors free now")
    assert outcome.lines[-1].startswith("hpc/long: squeue hangs")


def test_a_reservation_of_a_year_does_not_hide_what_is_free_today(cli: Cli, serve: Serve) -> None:
    year = [FreeStep(NOW, 16), FreeStep(NOW + 7200, 64), FreeStep(NOW + 365 * 86400, 0)]
    drawn = list(picture(msgspec.structs.replace(HPC, free=year), 60))
    assert drawn[-1].split()[:2] == ["22:13:20", "23:02:37"]
    assert len(drawn[0]) > 20, "what becomes free in two hours is seen"


def test_where_no_request_fits_the_holes_are_shown(cli: Cli, serve: Serve) -> None:
    serve({api.GetSlots: [msgspec.structs.replace(HPC, slots=HPC.slots[1:])]})
    assert "none fits" in cli("site", "slots", "hpc").out
