"""What a site learns from failed requests: pauses by shape of task, and sizes that are impossible. Pure."""
