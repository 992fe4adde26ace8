"""R: cluster functions for batchtools, by batchtools' own tests and by a thousand jobs."""

from __future__ import annotations

import gzip
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.e2e.lab import Lab, site
from tests.living import run_text
from tests.source_tree import ROOT

FUNCTIONS = ROOT / "plugins" / "r" / "makeClusterFunctionsAdaptor.R"
THOUSAND = ROOT / "plugins" / "r" / "tests" / "thousand.R"
THEIRS = Path("/usr/share/doc/r-cran-batchtools/tests/testthat")  # of Debian's r-cran-batchtools
SUBMITTING = (
    *("ClusterFunctions", "btlapply", "chunk", "doJobCollection", "export", "findJobs", "getErrorMessages"),
    *("getJobTable", "getStatus", "grepLogs", "JobNames", "killJobs", "manual", "reduceResults", "resetJobs"),
    *("seed", "showLog", "sleep", "submitJobs", "sweepRegistry", "waitForJobs"),
)
"""Their tests that submit jobs, or list or end them."""
PATIENCE = 1200.0  # seconds

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(2 * PATIENCE)]


def missing() -> str:
    """Which program or library is not here; empty: none."""
    how = "(Debian: apt-get install r-cran-batchtools r-cran-future.batchtools r-cran-testthat)"
    if not shutil.which("Rscript"):
        return f"no Rscript {how}"
    found = run_text(["Rscript", "-e", "library(batchtools); library(testthat)"], timeout=60)
    return f"no batchtools {how}" if found.returncode else ""


def with_r(lab: Lab) -> dict[str, str]:
    """The environment in which R finds `adaptor`, with the sites that are configured."""
    if why := missing():
        pytest.skip(why)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**lab.environment, "PATH": path, "ADAPTOR_CONFIG": str(lab.config)}


@pytest.fixture
def environment(lab: Lab) -> dict[str, str]:
    """R finds `adaptor`, with a site of this machine."""
    lab.configure(site("local", processors=2, idle_timeout=5))
    return with_r(lab)


def check_a_thousand_jobs(lab: Lab, environment: dict[str, str]) -> None:
    """By batchtools and by future: results, arrays, logs, kills."""
    words = ["Rscript", str(THOUSAND), str(FUNCTIONS)]
    done = run_text(words, env=environment, cwd=lab.work, timeout=PATIENCE)
    assert "all is well" in done.stdout, f"{done.stdout}\n{done.stderr}\n{lab.log()}"
    assert not [bag for bag in lab.ask("status", "all")["bags"] if bag["ended"] is None], (
        "all bags are closed"
    )


def test_a_thousand_jobs_come_back(lab: Lab, environment: dict[str, str]) -> None:
    check_a_thousand_jobs(lab, environment)


def test_their_own_tests_pass(lab: Lab, environment: dict[str, str]) -> None:
    """They take the cluster functions of the configuration that batchtools finds in this folder."""
    if not THEIRS.is_dir():
        pytest.skip("no tests of batchtools")
    for name in ("helper", *(f"test_{each}" for each in SUBMITTING)):
        packed, plain = THEIRS / f"{name}.R.gz", THEIRS / f"{name}.R"
        text = gzip.decompress(packed.read_bytes()) if packed.exists() else plain.read_bytes()
        (lab.work / f"{name}.R").write_bytes(text)
    (lab.work / "batchtools.conf.R").write_text(
        f'source("{FUNCTIONS}")\ncluster.functions = makeClusterFunctionsAdaptor(fs.latency = 5)\n'
    )
    code = (
        "library(testthat); found = as.data.frame(test_dir('.', package = 'batchtools',"
        " load_package = 'installed', reporter = 'summary', stop_on_failure = FALSE));"
        " cat(sum(found$nb), 'checks', sum(found$failed), 'failed', sum(found$error), 'errors')"
    )
    given = {**environment, "R_BATCHTOOLS_SEARCH_PATH": str(lab.work), "NOT_CRAN": "true"}
    done = run_text(["Rscript", "-e", code], env=given, cwd=lab.work, timeout=PATIENCE)
    assert " checks 0 failed 0 errors" in done.stdout, f"{done.stdout}\n{done.stderr}\n{lab.log()}"
