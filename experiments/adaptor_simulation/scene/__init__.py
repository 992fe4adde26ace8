"""Several sites on one virtual clock, driven by the decisions of the daemon: bags, budgets, donated nodes."""
