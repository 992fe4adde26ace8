"""Failed requests, as a site learns from them: pauses by shape of task, and impossible sizes. Pure."""
