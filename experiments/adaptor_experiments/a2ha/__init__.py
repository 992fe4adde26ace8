"""The evaluation of Silva et al. 2008, §5, and 2011 (A²HA), §4, and the target figures of the budget."""
