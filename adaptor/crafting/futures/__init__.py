"""Possible futures of a site's queue: local jobs mostly end before their time limits."""
