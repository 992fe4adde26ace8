"""Calls of one executor with different resources, on a real Slurm whose nodes have memory and GPUs."""

from __future__ import annotations

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab
from tests.e2e.test_local_executor import said

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

SITE = """
    sites:
      hpc:
        backend: slurm
        partition: batch
        limits: {max_pending_requests: 3, max_proc: 16, max_tr: 20m}
        idle_timeout: 3
        poll_interval: 2
"""


def test_each_call_is_in_a_job_that_holds_what_it_needs(mixed_slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(SITE)
    out = said(
        lab.program("""
            import adaptor

            def found():
                import os, re, subprocess
                job = ["scontrol", "show", "job", os.environ["SLURM_JOB_ID"]]
                told = subprocess.run(job, capture_output=True, text=True, check=True).stdout
                allocated = re.search(r"\\sTRES=(\\S+)", told)[1]
                gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "none")
                return os.environ["ADAPTOR_CPUS"], gpus, os.environ.get("WORD"), allocated

            if __name__ == "__main__":
                with adaptor.Executor(time="1m") as executor:
                    print(*executor.submit(found).result())
                    wide = executor.with_resources(cpus=8, mem="2G", env={"WORD": "wide"})
                    print(*wide.submit(found).result())
                    print(*wide.submit(found, adaptor_resources={"cpus": 1, "gpus": 1}).result())
                    print(wide.submit(found, adaptor_resources={"gpus": 100}).exception())
        """)
    )
    usual, wide, with_gpu, refused = out.splitlines()
    assert usual.startswith("1 none None cpu=")
    assert wide.startswith("8 none wide cpu=")
    allocated = dict(each.split("=", 1) for each in wide.split()[3].split(","))
    assert int(allocated["cpu"]) >= 8
    assert allocated["mem"] in ("2G", "2063M")
    cpus, gpu, word, _ = with_gpu.split()
    assert (cpus, gpu.isdecimal(), word) == ("1", True, "wide")
    assert "the call has no result: no node can run it: hpc: each needs 100 GPUs" in refused
