"""Retell: agents that Retell hears and speaks for."""
