"""Simulated clusters of nodes: jobs hold parts of named nodes, and a hole is one that a job fits."""
