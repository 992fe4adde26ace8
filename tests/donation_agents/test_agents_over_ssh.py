"""Leases by a launcher that is ssh, and for a site whose login node is reached over ssh."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import msgspec
import pytest

from adaptor.config.schema import SshConfig
from adaptor.reports import JobState
from adaptor_donation_agents.agents import Agents
from backends.base import SchedulerError
from backends.donation import agent_id
from backends.machines.distant import Distant
from tests.clusters.sshd import ThrowawaySshd
from tests.donation_agents.donated_nodes import DonatedNodes
from tests.donation_agents.patience import PATIENCE, be_patient
from tests.living import is_alive, until

pytestmark = pytest.mark.ssh


def launcher(sshd: ThrowawaySshd) -> tuple[str, ...]:
    known = f"UserKnownHostsFile={sshd.known_hosts}"
    options = [known, "HostKeyAlias=throwaway", "BatchMode=yes", "SetEnv=WHERE={node}"]
    words = [word for option in options for word in ("-o", option)]
    return (
        str(shutil.which("ssh")),
        "-F",
        "none",
        "-p",
        str(sshd.port),
        "-i",
        str(sshd.identity),
        *words,
        "127.0.0.1",
    )


def test_a_keeper_outlives_the_ssh_that_started_it(sshd: ThrowawaySshd, tmp_path: Path) -> None:
    nodes = DonatedNodes(tmp_path, launcher=launcher(sshd))
    try:
        tag, pids = nodes.lend_stubborn()
        until(lambda: not sshd.sessions(), "the connection has ended")
        assert all(is_alive(pid) for pid in pids)
        be_patient(nodes)
        nodes.end(agent_id("n1", tag))
        assert not any(is_alive(pid) for pid in pids)
        assert nodes.report(tag).state is JobState.CANCELLED
    finally:
        nodes.end_all()


def test_a_path_that_a_shell_would_take_apart_is_not_passed_on(sshd: ThrowawaySshd, tmp_path: Path) -> None:
    folder = tmp_path / "a b; c"
    folder.mkdir()
    nodes = DonatedNodes(folder, launcher=launcher(sshd))
    with pytest.raises(SchedulerError, match="cannot be passed to n1"):
        nodes.agents.start(nodes.order("n1", "exit 0"))


def test_a_site_whose_login_node_is_elsewhere(sshd: ThrowawaySshd, tmp_path: Path) -> None:
    nodes = DonatedNodes(tmp_path)
    be_patient(nodes)
    machine = Distant(msgspec.convert(sshd.site(), SshConfig), {}, 20, sys.executable)
    nodes.agents = Agents(nodes.site, nodes.donation, tmp_path / "notes", sys.executable, machine)
    try:
        first, second = nodes.lend("n1"), nodes.lend("n2")
        nodes.reclaim("n1", "--job=4", f"--timeout={PATIENCE}")
        assert nodes.report(first).state is JobState.PREEMPTED
        nodes.end(agent_id("n2", second))
        assert nodes.report(second).state is JobState.CANCELLED
    finally:
        machine.close()
        nodes.end_all()
