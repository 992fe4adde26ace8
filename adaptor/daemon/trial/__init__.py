"""`adaptor site check --live`: one short job that tells from a node what a first pilot would meet."""
