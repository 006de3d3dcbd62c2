"""Exotel: telephone numbers."""
