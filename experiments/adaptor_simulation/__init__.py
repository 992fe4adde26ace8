"""The decisions of the daemon on a virtual clock: traces, simulated clusters, experiments."""
