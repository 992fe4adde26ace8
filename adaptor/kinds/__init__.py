"""Kinds of task: recognised by their commands over all bags, and what earlier bags of a kind took."""
