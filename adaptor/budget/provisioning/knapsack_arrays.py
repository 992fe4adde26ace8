"""Arrays of the bounded knapsack. Needs numpy, without which the daemon runs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
