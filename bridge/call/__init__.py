"""A call: its parts, the bridges of its nodes, its handle, transfers and DTMF."""
