"""The tasks of a bag in the slots of running pilots: the broker itself, and its compiled twin."""
