"""The decision of a site's next step: a frozen snapshot goes in, actions with their reasons come out.
Pure."""
