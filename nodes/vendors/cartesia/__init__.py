"""Cartesia: an ear and a voice."""
