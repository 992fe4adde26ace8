"""The state of a site's queue, made of the rows of jobs, nodes and reservations."""
