"""Wires: the ways of reaching a call, each behind the server's one port."""
