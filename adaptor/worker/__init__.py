"""The worker, on each node of a pilot: it pulls tasks from the daemon, runs them and reports."""
