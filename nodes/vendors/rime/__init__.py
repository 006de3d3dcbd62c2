"""Rime: a voice that reports the times of its words."""
