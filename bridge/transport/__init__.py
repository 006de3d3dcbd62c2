"""The caller's side of a call: what it must be able to do, and a guard around it."""
