"""Telnyx: telephone numbers."""
