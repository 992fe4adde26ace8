"""`status --sites`."""

from __future__ import annotations

from pathlib import Path

from adaptor import api
from adaptor.api import GpuTotals, PartitionView, SiteView
from tests.cli.invoking import Cli, Serve


def test_sites_with_limits_requests_and_problems(cli: Cli, serve: Serve) -> None:
    view = SiteView(
        name="hpc",
        backend="slurm",
        heuristic="adaptive",
        max_in_system=3,
        max_proc=None,
        max_tr=3600,
        pad=30.0,
        queued=1,
        running=2,
        processors=16,
        observed=1_700_000_000.0,
        problem="squeue does not answer",
        since=1_700_000_000.0,
        held=12,
        late=90.0,
    )
    serve({api.GetSites: [view]})
    outcome = cli("status", "--sites")
    assert outcome.lines[1].split() == [
        "hpc",
        "slurm",
        *["1+2", "of", "3", "12", "of", "16", "-", "1h", "silent"],
    ]
    assert outcome.lines[2].strip() == "problem (since 2023-11-14): squeue does not answer"
    assert outcome.lines[3].strip() == "requests start 1m 30s later than predicted"
    assert cli("status", "--sites", "--json").value[0]["max_tr"] == 3600.0


def test_it_fits_a_terminal_of_80_columns(cli: Cli, serve: Serve) -> None:
    gpus = [GpuTotals(type="", total=2, free=0), GpuTotals(type="a100", total=8, free=8)]
    common = {
        "heuristic": "adaptive",
        "max_in_system": 64,
        "max_proc": 16_384,
        "max_tr": 259_200.0,
        "pad": 30.0,
    }
    common |= {
        "pad": 30.0,
        "queued": 12,
        "running": 52,
        "processors": 16_384,
        "held": 12_000,
        "observed": 1.0,
        "problem": "",
    }
    views = [
        SiteView(name="leonardo", backend="slurm", gpus=gpus, **common),  # type: ignore[arg-type]
        SiteView(name="old", backend="gridengine", **common),  # type: ignore[arg-type]
    ]
    serve({api.GetSites: views})
    titles, first, below, second = cli("status", "--sites").lines
    assert max(map(len, (titles, first, second))) <= 80
    assert below == "  gpus: 2, 8 a100"


def test_it_has_a_line_for_each_partition(cli: Cli, serve: Serve) -> None:
    common = {"max_in_system": 3, "max_proc": 8, "max_tr": 60.0}
    short = PartitionView(name="short", queued=1, running=2, held=5, processors=8, **common)  # type: ignore[arg-type]
    long = PartitionView(name="long", closed="partition long is down", **common)  # type: ignore[arg-type]
    whole = {"backend": "slurm", "heuristic": "static", "queued": 1, "running": 2, "processors": 16}
    whole |= {"observed": None, "problem": "", "pad": 30.0, **common}
    views = [
        SiteView(name="hpc", partitions=[short, long], **whole),  # type: ignore[arg-type]
        SiteView(name="old", **whole),  # type: ignore[arg-type]
    ]
    serve({api.GetSites: views})
    _, hpc, first, second, closed, old = cli("status", "--sites").lines
    assert hpc.split()[0] == "hpc"
    assert first.split() == ["hpc/short", *["1+2", "of", "3", "5", "of", "8", "8", "1m"]]
    assert second.split() == ["hpc/long", *["0+0", "of", "3", "0", "8", "1m", "closed"]]
    assert closed == "  closed: partition long is down"
    assert old.split()[0] == "old"


def test_partitions_without_a_daemon(cli: Cli, tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("sites: {hpc: {backend: slurm, partitions: {a: {limits: {max_proc: 4}}, b: {}}}}\n")
    _, _, first, second = cli("--config", str(config), "status", "--sites").lines
    assert first.split() == ["hpc/a", "0+0", "0", "4", "-"]
    assert second.split() == ["hpc/b", "0+0", "0", "-", "-"]


def test_sites_without_a_daemon(cli: Cli, tmp_path: Path) -> None:
    assert cli("status", "--sites").lines[1].split()[0] == "local"
    config = tmp_path / "config.yaml"
    config.write_text("sites:\n  big:\n    backend: slurm\n    limits: {max_proc: 64}\n")
    assert cli("status", "--sites", "--config", str(config), "--json").value[0]["max_proc"] == 64
    config.write_text("sites:\n  big:\n    backnd: slurm\n")
    outcome = cli("status", "--sites", "--config", str(config))
    assert outcome.code == 2
    assert f"{config}:3" in outcome.err
