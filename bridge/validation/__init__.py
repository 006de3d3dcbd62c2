"""Checks of arguments, numbers and texts; each module has those of one kind."""
