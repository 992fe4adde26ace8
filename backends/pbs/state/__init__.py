"""From the rows of jobs, nodes and reservations to the state of a site's queue."""
