"""Twilio: telephone numbers."""
