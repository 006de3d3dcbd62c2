"""Deepgram: two ears, and its voices."""
