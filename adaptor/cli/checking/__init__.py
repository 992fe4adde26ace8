"""Trials of `adaptor site check`: a bag at a site, and the file system of the state directory."""
