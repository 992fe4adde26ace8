"""The machines on which schedulers' commands run: this one, and those reached over ssh."""
