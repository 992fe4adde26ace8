"""The throwaway Grid Engine itself: it starts, works and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor.processes.identity import process_of
from tests.clusters.grid_engine import ThrowawayGridEngine, unavailable
from tests.clusters.grid_engine_conf import GridOptions
from tests.living import until

pytestmark = [pytest.mark.gridengine, pytest.mark.skipif(bool(unavailable()), reason=unavailable())]


def test_jobs_run_on_several_hosts_and_nothing_is_left_of_them(tmp_path: Path) -> None:
    with ThrowawayGridEngine(GridOptions(nodes=2, slots=3)) as cluster:
        script = f"setsid sh -c 'echo $$ > {tmp_path}/detached; exec sleep 600' & exec sleep 600"
        options = ["-pe", "mpi", "6", "-j", "y", "-o", "/dev/null"]
        cluster.run(["qsub", *options, "-b", "y", "-shell", "n", "/bin/sh", "-c", script])
        detached = tmp_path / "detached"
        until(lambda: detached.exists() and detached.read_text().endswith("\n"), "it runs")
        assert cluster.run(["qstat", "-f"]).count("/3/3") == 2, "it has all slots of both hosts"
        cluster.clear()
        root, nodes = cluster.root, cluster.nodes
        pid = int(detached.read_text())
    assert not root.exists()
    until(lambda: process_of(pid) is None, "what its jobs started ends with it")
    assert not any(Path("/run/netns", node).exists() for node in nodes)
