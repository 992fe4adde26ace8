"""The local site after things went wrong: killed processes, a restart, damaged notes, a full disk."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from adaptor.config.schema import SiteConfig
from adaptor.reports import JobReport, JobState
from adaptor.units import Duration
from backends.base import SchedulerError
from backends.local.backend import LocalBackend
from tests.backends.local.local_site import LocalSite, written_pid
from tests.backends.orders import own
from tests.living import is_alive, until

SLEEPER = """
setsid sh -c 'echo $$ > "$ADAPTOR_DIRECTORY/child"; exec sleep 100' &
echo $$ > "$ADAPTOR_DIRECTORY/worker"
trap '' TERM
sleep 100; sleep 100; sleep 100
"""


def rewrite(note: Path, **changes: object) -> None:
    content = json.loads(note.read_bytes())
    content.update(changes)
    note.write_text(json.dumps(content))


def test_a_new_daemon_finds_its_jobs_again(site: LocalSite) -> None:
    running = site.submit("sleep 100", p=4, tag="a-1")
    queued = site.submit("true", p=4, tag="a-2")
    anew = site.reopened()
    states = {job.id: job.state for job in anew.jobs([], "a-")}
    assert states == {running: JobState.RUNNING, queued: JobState.QUEUED}
    anew.cancel(own(anew, running))
    site.reaches(queued, JobState.COMPLETED)


def test_a_job_ends_in_time_and_is_written_down_without_any_daemon(site: LocalSite) -> None:
    """The one that submitted it is killed at once."""
    order = site.order("exec sleep 100", tr=1)
    script = (
        "import os, sys, msgspec; from pathlib import Path; from adaptor.config.schema import SiteConfig\n"
        "from backends.base import PilotOrder; from backends.local.backend import LocalBackend\n"
        "order = msgspec.json.decode(sys.argv[2], type=PilotOrder, dec_hook=lambda kind, it: kind(it))\n"
        "LocalBackend(SiteConfig(backend='local', processors=4), Path(sys.argv[1]), 0.3).submit(order)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    text = msgspec.json.encode(order, enc_hook=str).decode()
    done = subprocess.run([sys.executable, "-c", script, str(site.state), text], check=False)
    assert done.returncode == -signal.SIGKILL
    until(lambda: (site.state / "1.end.json").exists(), "the end of job 1")
    assert site.report("1").state is JobState.WALLTIME


def test_a_killed_supervisor_is_a_failed_node_and_nothing_stays(site: LocalSite) -> None:
    id = site.submit(SLEEPER, p=4)
    pids = [written_pid(site.directory() / name) for name in ("worker", "child")]
    os.kill(site.supervisor(id), signal.SIGKILL)
    report = site.reaches(id, JobState.NODE_FAILED)
    assert "killed" in report.reason
    until(lambda: not any(is_alive(pid) for pid in pids), "the end of what was left")
    assert site.backend.queue_state().running == ()


def test_a_worker_leaves_when_its_supervisor_is_killed_while_no_daemon_runs(site: LocalSite) -> None:
    id = site.submit('echo $$ > "$ADAPTOR_DIRECTORY/worker"; exec sleep 100')
    worker = written_pid(site.directory() / "worker")
    os.kill(site.supervisor(id), signal.SIGKILL)
    until(lambda: not is_alive(worker), "the end of the worker")


def test_jobs_that_ran_before_a_reboot_have_failed(site: LocalSite) -> None:
    id = site.submit("sleep 100", tr=60)
    note = site.state / f"{id}.start.json"
    identity = json.loads(note.read_bytes())["supervisor"]
    rewrite(note, started=1000.0, supervisor={**identity, "boot": "an earlier one"})
    report = site.report(id)
    assert report.state is JobState.NODE_FAILED
    assert "restarted" in report.reason
    assert report.end == 1060.0


def test_a_process_id_that_was_given_to_another_process_is_not_taken_for_the_supervisor(
    site: LocalSite,
) -> None:
    bystander = subprocess.Popen(["sleep", "100"])  # long enough before to differ in its start
    try:
        id = site.submit("sleep 100")
        note = site.state / f"{id}.start.json"
        identity = json.loads(note.read_bytes())["supervisor"]
        rewrite(note, supervisor={**identity, "pid": bystander.pid})
        site.backend.cancel(own(site.backend, id))
        assert site.report(id).state is JobState.NODE_FAILED
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def _on_another_machine(site: LocalSite, started: float) -> JobReport:
    id = site.submit("sleep 100", tr=60)
    note = site.state / f"{id}.start.json"
    identity = json.loads(note.read_bytes())["supervisor"]
    rewrite(note, started=started, supervisor={**identity, "host": "login2", "boot": "its own"})
    return site.report(id)


def test_a_job_of_another_machine_is_not_taken_for_lost(site: LocalSite) -> None:
    assert _on_another_machine(site, 4e9).state is JobState.RUNNING


def test_a_job_of_another_machine_is_lost_long_after_its_limit(site: LocalSite) -> None:
    report = _on_another_machine(site, 1000.0)
    assert report.state is JobState.NODE_FAILED
    assert "login2" in report.reason


@pytest.mark.parametrize("content", [b"", b'{"id": 1, "tag": "a"', b"\xff\xfe", b'{"id": "one"}'])
def test_a_damaged_note_is_set_aside_and_the_others_go_on(
    site: LocalSite, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    site.submit("sleep 100", p=4)
    site.submit("true", p=4)
    (site.state / "2.job.json").write_bytes(content)
    third = site.submit("true", p=4)
    assert [job.id for job in site.backend.jobs([], "")] == ["1", third]
    assert (site.state / "2.job.json.damaged").read_bytes() == content
    assert "job 2" in caplog.text
    assert third == "3"


def test_the_processes_of_a_job_with_a_damaged_note_are_ended(site: LocalSite) -> None:
    id = site.submit(SLEEPER)
    pids = [written_pid(site.directory() / name) for name in ("worker", "child")]
    (site.state / f"{id}.start.json").write_text("nonsense")
    assert site.backend.jobs([id], "-") == []
    until(lambda: not any(is_alive(pid) for pid in pids), "the end of its processes")


def test_a_submission_that_was_cut_short_is_not_there(site: LocalSite) -> None:
    (site.state / ".1.job.json.4711.tmp").write_text('{"id": 1, "tag": "half a')
    assert site.backend.jobs([], "") == []
    assert site.submit("true") == "1"


def test_a_full_disk_is_told_and_the_request_is_not_there(site: LocalSite) -> None:
    order = site.order("true")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(SchedulerError, match="local job 1 cannot be written down"):
            site.backend.submit(order)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, previous)
    assert site.backend.jobs([], "") == []


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SchedulerError, match="cannot be made"):
        LocalBackend(SiteConfig(backend="local"), tmp_path / "file" / "site")


def test_a_folder_that_vanished_is_told(site: LocalSite) -> None:
    site.state.rmdir()
    with pytest.raises(SchedulerError, match="lock cannot be had"):
        site.backend.queue_state()


def test_a_supervisor_that_cannot_be_started_leaves_the_job_in_the_queue(
    site: LocalSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("backends.local.backend.sys.executable", "/no/such/python")
        id = site.submit("true")
        with pytest.raises(SchedulerError, match=f"local job {id} cannot be started"):
            site.backend.queue_state()
    site.reaches(id, JobState.COMPLETED)


def test_a_lock_that_is_never_given_up_is_told(site: LocalSite) -> None:
    impatient = LocalBackend(SiteConfig(backend="local", command_timeout=Duration(0.1)), site.state)
    with (site.state / "lock").open("wb") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(SchedulerError, match="another process has held"):
            impatient.queue_state()
