"""Plivo: telephone numbers."""
