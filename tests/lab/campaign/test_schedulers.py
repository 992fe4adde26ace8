"""Queues and records are read from the schedulers' own words."""

from __future__ import annotations

import pytest

from lab.campaign.schedulers import on_openpbs, on_slurm
from lab.campaign.schedulers.cluster import Held, Job, minutes

OWN = "adaptor-x.1"
JOB = f"JobId=7 JobName={OWN} NumCPUs=4 StartTime=2026-11-22T07:00:00 EndTime=2026-11-22T07:00:33 Name=a"
QSTAT = (
    f"Job Id: 0.head|Job_Name={OWN}|job_state=R|Resource_List.ncpus=6|Resource_List.walltime=00:06:00\n"
    "Job Id: 1.head|Job_Name=somebody|job_state=Q|Resource_List.ncpus=6|Resource_List.walltime=24:00:00\n"
)
ACCOUNTING = (
    "11/26/2026 10:14:35;Q;0.head;user=root jobname=adaptor-x.1 Resource_List.ncpus=6\n"
    "11/26/2026 10:14:42;D;0.head;requestor=root@client\n"
    "11/26/2026 10:14:42;E;0.head;user=root jobname=adaptor-x.1 start=1795688075 Resource_List.ncpus=6 "
    "end=1795688082 Exit_status=0\n"
    "11/26/2026 10:14:42;E;1.head;user=root jobname=other start=1795688075 end=1795688082"
)


def test_the_queue_of_slurm() -> None:
    rows = [
        f"{OWN}|7|RUNNING|16|6:00|batch",
        f"{OWN}|8|COMPLETING|16|6:00|batch",
        f"{OWN}|9|PENDING|8|1-00:00:00|scavenger",
        f"{OWN}-2|12_1|PENDING|1|2:00|batch",
        "some|body|10|PENDING|32|1-00:00:00|batch",
    ]
    assert list(on_slurm.queued("\n".join(rows))) == [
        Job("7", OWN, 16, 6.0),
        Job("8", OWN, 16, 6.0, leaves=True),
        Job("9", OWN, 8, 1440.0, donated=True),
        Job("12_1", "adaptor-x.2", 1, 2.0),
    ]


def test_what_slurmctld_remembers() -> None:
    jobs = [JOB, JOB.replace(OWN, "somebody"), JOB.replace("2026-11-22T07:00:00", "Unknown")]
    assert list(on_slurm.remembered("\n".join(jobs))) == [Held(OWN, 33.0, None)]
    element = JOB.replace("JobId=7", "JobId=9 ArrayJobId=7 ArrayTaskId=2").replace(OWN, f"{OWN}-4")
    assert list(on_slurm.remembered(element)) == [Held("adaptor-x.3", 33.0, None)]


def test_the_accounting_of_slurm_has_a_row_for_each_size_of_a_job() -> None:
    rows = [
        f"{OWN}|7|2026-11-26T10:20:45|2026-11-26T10:20:50|8",
        f"{OWN}|7|2026-11-26T10:20:50|2026-11-26T10:21:00|4",
        "adaptor-x.2|8|2026-11-26T10:20:45|Unknown|8",
        "adaptor-x.3|9|None|2026-11-26T10:20:45|0",
        f"{OWN}-9|11_8|2026-11-26T10:20:45|2026-11-26T10:20:46|1",
        "other|10|2026-11-26T10:20:45|2026-11-26T10:20:50|8",
    ]
    assert list(on_slurm.accounted("\n".join(rows))) == [
        Held(OWN, 15.0, 8),
        Held("adaptor-x.9", 1.0, 1),
    ]


def test_the_queue_and_the_accounting_of_openpbs() -> None:
    assert list(on_openpbs.queued(QSTAT)) == [Job("0.head", OWN, 6, 6.0)]
    assert next(on_openpbs.queued(QSTAT.replace("job_state=R", "job_state=E"))).leaves
    assert list(on_openpbs.accounted(ACCOUNTING)) == [Held(OWN, 7.0, 6)]


def test_elements_of_an_array_of_openpbs_have_their_own_tags() -> None:
    array = QSTAT.splitlines()[0].replace(OWN, f"{OWN}-4")
    elements = [array.replace("0.head", f"0[{index}].head") for index in ("", 0, 3)]
    assert list(on_openpbs.queued("\n".join(elements))) == [
        Job("0[0].head", OWN, 6, 6.0),
        Job("0[3].head", "adaptor-x.4", 6, 6.0),
    ]
    ended = ACCOUNTING.replace(OWN, f"{OWN}-4").replace("E;0.head", "E;0[3].head")
    assert list(on_openpbs.accounted(ended)) == [Held("adaptor-x.4", 7.0, 6)]


@pytest.mark.parametrize(
    ("limit", "expected"), [("30", 0.5), ("6:00", 6), ("1:00:30", 60.5), ("1-0:01:00", 1441)]
)
def test_time_limits_are_read(limit: str, expected: float) -> None:
    assert minutes(limit) == expected
