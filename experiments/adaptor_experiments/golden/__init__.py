"""Recorded outcomes of the experiments, which a change of the code must not move unseen."""
