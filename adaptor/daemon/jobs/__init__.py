"""The daemon as a job of a batch scheduler, and the job that follows it."""
