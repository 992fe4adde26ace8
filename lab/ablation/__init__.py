"""Ablation: what each constant of the rules brings, by whole bags with and without it.

`constants.yaml` is the table of all numeric constants of the rooms that decide; `table.py` reads it and
finds them in the source, `measures.py` runs bags through the daemon's own step, `running.py` does so in a
copy of the tree with another value, `losses.py` compares the rows with those of the tree as it is, `page.py`
shows that.
"""
