"""The node's side of donation in agent mode (De Rose §3): uses idle nodes, and reclaims them."""
