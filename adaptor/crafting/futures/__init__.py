"""How the queue of a site may really go on: local jobs mostly end before their time limits."""
