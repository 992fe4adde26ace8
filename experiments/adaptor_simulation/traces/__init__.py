"""Parallel Workloads Archive traces: read, write, describe, repair, convert."""
