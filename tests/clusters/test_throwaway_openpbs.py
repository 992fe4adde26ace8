"""The throwaway OpenPBS itself: it starts, works and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor.processes.identity import process_of
from tests.clusters.openpbs import ThrowawayOpenPbs, unavailable
from tests.clusters.openpbs_conf import ClusterOptions
from tests.clusters.throwaway import ClusterError
from tests.living import until

pytestmark = [pytest.mark.pbs, pytest.mark.skipif(bool(unavailable()), reason=unavailable())]


@pytest.mark.nightly  # of tests alone: a cluster of its own
def test_jobs_run_and_nothing_is_left_of_them(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with ThrowawayOpenPbs(ClusterOptions(nodes=2, cpus=3, extra=("set server comment = mine",))) as cluster:
        assert "comment = mine" in cluster.run(["qstat", "-B", "-f"])
        script = f"setsid sh -c 'echo $$ > {tmp_path}/detached; exec sleep 600' & exec sleep 600"
        options = ["-l", "select=2:ncpus=3", "-j", "oe", "-o", "/dev/null"]
        cluster.run(["qsub", *options, "--", "/bin/sh", "-c", script])
        detached = tmp_path / "detached"
        until(lambda: detached.exists() and detached.read_text().endswith("\n"), "it runs")
        cluster.stop_mom(cluster.nodes[1])
        cluster.start_mom(cluster.nodes[1])
        cluster.clear()
        root, nodes = cluster.root, cluster.nodes
        pid = int(detached.read_text())
        assert nodes[0] in Path("/etc/hosts").read_text()
    assert not root.exists()
    until(lambda: process_of(pid) is None, "what its jobs started ends with it")
    hosts = Path("/etc/hosts").read_text()  # other clusters of this test run may have theirs
    assert not any(node in hosts for node in nodes)
    assert not any(Path("/run/netns", node).exists() for node in nodes)


@pytest.mark.nightly  # of tests alone: a cluster of its own
def test_a_cluster_that_cannot_start_says_why_and_cleans_up() -> None:
    cluster = ThrowawayOpenPbs(ClusterOptions(nodes=1, extra=("set server no_such_setting = 1",)))
    with pytest.raises(ClusterError, match="no_such_setting"):
        cluster.start()
    assert not cluster.root.exists()
