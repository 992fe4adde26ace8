"""`python -m lab.campaign.scripts`: the table of what differs, on a throwaway Slurm of its own."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from lab.campaign.scripts.cases import CASES, DANGEROUS
from lab.campaign.scripts.comparing import SITE, compare, print_differences, slurm_with_tmpdir
from lab.campaign.scripts.public_cases import public_cases
from tests.clusters.slurm import available
from tests.e2e.lab import Lab


def main() -> int:
    """The exit code: 0 if outputs, names and exit codes of all scripts are equal."""
    if reason := available():
        print(reason, file=sys.stderr)
        return 2
    cases = (*CASES, *DANGEROUS, *public_cases())
    with tempfile.TemporaryDirectory() as folder, slurm_with_tmpdir(Path(folder)) as slurm:
        os.environ.update(slurm.env)
        lab = Lab(Path(folder))
        lab.configure(SITE)
        try:
            return print_differences(cases, lambda case: compare(case, slurm, lab), "sbatch")
        finally:
            lab.close()


if __name__ == "__main__":
    sys.exit(main())
