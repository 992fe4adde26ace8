"""Agent mode on a real Slurm: its prolog frees the nodes, its epilog offers them again."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from adaptor.cli.main import program
from adaptor.processes.identity import start_ticks
from adaptor.reports import JobState
from backends.base import SubmitRefused
from tests.clusters.slurm import ThrowawaySlurm, available
from tests.clusters.slurm_conf import ClusterOptions
from tests.donation_agents.donated_nodes import DonatedNodes
from tests.donation_agents.patience import PATIENCE
from tests.living import is_alive, until

pytestmark = pytest.mark.slurm
NODES = ("n1", "n2", "n3")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="lent-") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def lent(folder: Path) -> Iterator[DonatedNodes]:
    nodes = DonatedNodes(folder)
    yield nodes
    nodes.end_all()


@pytest.fixture(scope="module")
def hooked(folder: Path, lent: DonatedNodes) -> Iterator[ThrowawaySlurm]:
    """A Slurm with the prolog and the epilog that `adaptor site install-hooks` writes."""
    reason = available()
    if reason:
        pytest.skip(reason)
    config = folder / "config.yaml"
    donation = f"{{mode: agent, runtime_directory: {lent.runtime}, reclaim_timeout: {PATIENCE:g}}}"
    config.write_text(f"sites: {{hpc: {{backend: slurm, donation: {donation}}}}}\n")
    words = ["--config", str(config), "site", "install-hooks", "hpc", "--write", str(folder / "hooks")]
    done = CliRunner().invoke(program, words)
    assert done.exit_code == 0, done.output
    extra = [line.strip() for line in done.output.splitlines() if line.startswith("    ")]
    assert [line.partition("=")[0] for line in extra] == ["Prolog", "Epilog", "PrologFlags"]
    with ThrowawaySlurm(ClusterOptions(nodes=3, extra=tuple(extra))) as cluster:
        yield cluster


def job(slurm: ThrowawaySlurm, folder: Path, nodes: str, processes: list[tuple[int, int | None]]) -> Path:
    """Submit a local job for these nodes; what its script sees of these processes when it starts."""
    seen = folder / f"seen-{nodes}"
    look = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from adaptor.processes.identity import start_ticks
alive = [pid for pid, ticks in {processes!r} if start_ticks(pid) == ticks]
with open({str(seen) + ".new"!r}, "w") as file:
    print(os.environ["SLURM_JOB_ID"], *alive, file=file)
os.rename({str(seen) + ".new"!r}, {str(seen)!r})
"""
    script = folder / f"look-{nodes}.py"
    script.write_text(
        f"#!{sys.executable}\n{look}\nimport time\nwhile os.path.exists({str(script)!r}): time.sleep(0.1)\n"
    )
    script.chmod(0o755)
    count = str(len(nodes.split(",")))
    slurm.run(
        ["sbatch", f"--nodelist={nodes}", f"-N{count}", "--exclusive", "-o/dev/null", "-t1", str(script)]
    )
    return seen


def states(slurm: ThrowawaySlurm) -> dict[str, str]:
    rows = slurm.run(["sinfo", "-h", "-N", "-p", "batch", "-o", "%N %T"]).split()
    return dict(zip(rows[::2], rows[1::2], strict=True))


def test_a_local_job_finds_its_nodes_free(hooked: ThrowawaySlurm, lent: DonatedNodes, folder: Path) -> None:
    leases = {node: lent.lend_stubborn(node) for node in NODES}
    keepers = {node: lent.keeper(node) for node in NODES}
    assert states(hooked) == dict.fromkeys(NODES, "idle"), "what is lent still shows as idle"
    wanted = [pid for node in ("n1", "n2") for pid in (keepers[node], *leases[node][1])]
    seen = job(hooked, folder, "n1,n2", [(pid, start_ticks(pid)) for pid in wanted])
    until(seen.exists, "the local job has started")
    number, *alive = seen.read_text().split()
    assert alive == [], "processes of ours that the job's script has met"
    for node in ("n1", "n2"):
        report = lent.report(leases[node][0])
        assert report.state is JobState.PREEMPTED
        assert f"reclaimed for local job {number} after" in report.reason
    assert lent.report(leases["n3"][0]).state is JobState.RUNNING
    with pytest.raises(SubmitRefused, match=f"taken by local job {number}"):
        lent.agents.start(lent.order("n1", "exit 0"))
    (folder / "look-n1,n2.py").unlink()
    until(lambda: not list(lent.own.glob("taken@*")), "the epilogs have offered the nodes again")
    lent.lend("n1")
    assert states(hooked)["n1"] in ("idle", "completing")
    lent.reclaim("n1")
    lent.reclaim("n3")


def test_a_node_that_is_not_donated_starts_its_job(
    hooked: ThrowawaySlurm, lent: DonatedNodes, folder: Path
) -> None:
    seen = job(hooked, folder, "n2", [(os.getpid(), start_ticks(os.getpid()))])
    until(seen.exists, "the local job has started")
    assert seen.read_text().split()[1:] == [str(os.getpid())], "it sees who lives"
    (folder / "look-n2.py").unlink()
    until(lambda: not hooked.run(["squeue", "-h"]), "it has ended")
    until(lambda: set(states(hooked).values()) == {"idle"}, "no prolog has taken a node out of service")
    assert is_alive(os.getpid())
