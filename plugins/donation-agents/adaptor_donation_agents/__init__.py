"""Donation by agents (De Rose §3, CronoGuMP): workers on idle nodes outside the scheduler's book-keeping.

`keeper` and `reclaim` run on the nodes, by the standard library alone; `with_agents` in the daemon.
"""
