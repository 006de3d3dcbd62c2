"""Vonage: telephone numbers."""
