"""Anthropic: a chat model."""
