"""Which events of bags somebody is to be told of, what is said of them, and the programs that say it."""
