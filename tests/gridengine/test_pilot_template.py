"""Grid Engine's batch script: its text, and what it does with a stand-in for qrsh."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from adaptor_gridengine import backend as of_grid_engine
from backends.scripts import render
from tests.backends.orders import script
from tests.living import PATIENCE, until

TEMPLATE = Path(of_grid_engine.__file__).with_name("pilot.template")
GOLDEN = Path(__file__).parents[2] / "fixtures" / "gridengine" / "pilot.sh"
"""Written anew by `python -m tests.gridengine.test_pilot_template`; read the difference."""


def golden_script() -> str:
    command = ["qsub", "-N", "adaptor-x.hpc.7"]
    return script(TEMPLATE, command, seconds="660", memory=str(2**30))


def test_the_script_is_as_it_was_read_and_found_good() -> None:
    assert golden_script() == GOLDEN.read_text()


def start(folder: Path, worker: str) -> subprocess.Popen[bytes]:
    """As a job of 4 slots on n1 and 2 on n2; qrsh runs its program right here."""
    script, hosts = folder / "pilot.sh", folder / "hosts"
    script.write_text(
        render(
            TEMPLATE,
            processors=6,
            seconds="600",
            command=["qsub"],
            environment={"ADAPTOR_DIRECTORY": str(folder), "ADAPTOR_ODD": "a 'b' \"$c\" \\d\nand more"},
            prologue="",
            worker=["/bin/bash", "-c", worker],
            memory="1000",
        )
    )
    hosts.write_text("n1 4 all.q@n1 UNDEFINED\nn2 2 all.q@n2 UNDEFINED\n")
    qrsh = folder / "bin" / "arch" / "qrsh"
    qrsh.parent.mkdir(parents=True)
    qrsh.write_text(
        '#!/bin/bash\nshift 3\nexec env -i --default-signal=USR1,USR2 PATH="$PATH" HOSTNAME=n2 "$@"\n'
    )
    qrsh.chmod(0o755)
    job = {"HOSTNAME": "n1", "NSLOTS": "6", "PE_HOSTFILE": str(hosts)}
    job |= {"SGE_ROOT": str(folder), "SGE_ARCH": "arch", "PATH": os.environ["PATH"]}
    return subprocess.Popen(["bash", str(script)], env=job, start_new_session=True)


def test_a_worker_runs_on_each_host_with_its_share(tmp_path: Path) -> None:
    said = f'echo "$ADAPTOR_NODE $ADAPTOR_PROCESSORS $ADAPTOR_MEMORY $ADAPTOR_ODD" >{tmp_path}/$ADAPTOR_NODE'
    assert start(tmp_path, said).wait(timeout=PATIENCE) == 0
    assert (tmp_path / "n1").read_text() == "n1 4 4000 a 'b' \"$c\" \\d\nand more\n"
    assert (tmp_path / "n2").read_text() == "n2 2 2000 a 'b' \"$c\" \\d\nand more\n"
    assert (tmp_path / "pilot-end.txt").read_text().split()[:2] == ["0", "no"]


def test_the_signal_before_the_end_tells_the_workers(tmp_path: Path) -> None:
    """Grid Engine sends SIGUSR2 to all processes of a job."""
    wait = (
        f"trap 'echo told >{tmp_path}/told-$ADAPTOR_NODE; exit 0' TERM; echo >{tmp_path}/up-$ADAPTOR_NODE; "
    )
    job = start(tmp_path, f"{wait} while :; do sleep 0.2; done")
    until(lambda: len(list(tmp_path.glob("up-*"))) == 2, "both workers are up")
    os.killpg(job.pid, signal.SIGUSR2)
    assert job.wait(timeout=PATIENCE) == 140
    assert sorted(path.name for path in tmp_path.glob("told-*")) == ["told-n1", "told-n2"]
    assert (tmp_path / "pilot-end.txt").read_text().split()[1] == "yes"


def test_a_pilot_fails_where_all_its_workers_do(tmp_path: Path) -> None:
    assert start(tmp_path, "exit 3").wait(timeout=PATIENCE) == 1


def test_one_worker_that_went_well_is_enough(tmp_path: Path) -> None:
    assert start(tmp_path, "[[ $ADAPTOR_NODE == n2 ]]").wait(timeout=PATIENCE) == 0


if __name__ == "__main__":
    GOLDEN.write_text(golden_script())
