"""The node's side of agent mode (De Rose §3, CronoGuMP): idle nodes are lent and taken back."""
