"""The job that a task finds itself to be, and the commands that know it."""
