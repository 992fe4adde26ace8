"""The daemon's end of the mailboxes."""
