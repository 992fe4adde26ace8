"""The availability profile of nodes: what jobs hold of each over time, and the task slots with it. Pure."""
