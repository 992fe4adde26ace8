"""Measurements: `python -m bench` prints what was measured in one run, as ratios where it can."""
