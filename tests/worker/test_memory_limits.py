"""What control groups of both versions say of memory."""

from __future__ import annotations

from pathlib import Path

from adaptor.worker.memory import memory_limit, oom_kill_counter


def cgroup(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def limit(tmp_path: Path, lines: str, files: dict[str, str]) -> int | None:
    (tmp_path / "self").write_text(lines)
    cgroup(tmp_path / "fs", files)
    return memory_limit(tmp_path / "self", tmp_path / "fs")


def test_the_tightest_limit_above_a_process_counts(tmp_path: Path) -> None:
    files = {"job/step/memory.max": "max\n", "job/memory.max": "1000\n", "memory.max": "5000\n"}
    assert limit(tmp_path, "0::/job/step\n", files) == 1000


def test_version_1(tmp_path: Path) -> None:
    files = {
        "memory/slurm/job/memory.limit_in_bytes": "2000\n",
        "memory/memory.limit_in_bytes": "9223372036854771712\n",
    }
    assert limit(tmp_path, "4:memory:/slurm/job\n3:cpuset:/\n", files) == 2000


def test_no_limit(tmp_path: Path) -> None:
    assert limit(tmp_path, "0::/job\n", {"job/memory.max": "max\n"}) is None
    assert memory_limit(tmp_path / "nothing", tmp_path) is None


def test_a_counter_is_found_in_both_versions(tmp_path: Path) -> None:
    told = tmp_path / "cgroup"
    one = tmp_path / "memory" / "slurm" / "job_7" / "memory.oom_control"
    two = tmp_path / "slurm" / "job_7" / "memory.events"
    for file in (one, two):
        file.parent.mkdir(parents=True)
        file.write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    told.write_text("4:memory:/slurm/job_7\n0::/\n")
    assert oom_kill_counter(told, tmp_path) == one
    told.write_text("0::/slurm/job_7\n")
    assert oom_kill_counter(told, tmp_path) == two
    told.write_text("0::/elsewhere\n")
    assert oom_kill_counter(told, tmp_path) is None
    assert oom_kill_counter(tmp_path / "none", tmp_path) is None
