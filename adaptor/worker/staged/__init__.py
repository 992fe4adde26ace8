"""The copies of what bags stage, as the tasks of this node see them."""
