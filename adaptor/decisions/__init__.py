"""What a site does next: a frozen snapshot goes in, actions with their reasons come out. Pure."""
