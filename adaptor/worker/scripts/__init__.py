"""Batch scripts on a node: their copies, what they find in their environment, and their output."""
